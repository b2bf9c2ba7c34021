#!/usr/bin/env python3
"""Turns the JSON lines of bench/run_cpu_step.sh into bench/results/cpu_step_<machine>_<date>.md and prints it.

The peer is whichever of PyTorch's two AdamW is faster at the shape. Ratio = its median step time over ours: above 1 we
are ahead. Beside it the ratio of the fastest steps, which other work on the machine disturbs least.
"""

import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "results"


def machine():
    """CPU model and cores in words, and the same as part of a file name."""
    fields = dict(re.findall(r"^([^:\n]+):\s*(.*)$", subprocess.check_output(["lscpu"], text=True), re.M))
    name = re.sub(r"\((R|TM|r|tm)\)", "", fields["Model name"])
    name = re.sub(r"\s+", " ", re.sub(r"\b(CPU|Processor)\b", "", name)).strip()
    words = f"{name}, {fields['CPU(s)']} cores"
    flags = fields.get("Flags", "")
    words += ", AVX-512" if "avx512f" in flags else ", AVX2" if "avx2" in flags else ""
    return words, re.sub(r"[^a-z0-9.]+", "_", f"{name} {fields['CPU(s)']} cores".lower()).strip("_")


def load(path):
    runs = {}
    for line in open(path):
        r = json.loads(line)
        entry = runs.setdefault((r["batch"], r["sequence"]), {}).setdefault(
            r["program"], dict(seconds=[], peak=0, threads=r["threads"]))
        entry["seconds"] += r["seconds"]
        entry["peak"] = max(entry["peak"], r["peak_rss_bytes"])
    return runs


def report(runs):
    words, file_words = machine()
    date = datetime.date.today().isoformat()
    threads = next(iter(next(iter(runs.values())).values()))["threads"]
    lines = [f"# GPT-2 124M training step on the CPU, f32 ({date})", "",
             f"{words}; {threads} threads each; the programs take turns in one run (`bench/run_cpu_step.sh`). A step is "
             "forward, loss, backward, clipping at norm 1, AdamW. Times are medians after warm-up, the fastest step in "
             "brackets; memory is the peak resident set of the process.", "",
             "| batch x sequence | program | step | tokens/s | peak memory | PyTorch's time / ours |",
             "|---|---|---|---|---|---|"]
    for (batch, sequence), programs in runs.items():
        median = {name: statistics.median(p["seconds"]) for name, p in programs.items()}
        fastest = {name: min(p["seconds"]) for name, p in programs.items()}
        ours = next(name for name in programs if name.startswith("Teratron"))
        peer = min((name for name in programs if name != ours), key=median.get)
        for name, p in programs.items():
            ratio = ""
            if name == peer:
                ratio = f"**{median[name] / median[ours]:.2f}** ({fastest[name] / fastest[ours]:.2f})"
            lines.append(f"| {batch} x {sequence} | {name} | {median[name] * 1e3:.0f} ms ({fastest[name] * 1e3:.0f}) | "
                         f"{batch * sequence / median[name]:.0f} | {p['peak'] / 2**30:.2f} GiB | {ratio} |")
    if os.environ.get("NOTE"):
        lines += ["", os.environ["NOTE"]]
    return "\n".join(lines) + "\n", RESULTS / f"cpu_step_{file_words}_{date}.md"


def main():
    text, path = report(load(sys.argv[1]))
    RESULTS.mkdir(exist_ok=True)
    path.write_text(text)
    print(text)
    print(path.relative_to(RESULTS.parent.parent))


if __name__ == "__main__":
    main()
