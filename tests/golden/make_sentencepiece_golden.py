#!/usr/bin/env python3
"""Writes tests/golden/sentencepiece: small models of each kind, and texts with their ids and what those decode to.

Usage: python tests/golden/make_sentencepiece_golden.py        Needs: pip install sentencepiece
"""
import io
import json
import pathlib
import sys
import tempfile

import sentencepiece

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "oracle"))
import fuzz_text  # noqa: E402

# Code points to code points: full-width letters, a soft hyphen that goes, odd spaces, a letter with its accent.
RULES = "".join(f"{0xFF21 + i:X}\t{0x41 + i:X}\n" for i in range(26)) + \
    "AD\t\n3000\t20\nA0\t20\n9\t20\nA\t20\n65 301\tE9\nFB01\t66 69\n2026\t2E 2E 2E\n"
KINDS = {
    "unigram": dict(model_type="unigram", user_defined_symbols=["<sep>", "fox"]),
    "unigram_bytes": dict(model_type="unigram", byte_fallback=True, remove_extra_whitespaces=False),
    "bpe": dict(model_type="bpe", user_defined_symbols=["foo_bar"], pad_id=3),
    "bpe_llama": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                      remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True),
    "bpe_across": dict(model_type="bpe", split_by_whitespace=False, max_sentencepiece_length=6),
    "bpe_suffix": dict(model_type="bpe", treat_whitespace_as_suffix=True),
    "word": dict(model_type="word"),
    "char": dict(model_type="char"),
}
WORDS = " ".join(fuzz_text.WORDS[:40]).split()


def main():
    out = HERE / "sentencepiece"
    out.mkdir(exist_ok=True)
    sentences = [" ".join(WORDS[(i * 7 + k * k) % len(WORDS)] for k in range(8)) for i in range(400)]
    texts = fuzz_text.texts(5, 60, assigned_only=False) + [
        "", " ", "   ", "a", "a" * 500, "ab" * 300, "  two  spaces ", "\uff21\uff22 \u3000x\u00ady", "e\u0301e", "caf\u00e9",
        "\ufb01sh\u2026", "<s>", "</s><unk>", "\u2581", "x\u2581 \u2581y", "the quick brown fox foo_bar<sep>fox", "\ufffd\ufffd"]
    cases = []
    with tempfile.TemporaryDirectory() as name:
        rules = pathlib.Path(name) / "rules.tsv"
        rules.write_text(RULES)
        for kind, options in KINDS.items():
            model = io.BytesIO()
            if "normalization_rule_name" not in options:
                options = dict(options, normalization_rule_tsv=str(rules))
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences), model_writer=model, vocab_size=420, hard_vocab_limit=False,
                num_threads=1, minloglevel=2, **options)
            (out / f"{kind}.model").write_bytes(model.getvalue())
            sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
            for text in texts:
                ids = sp.encode(text)
                cases.append({"model": kind, "text": text, "ids": ids, "decoded": sp.decode(ids)})
    (out / "cases.json").write_text(json.dumps({"sentencepiece": sentencepiece.__version__, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
