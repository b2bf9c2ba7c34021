#!/usr/bin/env python3
"""Trains a small GPT on GPUs in every kind of layout and holds it against one rank.

    python3 tests/nccl/layouts.py build/teratron [--only WORD] [--ranks N] [--steps 20] [--dtypes f32,bf16] [--mps]
                                  [--at-once 1]

Ranks share the GPUs there are (launch local --share-gpus). They take turns on a GPU, and each collective costs some
milliseconds; with --mps up to three of them run side by side, under a multi-process service of CUDA's that is started
and ended here (more do not come up under it). For each layout:
  losses    of every step, and norms of gradients, against one rank: the largest relative difference and its bound
  volume    what NCCL itself says it carried (its own log of calls) against `teratron plan`, to the byte
  memory    what `teratron plan` says of each stage, and the most that its ranks had taken
  overlap   of a timeline of rank 0: how much of the time of NCCL's kernels others ran beside them
Exits with 1 if a bound is not kept.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODEL = ("--num-layers 4 --hidden-size 256 --num-attention-heads 8 --group-query-attention --num-query-groups 4 --swiglu "
         "--normalization RMSNorm --position-embedding-type rope --seq-length 256 --max-position-embeddings 256 "
         "--micro-batch-size 2 --global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 1000 --mock-data "
         "--lr 3e-4 --min-lr 3e-5 --clip-grad 1.0 --weight-decay 0.1 --adam-beta2 0.95 --attention-dropout 0 "
         "--hidden-dropout 0 --log-interval 1 --eval-iters 0 --num-workers 0").split()
TP, PP, CP = "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size"
SP, ZERO = "--sequence-parallel", "--use-distributed-optimizer"
OVERLAP = "--overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 300000"
INTERLEAVED = "--num-layers-per-virtual-pipeline-stage"
UNTIED = "--untie-embeddings-and-output-weights"
LAYOUTS = [
    ("tp2", 2, f"{TP} 2"),
    ("tp2 sp", 2, f"{TP} 2 {SP}"),
    ("pp2", 2, f"{PP} 2"),
    ("pp2 interleaved", 2, f"{PP} 2 {INTERLEAVED} 1"),
    ("pp2 interleaved, ahead at the ends", 2, f"{PP} 2 {INTERLEAVED} 1 --overlap-p2p-communication-warmup-flush"),
    ("cp2", 2, f"{CP} 2"),
    ("cp2 gathered", 2, f"{CP} 2 --cp-comm-type allgather"),
    ("dp2", 2, ""),
    ("dp2 zero", 2, ZERO),
    ("dp2 zero overlapped", 2, f"{ZERO} {OVERLAP}"),
    ("dp2 zero overlapped, also with the update", 2, f"{ZERO} {OVERLAP} --overlap-param-gather-with-optimizer-step"),
    ("tp4 sp", 4, f"{TP} 4 {SP}"),
    ("pp4 tied", 4, f"{PP} 4"),
    ("pp4 untied", 4, f"{PP} 4 {UNTIED}"),
    ("tp2 sp, pp2", 4, f"{TP} 2 {SP} {PP} 2"),
    ("pp2 interleaved, dp2 zero", 4, f"{PP} 2 {INTERLEAVED} 1 {ZERO}"),
    ("pp3, embedding and loss alone", 3,
     f"{PP} 3 --decoder-first-pipeline-num-layers 0 --decoder-last-pipeline-num-layers 0"),
    ("tp2, pp2, saved activations split", 4,
     f"{TP} 2 {PP} 2 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
     "--distribute-saved-activations"),
    ("tp2, cp2", 4, f"{TP} 2 {CP} 2"),
    ("cp2, dp2 zero", 4, f"{CP} 2 {ZERO}"),
    ("cp4", 4, f"{CP} 4"),
    ("tp2 sp, dp2 zero, full recompute", 4,
     f"{TP} 2 {SP} {ZERO} --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"),
    ("tp2 sp, dp2 zero overlapped", 4, f"{TP} 2 {SP} {ZERO} {OVERLAP}"),
]
TIMELINES = {"tp2", "tp2 sp", "pp2 interleaved", "pp2 interleaved, ahead at the ends", "cp2", "dp2", "dp2 zero",
             "dp2 zero overlapped", "dp2 zero overlapped, also with the update"}
MOST_UNDER_SERVICE = 3  # ranks
# Largest relative difference of a loss and of a norm of gradients in 20 steps.
BOUNDS = {"f32": (1e-4, 1e-2), "bf16": (5e-3, 5e-2)}
# Bytes of an element, by the number NCCL gives its type.
ITEM = {0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}


running = set()


def run(command, output=None, **kwargs):
    """Runs it to its end; what it printed goes to the file, and no process of it is left after the time limit."""
    with open(output or os.devnull, "w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **kwargs)
        running.add(process)
        try:
            code = process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(3)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = "none: it did not end in 90 s"
        running.discard(process)
        out.seek(0)
        return code, out.read()


def end_running():
    for process in list(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def train(binary, flags, ranks, folder, steps, timeline=False, service={}):
    """Losses and norms by step, the output, and NCCL's log by rank."""
    metrics = folder / "metrics.jsonl"
    command = [binary, "launch", "local", "--share-gpus", "--nproc-per-node", str(ranks), "--", "pretrain", "gpt", *flags,
               "--train-iters", str(steps), "--metrics-file", str(metrics)]
    if timeline:
        command += ["--profile", "--profile-step-start", "3", "--profile-step-end", "5", "--profile-timeline", str(folder)]
    environment = {**os.environ, **service, "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "COLL",
                   "NCCL_DEBUG_FILE": str(folder / "nccl.%p")}
    code, text = run(command, folder / "output", env=environment)
    if code != 0:
        raise RuntimeError(f"exit code {code}:\n" + "\n".join(text.splitlines()[-15:]))
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [row for row in rows if "lm_loss" in row], text


