"""Writes bench/results/tokenize_worst_case_<machine>_<date>.md from what bench/tokenize --worst-case prints."""
import datetime
import json
import os
import pathlib
import re
import sys

import tokenize_report


def name_of(row):
    return row["pattern"] if row["vocabulary"] == "cl100k" else f"{row['pattern']}, {row['vocabulary']}"


def main():
    today = datetime.date.today().isoformat()
    rows = [json.loads(line) for line in open(sys.argv[1])]
    sizes = sorted({size for row in rows for size in row["megabytes"]})
    worst = max(row["ns_per_byte"][-1] / max(row["ns_per_byte"][0], 1) for row in rows)
    lines = [f"# Worst cases of tokenising, {today}", "",
             f"{tokenize_report.machine()}. One text of {', '.join(map(str, sizes))} MB, which is one string again and again; "
             f"one vocabulary of each kind. Nanoseconds of processor time per byte, a new encoder each time. From the "
             f"smallest to the largest the time per byte grows {worst:.1f} times at most.",
             "", f"| pattern or tokenizer | repeated | {' | '.join(f'{s} MB' for s in sizes)} |", "|---|---|" + "---|" * len(sizes)]
    for row in rows:
        text = ascii(bytes.fromhex(row["repeated"]).decode(errors="surrogateescape"))
        by_size = dict(zip(row["megabytes"], row["ns_per_byte"]))
        times = [f"{by_size[size]:.2f}" if size in by_size else "" for size in sizes]
        lines.append(f"| {name_of(row)} | `{text}` | {' | '.join(times)} |")
    if os.environ.get("NOTE"):
        lines += ["", os.environ["NOTE"]]
    slug = re.sub(r"[^a-z0-9.]+", "_", re.sub(r"\(r\)|@|processor|cpu", " ", tokenize_report.machine().lower())).strip("_")
    path = pathlib.Path(f"bench/results/tokenize_worst_case_{slug}_{os.cpu_count()}_cores_{today}.md")
    path.write_text("\n".join(lines) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
