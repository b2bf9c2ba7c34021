#!/usr/bin/env python3
"""Compares TikTokenizer with the real tiktoken package: Megatron's JSON vocabularies with patterns v1 and v2, and
.tiktoken files.

Usage: python tests/oracle/tiktoken_oracle.py build/teratron [--cases 5000] [--seed 1] [--cl100k cl100k_base.tiktoken.gz]
Needs: pip install tiktoken. Exit code 77 when it is missing.
"""
import argparse
import base64
import collections
import gzip
import json
import pathlib
import sys
import tempfile

import fuzz_text
from binary import Binary, check

try:
    import tiktoken
    import tiktoken_ext.openai_public as public
except ImportError:
    print("skipped: the package tiktoken is not installed")
    sys.exit(77)

PATTERNS = {
    "v1": r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "v2": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+",
}


def public_encoding(name, ranks):
    """As tiktoken defines it, on ranks that are at hand instead of those it would fetch."""
    public.load_tiktoken_bpe = lambda *_, **__: ranks
    public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: ranks
    return getattr(public, name)()


def make_tokens(texts, count):
    """Frequent strings of bytes: any list of those is a vocabulary, also one that no training would give."""
    seen = collections.Counter()
    for text in texts:
        data = text.encode()
        for length in (2, 3, 4, 6, 9):
            seen.update(data[i:i + length] for i in range(len(data) - length + 1))
    return [bytes([b]) for b in range(256)] + [token for token, _ in seen.most_common(count - 256)]


def compare(name, binary, encoding, texts, first=0):
    expected = [[first + i for i in encoding.encode_ordinary(t)] for t in texts]
    for text, a, b in zip(texts, binary.lines("encode", texts), expected):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            check(False, f"{name}: {json.dumps(text)[:300]}: at {at}: {a[at:at + 20]} instead of {b[at:at + 20]}")
    for text, back in zip(texts, binary.lines("decode", expected)):
        check(text == back, f"{name}: decoding gives {json.dumps(back)[:300]} instead of {json.dumps(text)[:300]}")
    print(f"{name}: {len(texts)} texts, {sum(map(len, expected))} ids equal")


def check_json(binary_path, folder, tokens, texts):
    path = folder / "vocab.json"
    path.write_text(json.dumps([{"rank": i, "token_bytes": base64.b64encode(t).decode(),
                                 "token_str": t.decode(errors="replace")} for i, t in enumerate(tokens)]))
    kept = len(tokens) - 100  # the rest is not used
    for name, pattern in PATTERNS.items():
        encoding = tiktoken.Encoding(name, pat_str=pattern, special_tokens={},
                                     mergeable_ranks={t: i for i, t in enumerate(tokens[:kept])})
        flags = ["--tokenizer-type", "TikTokenizer", "--tokenizer-model", str(path), "--tiktoken-pattern", name,
                 "--vocab-size", str(kept + 20), "--tiktoken-num-special-tokens", "20", "--tiktoken-special-tokens",
                 "<pad>", "<s>", "</s>", "<unk>"]
        binary = Binary(binary_path, flags)
        compare(f"JSON, {name}", binary, encoding, texts, 20)
        names = binary.lines("decode", [[0, 1, 2, 3, 4, 19]])[0]
        check(names == "<pad><s></s><unk><SPECIAL_4><SPECIAL_19>", f"names of special tokens: {names}")


def check_ranks(binary_path, path, encoding, texts, flags=()):
    flags = ["--tokenizer-type", "TikTokenizer", "--tokenizer-model", str(path), *flags]
    compare(pathlib.Path(path).name, Binary(binary_path, flags), encoding, texts)


def hard_texts():
    return ["", "a" * 50000, "ab" * 20000, "abcabd" * 5000, " " * 20000, "\n" * 1000 + "x", "x" + " \n" * 500,
            "\u4e2d" * 5000, "<|endoftext|>", "<s> </s> <SPECIAL_4>", "don't DON'T we'Re 12345 1 22 333", "a/\n/b//\r\n",
            "x" * 127, "x" * 128, "x" * 129, "x  ", "x \t", "\u01c5\u01c5 ABc aBC \u02b0\u0301"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cl100k", help="cl100k_base.tiktoken, packed with gzip")
    args = parser.parse_args()
    texts = fuzz_text.texts(args.seed, args.cases) + hard_texts()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokens = make_tokens(fuzz_text.texts(9, 400), 5000)
        check_json(args.binary, folder, tokens, texts)
        path = folder / "small.tiktoken"
        path.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(tokens)))
        ranks = {t: i for i, t in enumerate(tokens)}
        for pattern in ("cl100k", "o200k"):
            own = public_encoding(f"{pattern}_base", ranks)
            encoding = tiktoken.Encoding(pattern, pat_str=own["pat_str"], mergeable_ranks=ranks, special_tokens={})
            check_ranks(args.binary, path, encoding, texts, ["--tiktoken-pattern", pattern])
    if args.cl100k:
        lines = gzip.open(args.cl100k).read().split(b"\n")
        ranks = {base64.b64decode(t): int(i) for t, i in (line.split(b" ") for line in lines if line)}
        check_ranks(args.binary, args.cl100k, tiktoken.Encoding(**public_encoding("cl100k_base", ranks)), texts)


if __name__ == "__main__":
    main()
