#!/usr/bin/env python3
"""Turns the folder that bench/run_step.sh filled into bench/results/step_<gpu>_<date>.md, prints it, and writes beside it
step_gpt1.7b_<gpu>_<date>.md with the whole output of that run.

Ratio = our tokens/s over the peer's in the same run. The peer's MFU is ours times that: the model is the same.
"""

import datetime
import json
import os
import pathlib
import re
import statistics
import sys

RESULTS = pathlib.Path(os.environ.get("RESULTS", pathlib.Path(__file__).resolve().parent.parent / "results"))
DETAILED = "gpt1.7b"


def gib(n):
    return f"{n / 2**30:.1f}"


def row(name, ours, peer):
    batch = ours["batch"]
    shape = f"{batch['micro_batch_size']} x {batch['sequence']}"
    if batch["micro_batches"] > 1:
        shape += f" x {batch['micro_batches']}"
    low, high = (batch["tokens_per_step"] / s for s in (max(ours["step_seconds"]), min(ours["step_seconds"])))
    mfu = ours["mfu_causal"]
    cells = [name, shape, f"**{ours['tokens_per_s']:,.0f}** ({low:,.0f} .. {high:,.0f})",
             f"{ours['median_step_ms']:.1f}", "?" if mfu is None else f"{100 * mfu:.1f} / {100 * ours['mfu_full']:.1f}",
             gib(ours["memory_bytes"]["sum"]), f"{ours['start_s']['first_step']:.1f}"]
    if peer is None:
        return cells + [""] * 5
    if "error" in peer:
        return cells + [peer["error"]] + [""] * 4
    ratio = ours["tokens_per_s"] / peer["tokens_per_s"]
    return cells + [f"{peer['tokens_per_s']:,.0f}", "?" if mfu is None else f"{100 * mfu / ratio:.1f}",
                    gib(peer["peak_bytes"]), f"{peer['first_step_s']:.1f}", f"**{ratio:.2f}**"]


def table(runs, device, date):
    lines = [f"# Training steps on one {device} ({date})", "",
             "bf16 weights, fp32 main weights, dropout 0 but where a row says so (0.1), random tokens; `bench/run_step.sh`. Speed is the median of the "
             "timed steps after warm-up (slowest .. fastest). MFU: causal attention counted once / whole, over "
             f"{runs[0][1]['peak_tflops'] or 0:g} TFLOP/s. Memory in GiB: ours is the sum of what we allocate, PyTorch's what "
             "its allocator held at most. First step: seconds from process start until its loss is known.", ""]
    ceilings = [r[1]["ceilings"] for r in runs]
    square = [c["square_tflops"] for c in ceilings if c["square_tflops"]]
    copies = [c["copy_gb_per_s"] for c in ceilings if c["copy_gb_per_s"]]
    if square and copies:
        lines += [f"In the same runs: bf16 GEMM {ceilings[0]['square']}^3 at {statistics.median(square):.0f} TFLOP/s, copy at "
                  f"{statistics.median(copies) / 1000:.2f} TB/s read + written.", ""]
    programs = sorted({r[2]["program"] for r in runs if r[2]})
    if programs:
        lines += ["Peer: " + "; ".join(programs) + ".", ""]
    head = ["model", "micro-batch x sequence", "tokens/s", "ms", "MFU %", "memory", "first step",
            "peer tokens/s", "peer MFU %", "peer memory", "peer first step", "ratio"]
    cells = [row(*r[:3]) for r in runs]
    if not programs:
        head, cells = head[:7], [c[:7] for c in cells]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(c) + " |" for c in cells]
    beside = [(name, ours, twins) for name, ours, _, _, twins in runs if twins]
    if beside:
        lines += ["", "Beside peers that run before and after ours in the same command (llm.c with bf16 gradients, LLMQ with bf16 "
                  "gradients and moments; ours are fp32); the ratio is to their mean:", "",
                  "| model | tokens/s | peer | before | after | ratio |", "|---|---|---|---|---|---|"]
        lines += [f"| {name} | {ours['tokens_per_s']:,.0f} | {twins[0]['program']} | "
                  + " | ".join(f"{t['tokens_per_s']:,.0f}" for t in twins)
                  + f" | **{ours['tokens_per_s'] / statistics.mean(t['tokens_per_s'] for t in twins):.3f}** |"
                  for name, ours, twins in beside]
    lines += ["", "Commands:", "", "```"] + [r[3] for r in runs] + ["```"]
    if os.environ.get("NOTE"):
        lines += ["", os.environ["NOTE"]]
    return "\n".join(lines) + "\n"


def last_json(path):
    """The peer prints one line of JSON; libraries may print before it."""
    if not path.exists():
        return None
    lines = [line for line in path.read_text().splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"program": "PyTorch", "error": "failed"}


def twins(logs, name):
    """The peer's run before ours and the one after; nothing unless both succeeded."""
    both = [last_json(logs / f"{name}.{when}.json") for when in ("before", "after")]
    return both if all(run and "error" not in run for run in both) else []


def main():
    logs = pathlib.Path(sys.argv[1])
    runs = []
    for command in sorted(logs.glob("*.command"), key=lambda p: p.stat().st_mtime_ns):
        name = command.name[: -len(".command")]
        ours = logs / f"{name}.json"
        if ours.exists():
            runs.append((name, json.loads(ours.read_text()), last_json(logs / f"{name}.peer.json"),
                         command.read_text().strip(), twins(logs, name)))
    if not runs:
        sys.exit("step_report.py: no run succeeded")
    device = runs[0][1]["device"]
    date = datetime.date.today().isoformat()
    gpu = re.sub(r"[^a-z0-9.]+", "_", device.lower().replace("nvidia", "")).strip("_")
    ending = f"{gpu}_{date}" + (f"_{os.environ['TAG']}" if os.environ.get("TAG") else "") + ".md"
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"step_{ending}"
    text = table(runs, device, date)
    path.write_text(text)
    print(text)
    print(path)
    for name, _, _, command, _ in runs:
        if name == DETAILED:
            detail = RESULTS / f"step_{name}_{ending}"
            body = (logs / f"{name}.txt").read_text()
            detail.write_text(f"# Where a step of {name} goes on one {device} ({date})\n\n```\n{command}\n\n{body}```\n")
            print(detail)


if __name__ == "__main__":
    main()
