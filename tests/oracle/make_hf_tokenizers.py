"""Tokenizers of every kind that HuggingFaceTokenizer knows, made with the real packages: small ones, but built like the
real files of GPT-2, Llama 2 and 3, Mistral, Qwen, Apertus, BERT and T5, and some that put the other parts to work.

make(folder, texts, shared) -> {name: path of a tokenizer.json}; `shared` may hold real vocabularies.
"""
import gzip
import io
import json
import pathlib

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?"
          r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def special(text, **options):
    return AddedToken(text, special=True, normalized=False, **options)


def byte_bpe(texts, pre_tokenizer, specials, size=3000):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def split_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def begin_with(tokenizer, token):
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A {token} $B",
                                      special_tokens=[(token, tokenizer.token_to_id(token))])])


def gpt2(texts, size=3000):
    tokenizer = byte_bpe(texts, pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"], size)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta(texts):
    tokenizer = byte_bpe(texts, pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "</s>", "<pad>", "<unk>"])
    tokenizer.add_special_tokens([special("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tokenizer


def rank_merges(ranks):
    """As transformers makes merges of tiktoken's ranks: every cut into two tokens, by rank."""
    merges = []
    for token, rank in ranks.items():
        local = [(token[:i], token[i:], rank) for i in range(1, len(token))
                 if token[:i] in ranks and token[i:] in ranks]
        merges += sorted(local, key=lambda m: (ranks[m[0]], ranks[m[1]]))
    return sorted(merges, key=lambda m: m[2])


def llama3(texts, shared):
    """From the ranks of cl100k_base if they are at hand, else learnt."""
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>"]
    ranks_file = shared / "tiktoken" / "cl100k_base.tiktoken.gz" if shared else None
    if ranks_file and ranks_file.exists():
        import base64
        alphabet = printable_bytes()
        ranks = {}
        for line in gzip.open(ranks_file, "rt"):
            token, rank = line.split()
            ranks["".join(alphabet[b] for b in base64.b64decode(token))] = int(rank)
        merges = [(a, b) for a, b, _ in rank_merges(ranks)]
        tokenizer = Tokenizer(models.BPE(ranks, merges, ignore_merges=True))
        tokenizer.pre_tokenizer = split_bytes(LLAMA3)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([special(s) for s in specials])
    else:
        tokenizer = byte_bpe(texts, split_bytes(LLAMA3), [special(s) for s in specials])
        tokenizer.model.ignore_merges = True
    begin_with(tokenizer, specials[0])
    return tokenizer


def printable_bytes():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in kept}
    for n, b in enumerate(b for b in range(256) if b not in kept):
        table[b] = chr(256 + n)
    return table


def qwen2(texts, size=3000):
    tokenizer = byte_bpe(texts, split_bytes(QWEN2), ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], size)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("<tool_call>", normalized=True)])
    return tokenizer


def tekken(texts):
    tokenizer = byte_bpe(texts, split_bytes(TEKKEN), ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])
    tokenizer.model.ignore_merges = True
    begin_with(tokenizer, "<s>")
    return tokenizer


def llama2_model(texts, size=2500):
    """Learnt with spaces as U+2581, bytes behind the special tokens, all cuts of a token as merges (as converted)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                                             limit_alphabet=400))
    learnt = json.loads(tokenizer.to_str())["model"]["vocab"]
    runs = ["\u2581" * n for n in range(2, 17)]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + runs
    tokens += [t for t in sorted(learnt, key=learnt.get) if t not in tokens]
    # Longer tokens first get their ranks, then the characters, as in SentencePiece files.
    vocab = {t: i for i, t in enumerate(tokens)}
    ranks = {t: i for t, i in vocab.items() if i >= 259}
    merges = [(a, b) for a, b, _ in rank_merges(ranks)]
    return models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def llama2(texts, style="legacy", size=2500):
    tokenizer = Tokenizer(llama2_model(texts, size))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    if style == "legacy":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"),
                                                     normalizers.Replace(" ", "\u2581")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", prepend_scheme="first", split=False)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=style == "legacy")
                                  for t in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                             special_tokens=[("<s>", 1)])
    return tokenizer


def gemma(texts):
    """No unknown bytes fused, merged with what follows at spaces, some byte tokens missing."""
    model = json.loads(Tokenizer(llama2_model(texts)).to_str())["model"]
    gone = {f"<0x{b:02X}>" for b in range(0xE0, 0xE8)}
    vocab = {t: i for i, t in enumerate(t for t in model["vocab"] if t not in gone)}
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(m) for m in model["merges"]], unk_token="<unk>", fuse_unk=False,
                                     byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_previous")
    tokenizer.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def bert(texts, shared, lower, size=3000):
    name = f"bert-base-{'uncased' if lower else 'cased'}-vocab.txt"
    file = shared / "bert" / name if shared else None
    if file and file.exists():
        vocab = {line.rstrip("\n"): i for i, line in enumerate(file.open(encoding="utf-8"))}
        tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if not (file and file.exists()):
        tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=names,
                                                                       show_progress=False))
    tokenizer.add_special_tokens([special(n) for n in names])
    ids = [(n, tokenizer.token_to_id(n)) for n in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                             special_tokens=ids)
    return tokenizer


def message_field(message, number):
    """The bytes of a field of a protobuf message, without the package for that."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        field, kind = divmod(varint(), 8)
        if kind == 0:
            varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        at += size
        if field == number:
            return message[at - size:at]
    raise ValueError(f"no field {number}")


