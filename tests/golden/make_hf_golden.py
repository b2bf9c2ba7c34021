#!/usr/bin/env python3
"""Writes tests/golden/hf/<kind>/: a small tokenizer of each kind, and what the real package makes of some texts.

Usage: pip install tokenizers; python tests/golden/make_hf_golden.py
"""
import json
import pathlib
import shutil
import struct
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "oracle"))

import fuzz_text
import make_hf_tokenizers as kinds
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

CORPUS = [" ".join(fuzz_text.WORDS[i:] + fuzz_text.WORDS[:i]) for i in range(0, len(fuzz_text.WORDS), 7)]
TEXTS = [
    "", " ", "  ", "\n", "Hello world", " the quick  brown fox ", "don't WE'RE 12345 3.14", "a\tb\r\nc\u00a0d\u3000e",
    "nai\u0308ve \u00fcber \ufb01 \u00bd \u0130stanbul \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "\u4f60\u597d\u4e16\u754c hello",
    "\uc548\ub155 \u1112\u1161\u11ab", "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e8\U0001f1ed \u270c\U0001f3fd",
    "x<|endoftext|>y <s> </s> [SEP] <mask>  z", "fox foxes  x  a'b foo_bar", "\u2581\u2581a \u2581 b", "\x00\x1b\ufffd\u200b\ufeffq",
    "a" * 60, "ab" * 40, "the " * 30, "\u0301\u0323e\u0323\u0301", "\U0010ffff\ue000\u0378", "<0x0A><unk>",
]


def charsmap():
    """Three rules of a precompiled charsmap, as Darts lays them out: "A" is "a", "\\n" is " ", "!" is nothing."""
    units = [0] * 1536
    units[0] = 256 << 10
    for place, (byte, offset) in enumerate(((0x41, 0), (0x0A, 2), (0x21, 4))):
        node, value = 256 ^ byte, 512 + 256 * place ^ byte
        units[node] = (node ^ value) << 10 | 1 << 8 | byte
        units[value] = 1 << 31 | offset
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + b"a\0 \0\0"


def unigram(byte_fallback):
    pieces = ["\u2581", "\u2581the", "\u2581a", "a", "b", "ab", "\u2581hello", "o", "l", "h", "e", "x", "fox", "\u2581fox", "\u4f60"]
    vocab = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocab += [(piece, -2.5 - 0.37 * i) for i, piece in enumerate(pieces)]
    vocab += [(f"<0x{b:02X}>", -20.0) for b in range(256)] if byte_fallback else []
    tokenizer = Tokenizer(models.Unigram(vocab, 2, byte_fallback))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", prepend_scheme="first" if byte_fallback else "always")
    tokenizer.decoder = decoders.Metaspace("\u2581", prepend_scheme="always")
    tokenizer.add_special_tokens([kinds.special("</s>"), kinds.special("<pad>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    return tokenizer


def main():
    folder = HERE / "hf"
    shutil.rmtree(folder, ignore_errors=True)
    made = {
        "gpt2": kinds.gpt2(CORPUS, 350), "qwen2": kinds.qwen2(CORPUS, 350), "llama2": kinds.llama2(CORPUS, size=400),
        "llama2_first": kinds.llama2(CORPUS, "first", size=400), "bert": kinds.bert(CORPUS, None, True, 400),
        "unigram": unigram(False), "unigram_bytes": unigram(True),
        **{f"odd{i}": kinds.odd(CORPUS, i, 300) for i in range(6)},
    }
    for name, tokenizer in made.items():
        path = kinds.save(tokenizer, folder / name)
        path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False, separators=(",", ":")))
        ids = [e.ids for e in tokenizer.encode_batch(TEXTS)]
        cases = [{"text": t, "ids": i, "decoded": tokenizer.decode(i, skip_special_tokens=False)}
                 for t, i in zip(TEXTS, ids)]
        (folder / name / "cases.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