@contextlib.contextmanager
def multi_process_service(wanted):
    """The variables by which processes find it; none if it is not wanted."""
    if not wanted:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = {**os.environ, **variables}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True)
        try:
            yield variables
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=environment, check=False)


@contextlib.contextmanager
def ended_when_interrupted(pool):
    """Otherwise everything that waits for its turn would still be run."""
    try:
        yield
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        end_running()
        raise


def difference(a, b):
    return max(abs(x - y) / max(abs(y), 1e-30) for x, y in zip(a, b, strict=True))


def carried(folder, steps):
    """Bytes by rank file and step that NCCL carried, as the fewest an algorithm can do with, without the small ones."""
    totals = []
    for path in sorted(folder.glob("nccl.*")):
        total, small = 0.0, 0
        for line in path.read_text(errors="replace").splitlines():
            found = re.search(r"(AllReduce|AllGather|ReduceScatter|Broadcast|Send|Recv): .*?count (\d+) datatype (\d+) .*?nranks=(\d+)", line)
            if not found:
                continue
            kind, count, datatype, ranks = found[1], int(found[2]), int(found[3]), int(found[4])
            size = count * ITEM[datatype]
            share = {"AllReduce": 2 * size * (ranks - 1) / ranks, "AllGather": size * (ranks - 1),
                     "ReduceScatter": size * (ranks - 1), "Broadcast": size * (ranks - 1) / ranks, "Send": size,
                     "Recv": 0}[kind]
            if size <= 24:
                small += 1
            else:
                total += share
        totals.append((total / steps, small))
    return totals


def taken(output):
    """The most bytes of device memory that each rank with a log line of it had taken, by rank."""
    return {int(m[1]): float(m[2]) * 2**20 for m in re.finditer(r"\[Rank (\d+)\].*max reserved: ([\d.]+)", output)}


def overlapped(path):
    """Milliseconds of NCCL's kernels, and of these with another kernel beside them."""
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    nccl = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if "nccl" in e["name"].lower())
    others = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if "nccl" not in e["name"].lower())
    total = beside = 0.0
    for begin, end in nccl:
        total += end - begin
        at = begin
        for b, e in others:
            if e <= at or b >= end:
                continue
            beside += min(e, end) - max(b, at)
            at = max(at, min(e, end))
    return total / 1000, beside / 1000


def planned_stages(binary, flags, ranks, steps):
    command = [binary, "plan", "gpt", *flags, "--train-iters", str(steps), "--world-size", str(ranks), "--json"]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(text[text.index("{"):])["layout"]["stages"]


def words_of(options, dtype, flags):
    return MODEL + ["--device", options.device] + (["--bf16"] if dtype == "bf16" else []) + flags.split()


