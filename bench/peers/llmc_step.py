#!/usr/bin/env python3
"""Measures training steps of llm.c's train_gpt2cu, built elsewhere (bf16, cuDNN attention), on random tokens.

    python3 llmc_step.py PROGRAM --depth 12 --batch 64 [--steps 30] [--gelu-fusion 1 2]

Tokens follow Zipf's law as text does: llm.c sorts them on the CPU in every step, and uniform ones would slow it down.
Each way to fuse GELU is a run of its own, and the fastest counts. Prints one line of JSON; its speed is the median of the
steps from the sixth on.
"""

import argparse
import array
import json
import os
import random
import re
import statistics
import struct
import subprocess
import tempfile
import time

VOCABULARY, SEQUENCE = 50257, 1024


def write_tokens(path, count):
    numbers = random.Random(1234)
    ids = list(range(VOCABULARY))
    numbers.shuffle(ids)
    weights = [(i + 2.7) ** -1.12 for i in range(VOCABULARY)]
    tokens = array.array("H", numbers.choices(ids, weights=weights, k=count))
    with open(path, "wb") as out:
        out.write(struct.pack("<256i", 20240520, 1, count, *([0] * 253)))
        out.write(tokens.tobytes())


def run(a, data, fusion):
    command = [a.program, "-i", data, "-j", data, "-e", f"d{a.depth}", "-b", str(a.batch), "-t", str(SEQUENCE), "-d",
               str(a.batch * SEQUENCE), "-x", str(a.steps), "-r", "0", "-ge", str(fusion), "-w", "1", "-z", "0", "-v",
               "1000000", "-s", "0", "-h", "0", "-l", "0.0003", "-c", "0.1"]
    begin, first, ms, memory = time.time(), None, [], None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=os.path.dirname(data))
    for line in process.stdout:
        step = re.match(r"step\s+\d+/\d+ \| loss \S+ .*\| ([0-9.]+) ms \|", line)
        if step:
            first = first or time.time() - begin
            ms.append(float(step.group(1)))
        held = re.search(r"device memory usage: (\d+) MiB", line)
        memory = int(held.group(1)) << 20 if held else memory
    if process.wait() != 0 or len(ms) < 7:
        return None
    return dict(tokens_per_s=a.batch * SEQUENCE * 1000 / statistics.median(ms[5:]), first_step_s=first, peak_bytes=memory,
                gelu_fusion=fusion, step_ms=ms)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--depth", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--gelu-fusion", type=int, nargs="+", default=[1, 2])
    a = parser.parse_args()
    a.program = os.path.abspath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "tokens.bin")
        write_tokens(data, a.batch * SEQUENCE * 40 + 1)
        runs = [r for r in (run(a, data, fusion) for fusion in a.gelu_fusion) if r]
    best = max(runs, key=lambda r: r["tokens_per_s"], default={"error": "failed"})
    print(json.dumps(dict(program="llm.c train_gpt2cu", **best)))


if __name__ == "__main__":
    main()
