"""Writes bench/results/tokenize_<machine>_<date>.md from the lines that bench/run_tokenize.sh collected."""
import collections
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import statistics
import sys


def machine():
    model = "unknown"
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return model


def main():
    runs = collections.defaultdict(list)
    for line in open(sys.argv[1]):
        run = json.loads(line)
        runs[run["vocabulary"], run["program"]].append(run)
    first = next(iter(runs.values()))[0]
    today = datetime.date.today().isoformat()
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("tokenizers", "tiktoken"))
    lines = [
        f"# Tokenising on one thread, {today}", "",
        f"{machine()}, {os.cpu_count()} cores; {versions}. Corpus: {first['bytes'] / 1e6:.1f} MB of text in "
        f"{first['documents']} documents (bench/make_text_corpus.sh). Each run begins cold: a new process, empty caches.",
        "", "The ids of all three are equal over the whole corpus; the run stops where they are not. Medians; seconds of "
        "the processor leave out the time that other programs had it.", "",
        "| vocabulary | program | runs | MB/s | MB/s of processor time | ours is faster by | by processor time |",
        "|---|---|---|---|---|---|---|",
    ]
    for vocabulary in sorted({v for v, _ in runs}):
        ours = runs[vocabulary, "teratron"]
        median = lambda rs, key: statistics.median(r[key] for r in rs)  # noqa: E731
        for program in ("teratron", "tiktoken", "tokenizers"):
            group = runs[vocabulary, program]
            assert all(r["tokens"] == ours[0]["tokens"] for r in group)
            assert program == "teratron" or all(r["ids_equal"] for r in group)
            wall, cpu = median(group, "seconds"), median(group, "cpu_seconds")
            ratios = ["", ""] if program == "teratron" else [
                f"{wall / median(ours, 'seconds'):.1f}x", f"{cpu / median(ours, 'cpu_seconds'):.1f}x"]
            lines.append(f"| {vocabulary} | {program} | {len(group)} | {group[0]['bytes'] / wall / 1e6:.1f} | "
                         f"{group[0]['bytes'] / cpu / 1e6:.1f} | {ratios[0]} | {ratios[1]} |")
    lines += ["", f"Tokens: {', '.join(sorted({v + ' ' + str(rs[0]['tokens']) for (v, _), rs in runs.items()}))}."]
    if os.environ.get("NOTE"):
        lines += ["", os.environ["NOTE"]]
    slug = re.sub(r"[^a-z0-9.]+", "_", re.sub(r"\(r\)|@|processor|cpu", " ", machine().lower())).strip("_")
    path = pathlib.Path(f"bench/results/tokenize_{slug}_{os.cpu_count()}_cores_{today}.md")
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
