"""Trains with both programs and writes bench/results/train_tokenizer_<machine>_<date>.md. See run_train_tokenizer.sh."""
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import tokenize_report


def measured(command):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def train_peer(corpus, size, out):
    """Runs in a process of its own: the lines are read one by one, as a user would do it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with open(corpus) as lines:
        tokenizer.train_from_iterator((json.loads(line)["text"] for line in lines), trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(out)


def main():
    corpus, binary, size, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if megabytes > 0:
            with open(corpus, "rb") as lines, open(folder / "part.jsonl", "wb") as part:
                while part.tell() < megabytes * 1e6:
                    part.write(lines.readline())
            corpus = folder / "part.jsonl"
        ours = measured([binary, "tokenizer", "train", "--input", corpus, "--vocab-size", str(size), "--min-frequency", "2",
                         "--output", folder / "ours"])
        peer = measured([sys.executable, __file__, "--peer", corpus, str(size), folder / "peer.json"])
        again = measured([binary, "tokenizer", "train", "--input", corpus, "--vocab-size", str(size), "--min-frequency", "2",
                          "--output", folder / "again"])
        equal = (json.loads((folder / "ours" / "vocab.json").read_text())
                 == json.loads((folder / "peer.json").read_text())["model"]["vocab"])
        bytes_read = os.path.getsize(corpus)
    if not equal:
        sys.exit("the vocabularies differ")
    ours = tuple(min(a, b) for a, b in zip(ours, again))
    today = datetime.date.today().isoformat()
    lines = [f"# Training a tokenizer, {today}", "",
             f"{tokenize_report.machine()}, {os.cpu_count()} cores; tokenizers {importlib.metadata.version('tokenizers')}. "
             f"{bytes_read / 1e6:.0f} MB of JSON lines (bench/make_text_corpus.sh), a vocabulary of {size}; both learn the "
             "same; ours on one thread, tokenizers on all cores. Ours ran before and after the other; the better counts.", "",
             "| program | s | s of processor time | largest memory |", "|---|---|---|---|"]
    for program, (wall, cpu, memory) in (("teratron", ours), ("tokenizers", peer)):
        lines.append(f"| {program} | {wall:.1f} | {cpu:.1f} | {memory:.0f} MB |")
    lines += ["", f"Ours is faster by {peer[0] / ours[0]:.1f}x, by processor time {peer[1] / ours[1]:.1f}x."]
    if os.environ.get("NOTE"):
        lines += ["", os.environ["NOTE"]]
    slug = re.sub(r"[^a-z0-9.]+", "_", re.sub(r"\(r\)|@|processor|cpu", " ", tokenize_report.machine().lower())).strip("_")
    path = pathlib.Path(f"bench/results/train_tokenizer_{slug}_{os.cpu_count()}_cores_{today}.md")
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1] == "--peer":
        train_peer(sys.argv[2], int(sys.argv[3]), str(sys.argv[4]))
    else:
        main()
