#!/usr/bin/env python3
"""HuggingFaceTokenizer beside the real `tokenizers` and `transformers`: same ids, same text, for every kind of file.

Usage: python tests/oracle/hf_oracle.py build/teratron [--cases 1000] [--seed 1] [--only KIND,...] [--full] [--long]
Needs: pip install tokenizers; better also transformers and sentencepiece. Exit code 77 without tokenizers.

  fuzz        random text of all scripts with the tokenizer's own special tokens thrown in, --cases for each kind
  all         every code point there is, in three surroundings; a part of them, by the seed, without --full
  hard        long words (a megabyte with --full), runs of blanks, of marks and of beginnings of special tokens
  auto        AutoTokenizer on a folder with a tokenizer_config.json: ids, len(), eos
  --long      10 MB words: time must grow no faster than length
"""
import argparse
import json
import pathlib
import random
import sys
import tempfile
import time

import fuzz_text
from binary import Binary, check

try:
    import make_hf_tokenizers
    from tokenizers import Tokenizer
except ImportError:
    print("skipped: the package tokenizers is not installed")
    sys.exit(77)

SHARED = pathlib.Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def own_tokens(reference):
    return [token.content for token in reference.get_added_tokens_decoder().values()]


def fuzzed(reference, cases, seed):
    """Random texts; into every third some of the special tokens are put, whole, in part or in other letters."""
    rng, tokens = random.Random(seed), own_tokens(reference)
    texts = fuzz_text.texts(seed, cases, assigned_only=False)
    for i in range(0, len(texts), 3):
        for _ in range(rng.randrange(1, 4)):
            token = rng.choice(tokens)
            token = rng.choice([token, token, token.upper(), token[:-1], " " + token + "  ", token * 2])
            at = rng.randrange(len(texts[i]) + 1)
            texts[i] = texts[i][:at] + token + texts[i][at:]
    return texts


def every_code_point():
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for form in ("{}", "a{} ", "e{}\u0301"):
        for i in range(0, len(codes), 200):
            yield "".join(form.format(chr(c)) for c in codes[i:i + 200])


def hard_texts(reference, length):
    token = max(own_tokens(reference), key=len)
    units = ["a", "ab", "abcabd", " ", "\u4e2d", "\u2581", "e\u0301\u0323", "\U0001f468\u200d", token[:-1], token, "the "]
    return ["", " ", "\n" * 1000 + "x", *("x" * n for n in (47, 48, 49, 100, 101)),
            *(unit * (length // len(unit)) for unit in units)]


def compare(name, what, binary, reference, texts):
    texts = list(texts)
    expected = [e.ids for e in reference.encode_batch(texts)]
    for text, got, ids in zip(texts, binary.lines("encode", texts), expected):
        check(got == ids, f"{name}: {what}: {json.dumps(text)[:300]}: {got[:40]} instead of {ids[:40]}")
    decoded = reference.decode_batch(expected, skip_special_tokens=False)
    for ids, got, text in zip(expected, binary.lines("decode", expected), decoded):
        check(got == text, f"{name}: {what}: {ids[:40]} decodes to {json.dumps(got)[:200]} instead of "
                           f"{json.dumps(text)[:200]}")
    print(f"{name}: {what}: {len(texts)} texts, {sum(map(len, expected))} ids equal, both ways", flush=True)


def flags(path):
    return ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", str(path)]


def check_auto(binary_path, path, texts):
    """What transformers makes of tokenizer_config.json: the tokens it adds, and that add_bos_token changes nothing."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        print("auto: skipped: the package transformers is not installed")
        return
    folder = path.parent
    configs = [
        {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "pad_token": "<pad>"},
        {"eos_token": "<eos>", "additional_special_tokens": ["<a>", "<b>"]},
        {"eos_token": "<|endoftext|>", "added_tokens_decoder": {
            "0": {"content": "<|endoftext|>", "lstrip": True, "rstrip": False, "normalized": False,
                  "single_word": False, "special": True}}},
        {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "add_bos_token": True, "add_eos_token": True},
        {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "add_bos_token": True,
         "tokenizer_class": "GPT2Tokenizer"},
    ]
    for config in configs:
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast",
                                                                  **config}))
        auto = AutoTokenizer.from_pretrained(folder)
        rng = random.Random(5)
        texts = [t + rng.choice(["", "<eos>", " <a>x", "<pad><|endoftext|>", "  <|endoftext|>"]) for t in texts]
        got = Binary(binary_path, flags(folder)).lines("encode", texts)
        for text, ids in zip(texts, got):
            want = auto(text)["input_ids"]
            check(ids == want, f"auto: {json.dumps(text)[:200]}: {ids[:30]} instead of {want[:30]}")
        check(max(max(ids) for ids in got) < len(auto), "auto: an id beyond len(tokenizer)")
    print(f"auto: {len(configs)} configurations, {len(texts)} texts equal in transformers")


def check_long(binary, name):
    words = {"one letter": "a", "pattern": "abcab", "blanks": " ", "marks": "\u2581", "tokens": "<|endoftext", "s": "<s"}
    for what, unit in words.items():
        took = []
        for size in (1 << 20, 10 << 20):
            began = time.time()
            binary.lines("encode", [unit * (size // len(unit.encode()))])
            took.append(time.time() - began)
        check(took[1] < 20 * took[0] + 2, f"{name}: {what}: 1 MB in {took[0]:.1f} s, 10 MB in {took[1]:.1f} s")
        print(f"{name}: 10 MB of {what}: {took[1]:.1f} s, 1 MB: {took[0]:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        shared = SHARED if SHARED.exists() else None
        paths = make_hf_tokenizers.make(name, fuzz_text.texts(7, 1500), shared)
        if shared:
            paths["gpt2_hub"] = shared / "gpt2" / "tokenizer.json"
        for kind, path in paths.items():
            if args.only and kind not in args.only.split(","):
                continue
            binary, reference = Binary(args.binary, flags(path)), Tokenizer.from_file(str(path))
            compare(kind, "fuzz", binary, reference, fuzzed(reference, args.cases, args.seed))
            if kind in ("gpt2", "tekken", "llama2", "bert_uncased", "t5", "odd0", "odd1", "odd2", "odd3"):
                part = slice(None) if args.full else slice(args.seed % 50, None, 50)
                compare(kind, "all", binary, reference, list(every_code_point())[part])
            if kind in ("gpt2", "llama2", "bert_uncased", "t5"):
                compare(kind, "hard", binary, reference, hard_texts(reference, 1000000 if args.full else 20000))
            if args.long and kind in ("gpt2", "llama3", "llama2", "bert_uncased", "t5"):
                check_long(binary, kind)
        check_auto(args.binary, paths["gpt2"], fuzz_text.texts(args.seed, 300))


if __name__ == "__main__":
    main()
