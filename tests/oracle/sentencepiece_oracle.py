#!/usr/bin/env python3
"""Compares the teratron binary with the real sentencepiece package, on models of every kind that are trained here.

Usage: python tests/oracle/sentencepiece_oracle.py build/teratron [--cases 1000] [--seed 1] [--model M.model ...]
Needs: pip install sentencepiece. Exit code 77 when it is missing.

  models      unigram, bpe, word and char; byte fallback, user-defined symbols, rules of normalisation, spaces kept or
              taken out, in front or behind; pieces that cross spaces
  types       GPTSentencePieceTokenizer, Llama2Tokenizer, and SentencePieceTokenizer as Megatron builds it on top
"""
import argparse
import io
import json
import pathlib
import sys
import tempfile

import fuzz_text
from binary import Binary, check

try:
    import sentencepiece
except ImportError:
    print("skipped: the package sentencepiece is not installed")
    sys.exit(77)

KINDS = {
    "unigram": dict(model_type="unigram"),
    "unigram_bytes": dict(model_type="unigram", byte_fallback=True, normalization_rule_name="identity"),
    "unigram_user": dict(model_type="unigram", user_defined_symbols=["<sep>", "foo_bar", "\u4f60", "fox jumps"]),
    "unigram_suffix": dict(model_type="unigram", treat_whitespace_as_suffix=True, pad_id=3),
    "unigram_fold": dict(model_type="unigram", normalization_rule_name="nmt_nfkc_cf", bos_id=-1),
    "bpe": dict(model_type="bpe"),
    "bpe_llama": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                      remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True),
    "bpe_user": dict(model_type="bpe", user_defined_symbols=["<sep>", "foo_bar", "the quick", "ab", "abc"]),
    "bpe_across": dict(model_type="bpe", split_by_whitespace=False, max_sentencepiece_length=8),
    "bpe_suffix": dict(model_type="bpe", treat_whitespace_as_suffix=True, normalization_rule_name="nfkc"),
    "bpe_no_prefix": dict(model_type="bpe", add_dummy_prefix=False, remove_extra_whitespaces=False, eos_id=3, pad_id=2),
    "word": dict(model_type="word", pad_id=3),
    "char": dict(model_type="char", user_defined_symbols=["fox"]),
}


def train(name, texts, folder):
    sentences = [s for t in texts for s in t.replace("\0", " ").splitlines() if s.strip()]
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=out, vocab_size=4000, hard_vocab_limit=False,
        character_coverage=0.98, num_threads=1, minloglevel=2, **KINDS[name])
    path = folder / f"{name}.model"
    path.write_bytes(out.getvalue())
    return path


def special_tokens(sp, extra):
    """Megatron's SentencePieceTokenizer: what it adds to the pieces, in order."""
    vocab = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    special = {}

    def add(token):
        vocab.setdefault(token, len(vocab))
        special[token] = vocab[token]

    for token in ("<CLS>", "<SEP>", "<EOD>", "<MASK>"):
        add(token)
    for index, name in ((sp.pad_id(), "<PAD>"), (sp.bos_id(), "<BOS>"), (sp.eos_id(), "<EOS>")):
        add(name if index < 0 else sp.id_to_piece(index))
    for i in range(extra):
        add(f"<extra_id_{i}>")
    return special


def megatron_encode(sp, special, text):
    ids = []
    while True:
        found = {t: text.index(t) for t in special if t in text}
        if not found:
            return ids + sp.encode(text)
        token = min(found, key=found.get)
        ids += sp.encode(text[:found[token]]) + [special[token]]
        text = text[found[token] + len(token):]


def megatron_decode(sp, special, ids):
    names = {v: k for k, v in special.items()}
    text, last = "", 0
    for i, token in enumerate(ids):
        if token in names:
            text += sp.decode(ids[last:i]) + " " + names[token] + " "
            last = i + 1
    return text + sp.decode(ids[last:])


def compare(name, binary, texts, encode, decode):
    got = binary.lines("encode", texts)
    expected = [encode(t) for t in texts]
    for text, a, b in zip(texts, got, expected):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            check(False, f"{name}: {json.dumps(text)[:300]}: at {at}: {a[at:at + 20]} instead of {b[at:at + 20]}")
    for ids, back in zip(expected, binary.lines("decode", expected)):
        check(back == decode(ids), f"{name}: decoding {ids[:40]}: {back[:200]!r} instead of {decode(ids)[:200]!r}")
    print(f"{name}: {len(texts)} texts, {sum(map(len, expected))} ids equal")


def check_model(path, binary_path, texts):
    sp = sentencepiece.SentencePieceProcessor(model_file=str(path))
    flags = ["--tokenizer-model", str(path), "--tokenizer-type"]
    compare(f"{path.stem}, GPT", Binary(binary_path, flags + ["GPTSentencePieceTokenizer"]), texts, sp.encode, sp.decode)
    if sp.bos_id() >= 0:
        compare(f"{path.stem}, Llama 2", Binary(binary_path, flags + ["Llama2Tokenizer"]), texts[:300],
                lambda t: [sp.bos_id()] + sp.encode(t), sp.decode)
    special = special_tokens(sp, 5)
    marked = [t.replace(" ", m, 1) for t, m in zip(texts, list(special) * len(texts))]
    compare(f"{path.stem}, Megatron",
            Binary(binary_path, flags + ["SentencePieceTokenizer", "--vocab-extra-ids", "5"]), marked[:1000],
            lambda t: megatron_encode(sp, special, t), lambda ids: megatron_decode(sp, special, ids))


def hard_texts():
    return ["", " ", "   ", "a", "a" * 100000, "ab" * 30000, "abcabd" * 5000, " " * 20000, "\n" * 1000 + "x",
            "\u4e2d" * 20000, "".join(chr(c) for c in range(1, 0xD800)), "<s>", "</s> <unk> <pad>", "\u2581",
            " \u2581 \u2581\u2581x", "x\u2581y", "x" * 47 + " " + "y" * 48 + " " + "z" * 49, "\ufffd\ufffd a",
            "a \u0301b", "the quick the quick", "<extra_id_1><extra_id_10>", "<CLS><CLS> a<MASK>"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", nargs="*", default=[])
    args = parser.parse_args()
    texts = fuzz_text.texts(args.seed, args.cases, assigned_only=False)
    corpus = fuzz_text.texts(99, 1500)
    long = [" ".join(texts[:400]), "".join(texts[:400])]
    with tempfile.TemporaryDirectory() as name:
        for kind in KINDS:
            check_model(train(kind, corpus, pathlib.Path(name)), args.binary, texts + hard_texts() + long)
        for path in args.model:
            check_model(pathlib.Path(path), args.binary, texts + hard_texts() + long)


if __name__ == "__main__":
    main()
