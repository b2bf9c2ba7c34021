#!/usr/bin/env python3
"""Compares BertWordPieceLowerCase and BertWordPieceCase with Python: with the rules of Megatron's tokenizer written down
here, and with the classes of transformers where those have the same rules.

Usage: python tests/oracle/bert_oracle.py build/teratron [--cases 5000] [--seed 1] [--uncased V.txt] [--cased V.txt]
Needs: nothing but Python for the first, pip install transformers for the second.

Only characters that Python's Unicode tables know are used: the classes of later ones differ between versions.
"""
import argparse
import json
import pathlib
import tempfile
import unicodedata

import fuzz_text
from binary import Binary, check

try:
    from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, WordpieceTokenizer
except ImportError:
    BasicTokenizer = None

CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
           (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


def is_punctuation(char):
    code = ord(char)
    return (33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126 or
            unicodedata.category(char).startswith("P"))


def clean(text):
    out = []
    for char in text:
        category = unicodedata.category(char)
        if char in " \t\n\r" or category == "Zs":
            out.append(" ")
        elif char in "\0\ufffd" or category in ("Cc", "Cf"):
            continue
        elif any(low <= ord(char) <= high for low, high in CHINESE):
            out.append(f" {char} ")
        else:
            out.append(char)
    return "".join(out)


def words_of(text, lower):
    for word in clean(text).split():
        if lower:
            word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        yield from "".join(f" {c} " if is_punctuation(c) else c for c in word).split()


def pieces_of(word, vocab):
    if len(word) > 200:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


def string_of(tokens):
    text = " ".join(tokens).replace(" ##", "").strip()
    for what in (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're"):
        text = text.replace(what, what.strip())
    return text


def load(path, extra):
    vocab = {line.strip(): i for i, line in enumerate(open(path, encoding="utf-8"))}
    for token in ["[BOS]", "[EOS]"] + [f"<extra_id_{i}>" for i in range(extra)]:
        vocab.setdefault(token, len(vocab))
    return vocab


def check_vocab(binary_path, path, lower, texts):
    name = "BertWordPieceLowerCase" if lower else "BertWordPieceCase"
    vocab = load(path, 7)
    tokens = list(vocab)
    binary = Binary(binary_path, ["--tokenizer-type", name, "--vocab-file", str(path), "--vocab-extra-ids", "7"])
    expected = [[vocab[p] for w in words_of(t, lower) for p in pieces_of(w, vocab)] for t in texts]
    for text, a, b in zip(texts, binary.lines("encode", texts), expected):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            check(False, f"{name}: {json.dumps(text)[:300]}: at {at}: {a[at:at + 20]} instead of {b[at:at + 20]}")
    expected.append(list(range(len(vocab) - 9, len(vocab))))
    for ids, back in zip(expected, binary.lines("decode", expected)):
        want = string_of([tokens[i] for i in ids])
        check(back == want, f"{name}: decoding {ids[:40]}: {str(back)[:200]!r} instead of {want[:200]!r}")
    print(f"{name}: {len(texts)} texts, {sum(map(len, expected))} ids equal")
    if BasicTokenizer is None:
        print(f"{name}: transformers is not installed, or has no BertTokenizer in Python")
        return
    basic = BasicTokenizer(do_lower_case=lower)
    pieces = WordpieceTokenizer(vocab=vocab, unk_token="[UNK]", max_input_chars_per_word=200)
    # transformers composes text first, and drops private and unassigned characters.
    same = [unicodedata.normalize("NFC", t) for t in texts]
    same = [t for t in same if not any(unicodedata.category(c) in ("Co", "Cn", "Cs") for c in t)]
    for text, ids in zip(same, binary.lines("encode", same)):
        want = [vocab[p] for w in basic.tokenize(text) for p in pieces.tokenize(w)]
        check(ids == want, f"{name}, transformers: {json.dumps(text)[:300]}: {ids[:40]} instead of {want[:40]}")
    print(f"{name}: {len(same)} texts equal in transformers")


def small_vocab(folder):
    """Characters and pieces of the fuzzed words, so that the test needs no file."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({w for t in fuzz_text.texts(3, 300) for lower in (True, False) for w in words_of(t, lower)})
    parts = {w[:n] for w in words for n in (1, 2, 3, 5)} | {"##" + w[i:i + n] for w in words for i in (1, 2, 3) for n in
                                                            (1, 2, 4) if w[i:i + n]}
    path = folder / "vocab.txt"
    path.write_text("\n".join(tokens + sorted(p for p in parts if p == p.strip() and p.split())) + "\n", encoding="utf-8")
    return path


def hard_texts():
    return ["", " ", "\t\n", "a" * 200, "a" * 201, "\u00e9" * 200, "e\u0301" * 101, "." * 5000, "\u4e2d" * 3000,
            "\u03a3\u03a3 \u0391\u03a3 \u0391\u03a3.\u0392 \u0391'\u03a3' \u03a3 \u0391\u02b0\u03a3", "\u0130\u0131 I\u0307",
            "\ud55c\uad6d\uc5b4", "a\u2028b\u2029c", "[CLS] [MASK] <extra_id_0>", "\ufffd\0x", "\u1100\u1161\u11a8",
            "a\u0323\u0307b a\u0307\u0323b", "\u302e\u302f\u302a", "".join(chr(c) for c in range(1, 0xD800)
                                                                     if unicodedata.category(chr(c)) != "Cn"),
            "don't won't we've they're I'm it's . , ? ! ' x"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--uncased", help="vocab.txt of a lower-case model")
    parser.add_argument("--cased", help="vocab.txt of another")
    args = parser.parse_args()
    texts = fuzz_text.texts(args.seed, args.cases) + hard_texts()
    with tempfile.TemporaryDirectory() as name:
        small = small_vocab(pathlib.Path(name))
        for path, lower in ((small, True), (small, False), (args.uncased, True), (args.cased, False)):
            if path:
                check_vocab(args.binary, path, lower, texts)


if __name__ == "__main__":
    main()
