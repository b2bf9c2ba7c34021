#!/usr/bin/env python3
"""Measures training steps of LLMQ on the shape of Qwen2.5-1.5B (bf16, bf16 optimizer states), on random tokens.

    python3 llmq_step.py PROGRAM --batch 32 --micro-batches 4 [--steps 6]

PROGRAM is LLMQ's step with its published options, built elsewhere: it writes its token file with --make-tokens=FILE and
prints a line with "time: X ms" for each step. Prints one line of JSON; its speed is the median of the steps after warm-up.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

SEQUENCE = 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    a = parser.parse_args()
    program = os.path.abspath(a.program)
    begin, first, ms, memory = time.time(), None, [], None
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "train.bin")
        subprocess.run([program, f"--make-tokens={tokens}"], check=True, stdout=subprocess.DEVNULL)
        command = [program, f"--train-file={tokens}", "--from-scratch", "--model=Qwen2.5-1.5B", f"--seq-length={SEQUENCE}",
                   "--model-dtype=bf16", "--matmul-dtype=bf16", "--opt-m-dtype=bf16", "--opt-v-dtype=bf16", "--gpus=1",
                   "--use-cuda-graphs", f"--batch-size={a.batch}", f"--grad-accumulation={a.micro_batches}",
                   f"--warmup-steps={a.warmup}", f"--steps={a.steps}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in process.stdout:
            step = re.search(r"time:\s*([0-9.]+) ms", line)
            if step:
                first = first or time.time() - begin
                ms.append(float(step[1]))
            held = re.search(r"device memory ([0-9.]+) GiB", line)
            memory = int(float(held[1]) * 2**30) if held else memory
        failed = process.wait() != 0 or len(ms) <= a.warmup
    speed = {} if failed else dict(tokens_per_s=a.batch * a.micro_batches * SEQUENCE * 1000 / statistics.median(ms[a.warmup:]))
    print(json.dumps(dict(program="LLMQ (bf16 optimizer states and gradients)", **(speed or dict(error="failed")),
                          first_step_s=first, peak_bytes=memory, step_ms=ms)))


if __name__ == "__main__":
    main()
