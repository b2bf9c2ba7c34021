"""Random text that is hard on tokenizers: every script, spaces of every kind, emoji sequences, contractions, controls,
long runs and repeated patterns. Deterministic in the seed."""
import random
import sys
import unicodedata

WORDS = (
    "the quick brown fox don't won't we're they've I'm she'll he'd DON'T it's O'Neil's rock'n'roll 's 't 're 've 'm 'll 'd "
    "'S '' ''s a'b internationalization pneumonoultramicroscopicsilicovolcanoconiosis 3.14159 1,000,000 x86_64 foo_bar "
    "http://example.org/a?b=c&d=%20 <|endoftext|> \u00fcber na\u00efve stra\u00dfe \u0130stanbul \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 "
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 "
    "\u4f60\u597d\u4e16\u754c \u3053\u3093\u306b\u3061\u306f \uc548\ub155\ud558\uc138\uc694 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 "
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e8\U0001f1ed \u270c\U0001f3fd \u0663\u0664 \u00bd \u2167 e\u0301 A\u030a \ufb01"
).split()
SPACES = ["\t", "\n", "\v", "\f", "\r", " ", "\x85", "\xa0", "\u1680", "\u2000", "\u2003", "\u200a", "\u2028", "\u2029",
          "\u202f", "\u205f", "\u3000", "\x1c", "\x1d", "\x1f", "\u200b", "\ufeff", "\u180e"]
BLOCKS = [(0x20, 0x7F), (0x00, 0x20), (0x80, 0x250), (0x250, 0x500), (0x500, 0x800), (0x900, 0xE00), (0xE00, 0x1200),
          (0x1200, 0x1800), (0x1E00, 0x2000), (0x2000, 0x2C00), (0x3000, 0x3400), (0x4E00, 0x9FFF), (0xA000, 0xAC00),
          (0xAC00, 0xD7A4), (0xF900, 0x10000), (0x10000, 0x10800), (0x1D400, 0x1D800), (0x1F300, 0x1FB00),
          (0x20000, 0x2A6DF), (0xE0000, 0xE0200), (0x0, 0xD800), (0xE000, 0x110000)]


def random_char(rng, assigned_only):
    while True:
        low, high = rng.choice(BLOCKS)
        code = rng.randrange(low, high)
        if not assigned_only or unicodedata.category(chr(code)) != "Cn":
            return chr(code)


def random_text(rng, assigned_only=True):
    """assigned_only: leave out code points without a category in this Python's Unicode, whose class may have changed."""
    parts = []
    for _ in range(rng.randrange(1, 12)):
        kind = rng.random()
        if kind < 0.35:
            parts.append(rng.choice(WORDS))
        elif kind < 0.55:
            parts.append(" " * rng.randrange(1, 4) if rng.random() < 0.7 else
                         "".join(rng.choice(SPACES) for _ in range(rng.randrange(1, 5))))
        elif kind < 0.8:
            parts.append("".join(random_char(rng, assigned_only) for _ in range(rng.randrange(1, 6))))
        elif kind < 0.95:
            parts.append("".join(chr(rng.randrange(33, 127)) for _ in range(rng.randrange(1, 10))))
        else:
            unit = rng.choice(WORDS)[:rng.randrange(1, 4)]
            parts.append(unit * rng.randrange(1, 200))
        if rng.random() < 0.4:
            parts.append(" ")
    return "".join(parts)


def texts(seed, count, assigned_only=True):
    rng = random.Random(seed)
    return [random_text(rng, assigned_only) for _ in range(count)]


if __name__ == "__main__":
    import json
    for text in texts(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(text))
