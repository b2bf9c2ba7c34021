"""Runs `teratron preprocess` and writes bench/results/preprocess_<machine>_<date>.md. See bench/run_preprocess.sh."""
import datetime
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import tokenize_report


def run(binary, vocabulary, source, prefix, workers):
    """Seconds on the clock and of the processor, largest memory in MB, and the shares that the program prints."""
    command = [binary, "preprocess", "--input", source, "--output-prefix", prefix, "--append-eod", "--workers", str(workers),
               "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", f"{vocabulary}/gpt2-vocab.json", "--merge-file",
               f"{vocabulary}/gpt2-merges.txt"]
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status != 0:
            sys.exit(f"{' '.join(map(str, command))} failed")
        out.seek(0)
        shares = re.search(r"Processor time .*", out.read().decode()).group(0).split(": ", 1)[1]
    for suffix in (".bin", ".idx"):
        os.unlink(f"{prefix}_text_document{suffix}")
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss / 1024, "shares": shares}


def repeat(source, target, size):
    with open(target, "wb") as out:
        while out.tell() < size:
            with open(source, "rb") as lines:
                shutil.copyfileobj(lines, out, 1 << 24)


def main():
    corpus, binary, vocabulary = sys.argv[1:4]
    rounds, large = int(os.environ.get("ROUNDS", "3")), float(os.environ.get("LARGE_GB", "5"))
    size = os.path.getsize(corpus)
    today = datetime.date.today().isoformat()
    lines = [f"# Preprocess, {today}", "",
             f"{tokenize_report.machine()}, {os.cpu_count()} cores. `teratron preprocess --append-eod` with GPT-2's "
             f"vocabulary, start of the program and syncing to disk included. Medians of {rounds} rounds; MB are those of "
             "the file of JSON lines.", "",
             "| input | workers | s | MB/s | MB/s per core used | largest memory | share of the time |", "|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        def row(source, source_size, workers, count):
            results = [run(binary, vocabulary, source, f"{folder}/out", workers) for _ in range(count)]
            median = {k: statistics.median(r[k] for r in results) for k in ("seconds", "cpu", "memory")}
            lines.append(f"| {source_size / 1e6:.0f} MB | {workers} | {median['seconds']:.2f} | "
                         f"{source_size / median['seconds'] / 1e6:.0f} | {source_size / median['cpu'] / 1e6:.0f} | "
                         f"{median['memory']:.0f} MB | {results[0]['shares']} |")
            print(lines[-1], flush=True)
        for workers in (1, 2):
            row(corpus, size, workers, rounds)
        if large > 0:
            repeat(corpus, f"{folder}/large.jsonl", large * 1e9)
            row(f"{folder}/large.jsonl", os.path.getsize(f"{folder}/large.jsonl"), 2, 1)
    if os.environ.get("NOTE"):
        lines += ["", os.environ["NOTE"]]
    slug = re.sub(r"[^a-z0-9.]+", "_", re.sub(r"\(r\)|@|processor|cpu", " ", tokenize_report.machine().lower())).strip("_")
    path = pathlib.Path(f"bench/results/preprocess_{slug}_{os.cpu_count()}_cores_{today}.md")
    path.write_text("\n".join(lines) + "\n")
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