def hold_against_one(options, dtype, layout, one, root, service):
    """The line to print, and whether all is well."""
    name, ranks, flags = layout
    loss_bound, norm_bound = BOUNDS[dtype]
    folder = root / dtype / re.sub(r"\W+", "_", name)
    folder.mkdir(parents=True, exist_ok=True)
    words = words_of(options, dtype, flags)
    try:
        rows, output = train(options.binary, words, ranks, folder, options.steps, name in TIMELINES, service)
    except RuntimeError as error:
        return f"  {name:36} FAILED: {error}", False
    losses = difference([r["lm_loss"] for r in rows], [r["lm_loss"] for r in one])
    norms = difference([r["grad_norm"] for r in rows], [r["grad_norm"] for r in one])
    ok = losses <= loss_bound and norms <= norm_bound
    text = f"  {name:36} losses {losses:.1e} norms {norms:.1e}"
    stages = planned_stages(options.binary, words, ranks, options.steps)
    expected = sorted(sum(sent["bytes"] for sent in stage["sent_per_step"].values()) for stage in stages)
    volumes = sorted({round(v) for v, _ in carried(folder, options.steps)})
    same = not volumes or all(any(abs(v - e) <= 1e-4 * e + 64 for e in expected) for v in volumes)
    text += f" volume {volumes[-1] / 1e6 if volumes else 0:.3f} MB/step, planned {expected[-1] / 1e6:.3f}"
    took = taken(output) if options.device == "cuda" else {}
    pairs = [(stages[rank * len(stages) // ranks]["total"], most) for rank, most in sorted(took.items())]
    fits = all(abs(plan - most) <= 0.01 * most for plan, most in pairs)
    if pairs:
        off = max(abs(plan - most) / most for plan, most in pairs)
        text += f", memory planned {pairs[0][0] / 1e6:.1f} MB, taken {pairs[0][1] / 1e6:.1f}, "
        text += f"at most {100 * off:.2f} % apart on {len(pairs)} ranks"
    if (folder / "timeline-rank0.json").exists():
        text += ", NCCL %.2f ms, %.2f beside others" % overlapped(folder / "timeline-rank0.json")
    text += ("" if fits else "  MEMORY DIFFERS") + ("" if ok else "  BEYOND THE BOUND")
    text += "" if same else f"  VOLUME DIFFERS {volumes} {expected}"
    return text, ok and same and fits


def hold_all(options, wanted, service):
    root = pathlib.Path(options.keep or tempfile.mkdtemp())
    wrong = 0
    for dtype in options.dtypes.split(","):
        loss_bound, norm_bound = BOUNDS[dtype]
        print(f"{dtype}: bounds {loss_bound:g} for losses, {norm_bound:g} for norms, {options.steps} steps", flush=True)
        alone = {}
        for untied in {UNTIED in flags for _, _, flags in wanted}:
            folder = root / dtype / f"one{'_untied' if untied else ''}"
            folder.mkdir(parents=True, exist_ok=True)
            try:
                alone[untied] = train(options.binary, words_of(options, dtype, UNTIED if untied else ""), 1, folder,
                                      options.steps)[0]
            except RuntimeError as error:
                print(f"layouts.py: one rank alone: {error}", file=sys.stderr)
                return 1
        side_by_side = [layout for layout in wanted if service and layout[1] <= MOST_UNDER_SERVICE]
        in_turns = [layout for layout in wanted if layout not in side_by_side]
        for layouts, at_once, variables in [(side_by_side, 1, service), (in_turns, options.at_once, {})]:
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool, ended_when_interrupted(pool):
                jobs = [pool.submit(hold_against_one, options, dtype, layout, alone[UNTIED in layout[2]], root, variables)
                        for layout in layouts]
                for job in concurrent.futures.as_completed(jobs):
                    text, good = job.result()
                    wrong += not good
                    print(text, flush=True)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--ranks", type=int, help="only layouts of so many")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--at-once", type=int, default=1, help="so many runs beside each other, without --mps")
    parser.add_argument("--mps", action="store_true", help="under CUDA's multi-process service")
    parser.add_argument("--keep", default="", help="folder for the outputs")
    options = parser.parse_args()
    wanted = [layout for layout in LAYOUTS if options.only in layout[0] and layout[1] == (options.ranks or layout[1])]
    unknown = set(options.dtypes.split(",")) - BOUNDS.keys()
    if not os.access(options.binary, os.X_OK) or not wanted or unknown:
        print("layouts.py: " + (f"no layout has '{options.only}' in its name" if not wanted else
                                f"no number format {', '.join(unknown)}; there are {', '.join(BOUNDS)}" if unknown else
                                f"{options.binary} is not a program; build it with scripts/build.sh"), file=sys.stderr)
        return 2
    if options.mps and not shutil.which("nvidia-cuda-mps-control"):
        print("layouts.py: nvidia-cuda-mps-control is not there; leave out --mps", file=sys.stderr)
        return 2
    try:
        with multi_process_service(options.mps) as service:
            return hold_all(options, wanted, service)
    except KeyboardInterrupt:
        end_running()  # one rank alone, which runs in no pool
        print("layouts.py: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
