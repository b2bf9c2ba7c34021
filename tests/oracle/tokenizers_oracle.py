#!/usr/bin/env python3
"""Compares the teratron binary with the real Python packages on fuzzed text.

Usage: python tests/oracle/tokenizers_oracle.py build/teratron [--cases 20000] [--seed 1] [--vocab V --merges M]
Needs: pip install tokenizers (transformers as well for the last check). Exit code 77 when they are missing.

  train       vocabulary and merges equal those of tokenizers' BpeTrainer
  files       tokenizer.json loads in tokenizers, and the folder in transformers' AutoTokenizer, with the same ids
  encode      ids equal those of tokenizers, with the learnt vocabulary and, if given, another one (GPT-2's)
  decode      the ids give back the text
  preprocess  .bin and .idx equal a plain Python reading of the format, for 1 and 3 workers
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import fuzz_text

try:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
except ImportError:
    print("skipped: the package tokenizers is not installed")
    sys.exit(77)

BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


class Binary:
    def __init__(self, path, vocab, merges):
        self.path, self.flags = path, ["--vocab-file", vocab, "--merge-file", merges]

    def lines(self, command, objects):
        text = "".join(json.dumps(o) + "\n" for o in objects)
        done = subprocess.run([self.path, "tokenizer", command, "--json", *self.flags], input=text.encode(),
                              stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]


def plain(vocab, merges):
    """As Megatron reads the two files: no special tokens inside text."""
    tokenizer = Tokenizer(models.BPE.from_file(vocab, merges))
    tokenizer.pre_tokenizer = BYTE_LEVEL
    return tokenizer


def hard_texts():
    return ["", "a" * 200000, "ab" * 50000, "abcabd" * 5000, " " * 50000, "\n" * 1000 + "x", "\u4e2d" * 20000,
            "".join(chr(c) for c in range(1, 0xD800)), "<|endoftext|>", "x" * 127, "x" * 128, "x" * 129]


def check_encode(name, binary, reference, texts):
    expected = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
    got = binary.lines("encode", texts)
    check(len(got) == len(texts), f"{name}: {len(got)} answers to {len(texts)} texts")
    for text, a, b in zip(texts, got, expected):
        check(a == b, f"{name}: {json.dumps(text)[:300]}: {a[:40]} instead of {b[:40]}")
    for text, back in zip(texts, binary.lines("decode", got)):
        check(text == back, f"{name}: decoding {json.dumps(text)[:300]} gives {json.dumps(back)[:300]}")
    print(f"{name}: {len(texts)} texts, {sum(map(len, expected))} ids equal")


def check_train(binary_path, folder, texts, size, min_frequency):
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    out = folder / f"tokenizer_{size}_{min_frequency}"
    subprocess.run([binary_path, "tokenizer", "train", "--input", corpus, "--vocab-size", str(size), "--output", out,
                    "--min-frequency", str(min_frequency)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    reference = Tokenizer(models.BPE())
    reference.pre_tokenizer = BYTE_LEVEL
    reference.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_frequency, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(reference.to_str())["model"]
    check(json.loads((out / "vocab.json").read_text()) == model["vocab"], f"train {size}: vocabulary")
    merges = [line.split(" ") for line in (out / "merges.txt").read_text().split("\n")[1:-1]]
    check(merges == [list(m) for m in model["merges"]], f"train {size}: merges")
    print(f"train: {size} tokens, min_frequency {min_frequency}: {len(merges)} merges equal")
    return out, reference


def check_files(folder, reference, texts):
    texts = [t for t in texts if "<|endoftext|>" not in t] + ["a <|endoftext|> b"]
    loaded = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in texts:
        check(loaded.encode(text).ids == reference.encode(text).ids, f"tokenizer.json: {json.dumps(text)[:200]}")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        print("files: tokenizer.json equal; transformers is not installed")
        return
    auto = AutoTokenizer.from_pretrained(folder)
    check(auto.eos_token == "<|endoftext|>" and auto.eos_token_id == 0, "AutoTokenizer: end of text")
    for text in texts:
        check(auto(text)["input_ids"] == reference.encode(text).ids, f"AutoTokenizer: {json.dumps(text)[:200]}")
    print(f"files: {len(texts)} texts equal in tokenizers and transformers")


def reference_files(documents, eod):
    """The bytes of .bin and .idx (uint16) for a list of documents, each a list of sequences."""
    tokens, lengths, index = [], [], [0]
    for document in documents:
        kept = [s for s in document if s]
        if kept:
            kept[-1] = kept[-1] + [eod]
        tokens += [t for s in kept for t in s]
        lengths += [len(s) for s in kept]
        index.append(len(lengths))
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + 2 * length)
    idx = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(index))
    idx += struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(lengths)}q", *offsets[:-1])
    idx += struct.pack(f"<{len(index)}q", *index)
    return struct.pack(f"<{len(tokens)}H", *tokens), idx


def check_preprocess(binary, folder, reference, texts):
    lines, documents = [], []
    for i, text in enumerate(texts):
        value = [text, "", text[:5]] if i % 7 == 0 else text
        lines.append(json.dumps({"id": i, "text": value}, ensure_ascii=i % 2 == 0))
        sentences = value if isinstance(value, list) else [value]
        documents.append([reference.encode(s, add_special_tokens=False).ids for s in sentences])
    (folder / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    bin_bytes, idx_bytes = reference_files(documents, eod=0)
    for workers in (1, 3):
        subprocess.run([binary.path, "preprocess", "--input", folder / "in.jsonl", "--output-prefix", folder / "out",
                        "--append-eod", "--workers", str(workers), *binary.flags], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check((folder / "out_text_document.bin").read_bytes() == bin_bytes, f"preprocess: .bin, {workers} workers")
        check((folder / "out_text_document.idx").read_bytes() == idx_bytes, f"preprocess: .idx, {workers} workers")
    print(f"preprocess: {len(texts)} documents, {len(bin_bytes) // 2} tokens equal")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocab")
    parser.add_argument("--merges")
    args = parser.parse_args()
    texts = fuzz_text.texts(args.seed, args.cases)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_train(args.binary, folder, texts[:500], 300, 0)
        check_train(args.binary, folder, texts[:500], 20000, 0)  # until no pair is left
        trained, reference = check_train(args.binary, folder, texts[:3000], 3000, 2)
        check_files(trained, reference, texts[:1000])
        vocab, merges = str(trained / "vocab.json"), str(trained / "merges.txt")
        learnt, learnt_reference = Binary(args.binary, vocab, merges), plain(vocab, merges)
        check_encode("learnt vocabulary", learnt, learnt_reference, texts + hard_texts())
        check_preprocess(learnt, folder, learnt_reference, texts[:2000])
        if args.vocab:
            check_encode("given vocabulary", Binary(args.binary, args.vocab, args.merges),
                         plain(args.vocab, args.merges), texts + hard_texts())


if __name__ == "__main__":
    main()
