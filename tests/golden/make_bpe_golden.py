#!/usr/bin/env python3
"""Writes tests/golden/bpe/: what Hugging Face `tokenizers` does, for the byte-level BPE tests.

Usage: python tests/golden/make_bpe_golden.py [GPT2_VOCAB_JSON GPT2_MERGES_TXT]   (needs: pip install tokenizers)

  corpus.jsonl              text to train on: every line {"text": ...}
  vocab.json, merges.txt    what BpeTrainer learns from it (700 tokens, min_frequency 2)
  cases.jsonl               {"text": ..., "ids": [...]} with that vocabulary
  gpt2_cases.jsonl          the same with the real GPT-2 vocabulary; written only if its files are given
"""
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "oracle"))
import fuzz_text  # noqa: E402

OUT = HERE / "bpe"
SENTENCES = [
    "The little fox ran over the hill and didn't look back.", "\"Where are you going?\" asked the old baker.",
    "We're sure they've seen it; I'm not, and she'll say he'd known.", "In 1969, 2 men walked on the moon -- 384,400 km away!",
    "Der \u00dcberl\u00e4ufer stra\u00dfe gr\u00f6\u00dfer na\u00efve caf\u00e9.", "\u041c\u0430\u043b\u0435\u043d\u044c\u043a\u0430\u044f \u043b\u0438\u0441\u0430 \u0431\u0435\u0436\u0430\u043b\u0430 \u043f\u043e \u0445\u043e\u043b\u043c\u0443.",
    "\u5c0f\u72d0\u72f8\u8dd1\u8fc7\u5c71\u4e18\u3002", "\u0627\u0644\u062b\u0639\u0644\u0628 \u0627\u0644\u0635\u063a\u064a\u0631", "def f(x):\n    return x  # tabs\tand  spaces   here\n\n\n",
    "banana bandana banana ananas aaaa aaa aa a", "\U0001f98a\U0001f98a fox emoji \u2764\ufe0f\u200d\U0001f525",
]


def corpus():
    rng = random.Random(5)
    for _ in range(120):
        yield " ".join(rng.choice(SENTENCES) for _ in range(rng.randrange(1, 6)))


def write_lines(path, objects):
    path.write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")


def write_cases(path, tokenizer, count, seed):
    texts = SENTENCES + ["", " ", "  ", "\n", "a" * 300, "ab" * 200, " \u00a0 x", "<|endoftext|>"]
    texts += fuzz_text.texts(seed, count)
    write_lines(path, ({"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts))


def main():
    OUT.mkdir(exist_ok=True)
    texts = list(corpus())
    write_lines(OUT / "corpus.jsonl", ({"text": t} for t in texts))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = byte_level
    trained.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    trained.model.save(str(OUT))
    # Loaded from the files alone, as Megatron does: <|endoftext|> inside text is plain characters.
    plain = Tokenizer(models.BPE.from_file(str(OUT / "vocab.json"), str(OUT / "merges.txt")))
    plain.pre_tokenizer = byte_level
    write_cases(OUT / "cases.jsonl", plain, 150, seed=1)
    if len(sys.argv) > 2:
        gpt2 = Tokenizer(models.BPE.from_file(sys.argv[1], sys.argv[2]))
        gpt2.pre_tokenizer = byte_level
        write_cases(OUT / "gpt2_cases.jsonl", gpt2, 250, seed=2)


if __name__ == "__main__":
    main()
