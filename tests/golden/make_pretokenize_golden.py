#!/usr/bin/env python3
"""Writes tests/golden/pretokenize/cases.jsonl: how the real packages cut text, for every pattern we know.

Usage: python tests/golden/make_pretokenize_golden.py [--cases 300] [--seed 1] [--output FILE]
       (needs: pip install tokenizers tiktoken)

One line {"text": ..., "pieces": {pattern: [length of each piece in bytes]}} per case, and a first line with the regular
expressions. Every pattern runs in tiktoken; those of tokenizer.json files in Hugging Face tokenizers as well, and both
must agree. tiktoken does not show its pieces: it is given a vocabulary of all substrings of the text, so that each
piece is one token.
"""
import argparse
import json
import pathlib
import random
import sys

import tiktoken
from tokenizers import Regex, pre_tokenizers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "oracle"))
import fuzz_text  # noqa: E402

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
OTHER = r"[^\r\n\p{L}\p{N}]?"
# name: every spelling that must give the same pieces; "tiktoken" marks those that only it reads alike ($ differs).
PATTERNS = {
    "gpt2": [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
             r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
             r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
             "tiktoken:" + r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"],
    "cl100k": ["tiktoken:" + r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
               r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"],
    "llama3": [CONTRACTIONS + "|" + OTHER + r"\p{L}+|\p{N}{1,3}" + TAIL,
               CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
               r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
               r"\s+(?!\S)|\s+"],
    "qwen2": [CONTRACTIONS + "|" + OTHER + r"\p{L}+|\p{N}" + TAIL],
    "qwen3_5": [CONTRACTIONS + "|" + OTHER + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "tekken_v1": [r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
                  r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                  OTHER + r"\p{L}+|\p{N}" + TAIL],
    "tekken_v2": [OTHER + UPPER + "*" + LOWER + "+|" + OTHER + UPPER + "+" + LOWER + r"*|\p{N}" + CASED_TAIL],
    "o200k": [OTHER + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|" + OTHER + UPPER + "+" + LOWER + "*" + CONTRACTIONS +
              r"?|\p{N}{1,3}" + CASED_TAIL],
}
ALPHABET = list("aZbY19 \t\n\r'/.!-\u00a0\u3000\u00e9\u00c9\u017f\u01c5\u02b0\u4e2d\u05d0\u0301\u0663\u00bd\U0001f600\u200d\u0950"
                "\u094d\U00010d4a\u0149\ufb06\x00\x1c") + ["'s", "'S", "'re", "'LL", "'Ve", "'\u017f", "  ", "\r\n", "the", "THE"]


def texts(seed, count):
    rng = random.Random(seed)
    out = ["", " ", "\n", "  \n  ", "a \n  ", "\r\n\r\n x", "!\n\n  x", "'s", "''s", "it's IT'S", "x'\u017f", "1234567", "a1b22c333d4444",
           "\u0301ABC", "\u0301abc", "AB\u4e2dCD", "\u4e2dAb", "a\u4e2dAb", "ABCdefGHI", "x/\n/y", " \u3000 x", "\t\tx", "\t1", "\t!", "  !", ".hello",
           "..hello", " .hello", "a.\r\n.b", "don't've", "\u0301's", "A's's", "\u00bd\u00bd\u00bd\u00bd"]
    while len(out) < count:
        if rng.random() < 0.5:
            out.append("".join(rng.choice(ALPHABET) for _ in range(rng.randrange(1, 30))))
        else:
            out.append(fuzz_text.random_text(rng)[:40])
    return out[:count]


def tiktoken_pieces(regex, text):
    data = text.encode()
    tokens = {bytes([i]) for i in range(256)}
    tokens.update(data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1))
    ranks = {t: i for i, t in enumerate(sorted(tokens, key=lambda t: (len(t), t)))}
    encoding = tiktoken.Encoding("all", pat_str=regex, mergeable_ranks=ranks, special_tokens={})
    return [len(encoding.decode_single_token_bytes(t)) for t in encoding.encode_ordinary(text)]


def hf_pieces(regex, text):
    split = pre_tokenizers.Split(Regex(regex), "isolated")
    return [len(piece.encode()) for piece, _ in split.pre_tokenize_str(text)]


def pieces(spellings, text):
    results = []
    for spelling in spellings:
        only_tiktoken = spelling.startswith("tiktoken:")
        regex = spelling.removeprefix("tiktoken:")
        results.append(tiktoken_pieces(regex, text))
        if not only_tiktoken:
            results.append(hf_pieces(regex, text))
    assert all(r == results[0] for r in results), (spellings, text, results)
    assert sum(results[0]) == len(text.encode())
    return results[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=str(HERE / "pretokenize" / "cases.jsonl"))
    args = parser.parse_args()
    with open(args.output, "w") as out:
        regexes = {name: [s.removeprefix("tiktoken:") for s in spellings] for name, spellings in PATTERNS.items()}
        out.write(json.dumps({"regexes": regexes}) + "\n")
        for text in texts(args.seed, args.cases):
            out.write(json.dumps({"text": text, "pieces": {n: pieces(s, text) for n, s in PATTERNS.items()}}) + "\n")


if __name__ == "__main__":
    main()
