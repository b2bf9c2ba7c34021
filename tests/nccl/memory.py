#!/usr/bin/env python3
"""Holds what `teratron plan` says of a layout's memory against what the GPU's driver says was used at most.

    python3 tests/nccl/memory.py build/teratron [--only WORD]

Two ranks share a GPU and train a GPT with enough in memory that little things do not count. What the driver says
includes CUDA's context and NCCL's buffers, which the plan only estimates. Exits with 1 if a rank's own count of what it
took, or what the driver says of both, differs from the plan by more than 1 %.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

RANKS = 2
MODEL = ("--num-layers 24 --hidden-size 2304 --num-attention-heads 24 --seq-length 2048 --max-position-embeddings 2048 "
         "--micro-batch-size 16 --global-batch-size 32 --tokenizer-type NullTokenizer --vocab-size 51199 --mock-data --bf16 "
         "--lr 1e-4 --attention-dropout 0 --hidden-dropout 0 --log-interval 1 --eval-iters 0 --num-workers 0 "
         "--train-iters 2 --device cuda").split()
LAYOUTS = {
    "tp2 sp": "--tensor-model-parallel-size 2 --sequence-parallel",
    "pp2 interleaved": "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3",
    "dp2 zero overlapped": "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
    "cp2": "--context-parallel-size 2",
    "pp2": "--pipeline-model-parallel-size 2",
}
GIB = 2**30


class Used:
    """Most bytes of the first GPU's memory in use until the end of the scope, beyond those in use before."""

    QUERY = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]

    def __enter__(self):
        self.before = int(subprocess.run(self.QUERY, stdout=subprocess.PIPE, text=True, check=True).stdout)
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*self.QUERY, "-lms", "50"], stdout=self.log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.seek(0)
        self.most = (max(int(line) for line in self.log.read().split()) - self.before) * 2**20


def planned(binary, words):
    """Bytes by rank, and about what comes on top of each."""
    command = [binary, "plan", "gpt", *words, "--world-size", str(RANKS), "--json"]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    layout = json.loads(text[text.index("{"):])["layout"]
    stages = layout["stages"]
    return [stages[rank * len(stages) // RANKS]["total"] for rank in range(RANKS)], layout["libraries_about"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not shutil.which("nvidia-smi"):
        print("memory.py: nvidia-smi is not there; it comes with the GPU's driver", file=sys.stderr)
        return 2
    if not os.access(options.binary, os.X_OK):
        print(f"memory.py: {options.binary} is not a program; build it with scripts/build.sh", file=sys.stderr)
        return 2
    wanted = {name: flags for name, flags in LAYOUTS.items() if options.only in name}
    if not wanted:
        print(f"memory.py: no layout is called '{options.only}'; there are {', '.join(LAYOUTS)}", file=sys.stderr)
        return 2
    wrong = 0
    for name, flags in wanted.items():
        words = MODEL + flags.split()
        plan, on_top = planned(options.binary, words)
        command = [options.binary, "launch", "local", "--share-gpus", "--nproc-per-node", str(RANKS), "--", "pretrain",
                   "gpt", *words]
        with Used() as used:
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        if run.returncode != 0:
            print(f"  {name}: FAILED: " + "\n".join(run.stdout.splitlines()[-5:]), flush=True)
            wrong += 1
            continue
        own = {int(m[1]): float(m[2]) * 2**20 for m in re.finditer(r"\[Rank (\d+)\].*max reserved: ([\d.]+)", run.stdout)}
        apart = max(abs(plan[rank] - most) / most for rank, most in own.items())
        expected = sum(plan) + RANKS * on_top
        off = used.most / expected - 1
        good = apart <= 0.01 and abs(off) <= 0.01
        wrong += not good
        print(f"  {name:22} planned {' + '.join(f'{p / GIB:.2f}' for p in plan)} GiB, own count {100 * apart:.2f} % apart; with "
              f"{on_top / GIB:.2f} on top of each {expected / GIB:.2f}, the driver says {used.most / GIB:.2f}: {100 * off:+.2f} %"
              + ("" if good else "  BEYOND THE BOUND"), flush=True)
        time.sleep(0.5)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
