#!/usr/bin/env python3
"""Writes src/token/hf_unicode_data.inc: code points as Hugging Face's `tokenizers` sees them.

Usage: pip install tokenizers regex; python scripts/make_hf_unicode_data.py > src/token/hf_unicode_data.inc

That package mixes libraries built on different versions of Unicode (punctuation from 8, normal forms from 12, lower case
from 17), so its answers are in no version of the standard: every code point is tried on the real package instead. Only
what it gives no access to is taken from elsewhere: combining classes from Python (those it does not act on are left
out), kinds of grapheme breaks from the package `regex`. Takes two minutes.
"""
import struct
import sys
import unicodedata

import regex
import tokenizers
from tokenizers import normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BREAKS = ["Other", "CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend", "SpacingMark", "L", "V", "T",
          "LV", "LVT"]  # in the order of enum class GraphemeBreak
CONJUNCTS = ["None", "Linker", "Consonant", "Extend"]
FORMS = ["NFC", "NFD", "NFKC", "NFKD"]
NORMALIZE = {form: getattr(normalizers, form)().normalize_str for form in FORMS}


def bert(**options):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **options}).normalize_str


def one_rule_charsmap():
    """A precompiled charsmap that turns "a" into "b": whatever joins "a" in a grapheme vanishes with it."""
    units = [0] * 1024
    units[0] = 256 << 10
    units[0x161] = 0x200 << 10 | 1 << 8 | 0x61
    units[0x361] = 1 << 31
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + b"b\0"


def combining_classes():
    """Of the marks that the package moves: one of class 1 goes before any other, one of 230 behind any lower."""
    nfd, classes = NORMALIZE["NFD"], {}
    for code in CODES:
        value = unicodedata.combining(chr(code))
        if value == 0:
            continue
        own = nfd(chr(code))
        moves = nfd("a" + chr(code) + "\u0334") == "a\u0334" + own if value > 1 else \
            nfd("a\u0301" + chr(code)) == "a" + own + "\u0301"
        if moves:
            classes[code] = value
    return classes


def compositions():
    nfc, pairs = NORMALIZE["NFC"], []
    for code in CODES:
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(p, 16) for p in parts)
            if nfc(chr(first) + chr(second)) == chr(code):
                pairs.append((first, second, code))
    return sorted(pairs)


def is_hangul(code):
    return 0xAC00 <= code < 0xD7A4


class Properties:
    def __init__(self, classes, pairs):
        self.classes = classes
        self.seconds = {second for _, second, _ in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
        self.clean = bert(clean_text=True)
        self.bare = bert(strip_accents=True)
        self.accents = normalizers.StripAccents().normalize_str
        self.lower = normalizers.Lowercase().normalize_str
        self.punctuation = pre_tokenizers.Punctuation().pre_tokenize_str
        self.digits = pre_tokenizers.Digits().pre_tokenize_str
        self.whitespace = pre_tokenizers.Whitespace().pre_tokenize_str
        self.joined = normalizers.Precompiled(one_rule_charsmap()).normalize_str
        self.breaks = [regex.compile(r"\p{GCB=%s}" % name) for name in BREAKS]
        self.conjuncts = [regex.compile(r"\p{InCB=%s}" % name) for name in CONJUNCTS]
        self.pictographic = regex.compile(r"\p{Extended_Pictographic}")

    def grapheme_break(self, char):
        kind = next(i for i, pattern in enumerate(self.breaks) if pattern.match(char))
        joins = self.joined("a" + char) == "b"
        if joins and BREAKS[kind] not in ("Extend", "ZWJ", "SpacingMark"):
            return BREAKS.index("SpacingMark")
        if not joins and BREAKS[kind] in ("Extend", "ZWJ", "SpacingMark"):
            return 0
        return kind

    def changes(self, char, form):
        """Whether the form changes the character, or may join it to what stands before."""
        if NORMALIZE[form](char) != char:
            return True
        first = ord(NORMALIZE["NFKD" if "K" in form else "NFD"](char)[0])
        return first in self.classes or ("C" in form and first in self.seconds)

    def __call__(self, code):
        char = chr(code)
        bits = [
            len(self.punctuation("a" + char + "a")) == 3,
            char not in "\0\ufffd" and self.clean(char) == "",
            self.bare(char) == "",
            self.accents(char) == "",
            len(self.digits("a" + char + "a")) == 3,
            [s for s, _ in self.whitespace("a" + char)] == ["a" + char],
            self.lower(char) != char,
            *(self.changes(char, form) for form in FORMS),
            bool(self.pictographic.match(char)),
        ]
        value = sum(bit << i for i, bit in enumerate(bits))
        conjunct = next(i for i, pattern in enumerate(self.conjuncts) if pattern.match(char))
        return value | self.grapheme_break(char) << 12 | conjunct << 16


def write_numbers(out, kind, name, numbers):
    out.write(f"constexpr {kind} {name}[] = {{\n")
    for i in range(0, len(numbers), 12):
        out.write("".join(f"{n}," for n in numbers[i:i + 12]) + "\n")
    out.write("};\n")


def write_strings(out, name, strings):
    """Sorted by code point: code << 5 | length, and all the strings one after another."""
    write_numbers(out, "std::uint32_t", f"{name}_keys", [code << 5 | len(text) for code, text in strings])
    write_numbers(out, "std::uint32_t", f"{name}_codes", [ord(c) for _, text in strings for c in text])


def main():
    classes, pairs = combining_classes(), compositions()
    properties = Properties(classes, pairs)
    kinds, runs, last = {}, [], None
    for code in CODES:
        value = properties(code)
        if value != last:
            runs.append(code << 11 | kinds.setdefault(value, len(kinds)))
            last = value
        if code == 0xD7FF:  # surrogates are no characters
            runs.append(0xD800 << 11 | kinds.setdefault(0, len(kinds)))
            last = None
    assert len(kinds) < 2048
    out = sys.stdout
    out.write("// Generated by scripts/make_hf_unicode_data.py; do not edit.\n")
    out.write(f"// Code points as tokenizers {tokenizers.__version__} sees them.\n// clang-format off\n")
    write_numbers(out, "std::uint32_t", "property_kinds", list(kinds))
    write_numbers(out, "std::uint32_t", "property_runs", runs)
    write_numbers(out, "std::uint32_t", "combining_keys", [code << 8 | value for code, value in sorted(classes.items())])
    write_numbers(out, "std::uint32_t", "composition_firsts", [first for first, _, _ in pairs])
    write_numbers(out, "std::uint32_t", "composition_seconds", [second for _, second, _ in pairs])
    write_numbers(out, "std::uint32_t", "composition_results", [code for _, _, code in pairs])
    nfd, nfkd, lower = NORMALIZE["NFD"], NORMALIZE["NFKD"], properties.lower
    write_strings(out, "canonical", [(c, nfd(chr(c))) for c in CODES if not is_hangul(c) and nfd(chr(c)) != chr(c)])
    write_strings(out, "compatible", [(c, nfkd(chr(c))) for c in CODES
                                      if not is_hangul(c) and nfkd(chr(c)) not in (chr(c), nfd(chr(c)))])
    write_strings(out, "lower", [(c, lower(chr(c))) for c in CODES if lower(chr(c)) != chr(c)])


if __name__ == "__main__":
    main()
