"""Tokenises a corpus with `tokenizers` or `tiktoken` on one thread and compares the ids. See bench/run_tokenize.sh.

Usage: python3 tokenize_peer.py PACKAGE CORPUS.jsonl (--vocab V.json --merges M.txt | --ranks R.tiktoken[.gz]) [--ids FILE]

The package's model is new, so its caches are empty; only its own encoding call is timed, not the reading of the corpus
nor the comparison. Prints one JSON object like bench/tokenize.
"""
import os

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import argparse  # noqa: E402
import base64  # noqa: E402
import gzip  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"""
          r"""\s+(?!\S)|\s""")
# The same pieces in the dialect of Hugging Face tokenizers, where $ would be the end of a line.
CL100K_HF = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|"""
             r"""\s*[\r\n]+|\s+(?!\S)|\s+""")


def byte_alphabet():
    """The byte that each printable character of a byte-level vocabulary stands for."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}


def read_ranks(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as lines:
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}


def tiktoken_encoder(args):
    import tiktoken
    if args.ranks:
        encoding = tiktoken.Encoding("cl100k", pat_str=CL100K, mergeable_ranks=read_ranks(args.ranks), special_tokens={})
    else:
        byte_of = byte_alphabet()
        vocab = json.load(open(args.vocab, encoding="utf-8"))
        ranks = {bytes(byte_of[c] for c in token): i for token, i in vocab.items() if token != "<|endoftext|>"}
        encoding = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: [encoding.encode_ordinary(text) for text in texts]


def merges_of(ranks):
    """All ways to make each token of two others, in the order of the ranks: what makes tokenizers merge as tiktoken."""
    merges = []
    for token, rank in ranks.items():
        cuts = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [(rank, ranks[a], ranks[b], a, b) for a, b in cuts]
    return [(a, b) for _, _, _, a, b in sorted(merges)]


def tokenizers_encoder(args):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    if args.ranks:
        char_of = {b: c for c, b in byte_alphabet().items()}
        printable = lambda token: "".join(char_of[b] for b in token)  # noqa: E731
        ranks = read_ranks(args.ranks)
        merges = [(printable(a), printable(b)) for a, b in merges_of(ranks)]
        tokenizer = Tokenizer(models.BPE({printable(t): r for t, r in ranks.items()}, merges, ignore_merges=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(CL100K_HF), "isolated"),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tokenizer = Tokenizer(models.BPE.from_file(args.vocab, args.merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return lambda texts: tokenizer.encode_batch_fast(texts, add_special_tokens=False)


def first_difference(texts, ids, expected, at):
    """Compares the ids of some documents with `expected` from `at` on; returns where the next document begins."""
    for text, got in zip(texts, ids):
        got = np.asarray(getattr(got, "ids", got), dtype=np.int32)
        stop = at + len(got)
        if stop >= len(expected) or expected[stop] != -1 or not np.array_equal(expected[at:stop], got):
            sys.exit(f"ids differ in the document that begins with {text[:60]!r}")
        at = stop + 1
    return at


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", choices=["tokenizers", "tiktoken"])
    parser.add_argument("corpus")
    parser.add_argument("--vocab")
    parser.add_argument("--merges")
    parser.add_argument("--ranks")
    parser.add_argument("--ids", help="what bench/tokenize --ids wrote")
    args = parser.parse_args()
    encode = tiktoken_encoder(args) if args.package == "tiktoken" else tokenizers_encoder(args)
    expected = np.memmap(args.ids, dtype=np.int32, mode="r") if args.ids else None
    result = {"program": args.package, "vocabulary": "cl100k" if args.ranks else "gpt2", "documents": 0, "bytes": 0,
              "tokens": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    at = 0

    def run(texts):
        nonlocal at
        start, cpu_start = time.perf_counter(), time.process_time()
        ids = encode(texts)
        result["cpu_seconds"] += time.process_time() - cpu_start
        result["seconds"] += time.perf_counter() - start
        result["documents"] += len(texts)
        result["bytes"] += sum(len(t.encode()) for t in texts)
        result["tokens"] += sum(len(getattr(i, "ids", i)) for i in ids)
        if expected is not None:
            at = first_difference(texts, ids, expected, at)

    texts = []
    with open(args.corpus, encoding="utf-8") as lines:
        for line in lines:
            texts.append(json.loads(line)["text"])
            if len(texts) == 1000:
                run(texts)
                texts = []
    run(texts)
    if expected is not None:
        if at != len(expected):
            sys.exit("the files have different numbers of documents")
        result["ids_equal"] = True
    print(json.dumps(result))


if __name__ == "__main__":
    main()
