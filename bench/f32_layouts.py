#!/usr/bin/env python3
"""How far losses and gradient norms of f32 runs on eight CPU processes are from those of one rank, as a run goes on.

    python3 bench/f32_layouts.py build/teratron [--mpi]

Ranks add in another order than one rank does. Each such rounding is small; a training run makes it grow, the faster the
larger its learning rate is.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

LAYOUTS = {
    "tp2 with SP, pp2, dp2 distributed optimizer": "--tensor-model-parallel-size 2 --sequence-parallel "
    "--pipeline-model-parallel-size 2 --use-distributed-optimizer --make-vocab-size-divisible-by 128",
    "tp4, pp2": "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --make-vocab-size-divisible-by 64",
    "tp2, cp2, dp2": "--tensor-model-parallel-size 2 --context-parallel-size 2 --make-vocab-size-divisible-by 128",
    "cp8": "--context-parallel-size 8",
    "pp4 with 2 chunks, dp2 distributed optimizer": "--pipeline-model-parallel-size 4 "
    "--num-layers-per-virtual-pipeline-stage 1 --use-distributed-optimizer --overlap-grad-reduce",
    "dp8 distributed optimizer": "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
}

# (width and dropout, sequence, steps, learning rate)
RUNS = [
    ("--hidden-size 32", 16, 20, "1e-2"),
    ("--hidden-size 32", 16, 60, "1e-2"),
    ("--hidden-size 128 --attention-dropout 0 --hidden-dropout 0", 64, 50, "1e-3"),
]

MPIRUN = "mpirun --oversubscribe --allow-run-as-root --mca btl_vader_single_copy_mechanism none -np 8"


def figures(command):
    """Losses and norms of a run, by step."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "metrics.jsonl"
        subprocess.run([*command, "--metrics-file", file], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [(line["lm_loss"], line["grad_norm"]) for line in lines if "lm_loss" in line]


def largest(many, one, which, steps):
    return max(abs(a[which] - b[which]) / b[which] for a, b in list(zip(many, one))[:steps])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--mpi", action="store_true", help="processes of mpirun instead of `launch local`")
    options = parser.parse_args()
    start = MPIRUN.split() if options.mpi else [options.binary, *"launch local --nproc-per-node 8 --".split()]
    for model, sequence, steps, rate in RUNS:
        run = (
            f"pretrain gpt --num-layers 8 {model} --num-attention-heads 8 --seq-length {sequence} "
            f"--max-position-embeddings {sequence} --micro-batch-size 1 --global-batch-size 8 --lr {rate} "
            f"--train-iters {steps} --tokenizer-type NullTokenizer --vocab-size 100 --make-vocab-size-divisible-by 256 "
            "--mock-data --log-interval 1 --eval-iters 0 --num-workers 0 --threads 1 --device cpu"
        ).split()
        one = figures([options.binary, *run])
        print(f"\n{model}, sequence {sequence}, {steps} steps, --lr {rate}: loss {one[0][0]:.2f} to {one[-1][0]:.2f}\n")
        print("| layout | losses of 5 steps | of 20 | of all | norms of 5 steps | of all |\n|---|---|---|---|---|---|")
        for name, layout in LAYOUTS.items():
            many = figures([*start, *([options.binary] if options.mpi else []), *run, *layout.split()])
            losses = " | ".join(f"{largest(many, one, 0, n):.1e}" for n in (5, 20, steps))
            norms = " | ".join(f"{largest(many, one, 1, n):.1e}" for n in (5, steps))
            print(f"| {name} | {losses} | {norms} |", flush=True)


if __name__ == "__main__":
    main()
