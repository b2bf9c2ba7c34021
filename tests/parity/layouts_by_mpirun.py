#!/usr/bin/env python3
"""Every layout of eight processes, started by mpirun, against one rank.

    python3 tests/parity/layouts_by_mpirun.py build/teratron [--only WORD] [--dtypes f64,f32]

TP {1,2,4} x SP x PP {1,2,4} x chunks {1,2} x CP {1,2} x distributed optimizer x tied or not, with data parallelism for
the rest of the eight; what overlaps does so where embeddings are not tied.
  f64   `teratron verify`: every gradient, weights after three steps, losses, norms within 1e-12
  f32   `teratron pretrain`, five steps: losses within 2e-6, norms within 2e-5
Exits with 1 if a bound is not kept. Needs mpirun and a build with MPI; some seconds a layout on two cores.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RANKS, LAYERS = 8, 8
MODEL = (f"--num-layers {LAYERS} --hidden-size 32 --num-attention-heads 8 --group-query-attention --num-query-groups 2 "
         "--seq-length 32 --max-position-embeddings 32 --micro-batch-size 2 --global-batch-size 16 --train-iters 5 --lr 1e-3 "
         "--tokenizer-type NullTokenizer --vocab-size 99 --make-vocab-size-divisible-by 32 --mock-data --device cpu --threads 1 "
         "--eval-iters 0 --log-interval 1 --attention-dropout 0 --hidden-dropout 0").split()
BOUNDS = {"f64": (1e-12, 1e-12), "f32": (2e-6, 2e-5)}  # losses (and in f64 tensors), norms


def layouts():
    """(name, flags)."""
    for tp, pp, cp in itertools.product([1, 2, 4], [1, 2, 4], [1, 2]):
        if RANKS % (tp * pp * cp):
            continue
        for sp, chunks, zero, untied in itertools.product([False, True], [1, 2], [False, True], [False, True]):
            if (sp and tp == 1) or (chunks > 1 and pp == 1):
                continue
            flags = (f"--tensor-model-parallel-size {tp} --pipeline-model-parallel-size {pp} "
                     f"--context-parallel-size {cp}").split()
            flags += ["--sequence-parallel"] * sp + ["--use-distributed-optimizer"] * zero
            flags += ["--untie-embeddings-and-output-weights"] * untied
            if chunks > 1:
                flags += ["--num-layers-per-virtual-pipeline-stage", str(LAYERS // pp // chunks)]
            if zero and untied:
                flags += ["--overlap-grad-reduce", "--overlap-param-gather"]
                flags += ["--overlap-param-gather-with-optimizer-step"] * (sp or chunks > 1)
            if chunks > 1 and untied:
                flags += ["--overlap-p2p-communication-warmup-flush"]
            dp = RANKS // (tp * pp * cp)
            yield (f"tp{tp}{' sp' if sp else ''}, pp{pp}{f' x {chunks}' if chunks > 1 else ''}, cp{cp}, "
                   f"dp{dp}{' zero' if zero else ''}{', untied' if untied else ''}"), flags


class Wrong(Exception):
    pass


def run(binary, ranks, words):
    # As root, and with more processes than cores.
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    start = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    done = subprocess.run([*start, binary, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment)
    if done.returncode != 0:
        raise Wrong(f"exit code {done.returncode}\n{done.stdout[-1000:]}")
    return done.stdout


def verify(binary, flags, _one):
    """Largest difference of a tensor or loss, and of a norm."""
    text = run(binary, RANKS, ["verify", "gpt", *MODEL, *flags])
    found = {False: [], True: []}
    for line in text.splitlines():
        if difference := re.search(r"difference (\d\.\de[+-]\d+)", line):
            found["norm" in line].append(float(difference[1]))
    if not all(found.values()):
        raise Wrong(text[-1000:])
    return max(found[False]), max(found[True])


def train(binary, ranks, flags):
    with tempfile.TemporaryDirectory() as folder:
        metrics = pathlib.Path(folder) / "metrics"
        run(binary, ranks, ["pretrain", "gpt", *MODEL, *flags, "--metrics-file", str(metrics)])
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [row for row in rows if "lm_loss" in row]


def pretrain(binary, flags, one):
    untied = [flag for flag in flags if flag.startswith("--untie")]
    if not one.get(bool(untied)):
        one[bool(untied)] = train(binary, 1, untied)
    pairs = list(zip(train(binary, RANKS, flags), one[bool(untied)], strict=True))
    return tuple(max(abs(a[key] - b[key]) / abs(b[key]) for a, b in pairs) for key in ("lm_loss", "grad_norm"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", default="", help="layouts with this in their name")
    parser.add_argument("--dtypes", default="f64,f32")
    options = parser.parse_args()
    dtypes = options.dtypes.split(",")
    if not os.access(options.binary, os.X_OK) or not shutil.which("mpirun") or not set(dtypes) <= BOUNDS.keys():
        print("layouts_by_mpirun.py: needs mpirun, a program built with scripts/build.sh, and of the number formats "
              + ", ".join(BOUNDS), file=sys.stderr)
        return 2
    wrong = 0
    for dtype in dtypes:
        worst, count, good, one = (0.0, 0.0), 0, 0, {}
        for name, flags in layouts():
            if options.only not in name:
                continue
            count += 1
            try:
                found = (verify if dtype == "f64" else pretrain)(options.binary, flags, one)
            except Wrong as why:
                print(f"  {dtype} {name}: {why}", flush=True)
                continue
            kept = all(f <= bound for f, bound in zip(found, BOUNDS[dtype]))
            good += kept
            worst = tuple(map(max, worst, found))
            print(f"  {dtype} {name}: losses {found[0]:.1e} norms {found[1]:.1e}{'' if kept else '  BEYOND THE BOUND'}", flush=True)
        print(f"{dtype}: {good} of {count} layouts as one rank; losses {worst[0]:.1e}, norms {worst[1]:.1e} at most", flush=True)
        wrong += good < count or count == 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