def t5(texts, scheme="always", byte_fallback=False):
    """A real charsmap from a SentencePiece model, trained here; None without the package."""
    try:
        import sentencepiece
    except ImportError:
        print("t5: skipped: the package sentencepiece is not installed")
        return None
    out = io.BytesIO()
    plain = ["".join(c for c in t if c.isascii() and c != "\n" or c in "\u00e9\u00fc\u4f60\u597d")[:400] for t in texts]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(plain), model_writer=out, vocab_size=1500,
        model_type="unigram", normalization_rule_name="nmt_nfkc", byte_fallback=byte_fallback, pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, minloglevel=2, character_coverage=0.98, hard_vocab_limit=False)
    model = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    vocab = [(model.id_to_piece(i), model.get_score(i)) for i in range(model.get_piece_size())]
    vocab += [(f"<extra_id_{i}>", 0.0) for i in range(99, -1, -1)]
    tokenizer = Tokenizer(models.Unigram(vocab, 2, byte_fallback))
    normalizer_spec, precompiled_charsmap = 3, 2
    steps = [normalizers.Precompiled(message_field(message_field(out.getvalue(), normalizer_spec), precompiled_charsmap))]
    if scheme == "first":
        steps += [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    space = pre_tokenizers.Metaspace("\u2581", prepend_scheme=scheme)
    tokenizer.pre_tokenizer = space if scheme == "first" else \
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    tokenizer.decoder = decoders.Metaspace("\u2581", prepend_scheme=scheme)
    tokenizer.add_special_tokens([special(t) for t in ("<pad>", "</s>", "<unk>")] +
                                 [special(f"<extra_id_{i}>") for i in range(100)])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    return tokenizer


def odd(texts, number, size=2000):
    """The parts that the well-known files do not use, in combinations."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    chains = [
        ([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()],
         [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]),
        ([normalizers.NFKC(), normalizers.Replace("ab", "x")],
         [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits()]),
        ([normalizers.NFKD(), normalizers.Replace(Regex(r"\s+"), " ")],
         [pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Punctuation("merged_with_previous")]),
        ([normalizers.NFC(), normalizers.Lowercase()],
         [pre_tokenizers.Split(Regex("e+"), "removed"), pre_tokenizers.Punctuation("merged_with_next")]),
        ([normalizers.NFKC(), normalizers.BertNormalizer(strip_accents=True, lowercase=False)],
         [pre_tokenizers.Split(" ", "removed", invert=False), pre_tokenizers.Metaspace(prepend_scheme="first")]),
        ([], [pre_tokenizers.Split(Regex(LLAMA3), "removed", invert=True), pre_tokenizers.Punctuation("removed")]),
    ]
    steps, cuts = chains[number]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    tokenizer.decoder = decoders.WordPiece(cleanup=number % 2 == 0)
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tokenizer.add_tokens([AddedToken("fox", single_word=True), AddedToken("Nai\u0308ve", lstrip=True),
                          AddedToken("\u00fcber", rstrip=True, normalized=False), AddedToken(" x", rstrip=True),
                          AddedToken("a'"), AddedToken("foo_", normalized=False)])
    tokenizer.add_special_tokens([special("<mask>", lstrip=True, rstrip=True), special("<|endoftext|>")])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def no_unknown(texts):
    """Byte-level without some of the bytes: they vanish."""
    model = json.loads(gpt2(texts).to_str())["model"]
    gone = {printable_bytes()[b] for b in (0x41, 0xE2, 0x81, 0x20)}
    vocab = {t: i for i, t in enumerate(t for t in model["vocab"] if not gone & set(t))}
    tokenizer = Tokenizer(models.BPE(vocab, [(a, b) for a, b in model["merges"] if not gone & set(a + b)]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([special("<|endoftext|>")])
    return tokenizer


def make(folder, texts, shared=None):
    folder, shared = pathlib.Path(folder), pathlib.Path(shared) if shared else None
    made = {"gpt2": gpt2(texts), "roberta": roberta(texts), "llama3": llama3(texts, shared), "qwen2": qwen2(texts),
            "tekken": tekken(texts), "llama2": llama2(texts), "llama2_first": llama2(texts, "first"),
            "gemma": gemma(texts), "bert_uncased": bert(texts, shared, True), "bert_cased": bert(texts, shared, False),
            "t5": t5(texts), "t5_first": t5(texts, "first"), "t5_bytes": t5(texts, "always", True),
            "no_unknown": no_unknown(texts)}
    made.update({f"odd{i}": odd(texts, i) for i in range(6)})
    return {name: save(tokenizer, folder / name) for name, tokenizer in made.items() if tokenizer is not None}


def save(tokenizer, folder):
    """tokenizer.json and a tokenizer_config.json that names the end of a document; returns the former's path."""
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", **end_token(tokenizer)}))
    return folder / "tokenizer.json"


def end_token(tokenizer):
    added = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
    for token in ("<|endoftext|>", "<|end_of_text|>", "</s>", "[SEP]", "<unk>"):
        if token in added:
            return {"eos_token": token}
    raise ValueError("no special token")
