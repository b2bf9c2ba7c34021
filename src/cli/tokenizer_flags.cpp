#include "cli/tokenizer_flags.h"

#include <cstdio>

#include "core/error.h"

namespace tera {
namespace {

/// Flags of Megatron's newer versions, and one that is about training. Their prefixes yield to those of the others.
void add_newer_flags(ArgParser& parser, const std::string& group) {
    const auto add = [&](ArgSpec& spec, const char* help) {
        spec.help(help).group(group);
        spec.secondary_ = true;
    };
    add(parser.flag("tokenizer-hf-no-include-special-tokens"),
        "leave out what the post-processor of a HuggingFaceTokenizer adds");
    add(parser.flag("tokenizer-sentencepiece-legacy"),
        "find special tokens inside text, as SentencePieceTokenizer does anyway");
    add(parser.flag("legacy-tokenizer"), "the rules that hold here anyway");
    add(parser.option("make-vocab-size-divisible-by", ArgType::integer), "changes no id; pretrain pads");
    add(parser.option("null-tokenizer-eod-id", ArgType::integer), "refused: --vocab-size ends documents");
    add(parser.option("null-tokenizer-pad-id", ArgType::integer), "refused: NullTokenizer has no pad");
}

void answer_newer_flags(const ParsedArgs& args) {
    if (args.given("null_tokenizer_eod_id"))
        usage_error("--null-tokenizer-eod-id is not supported: NullTokenizer ends documents with the id --vocab-size, ",
                    "as Megatron-LM does up to core 0.16; leave it out");
    if (args.given("null_tokenizer_pad_id"))
        usage_error("--null-tokenizer-pad-id is not supported: NullTokenizer has no padding here; leave it out");
    if (args.boolean("legacy_tokenizer"))
        std::fprintf(stderr, "--legacy-tokenizer changes nothing: its rules are the ones that hold here\n");
    if (args.given("make_vocab_size_divisible_by"))
        std::fprintf(stderr,
                     "--make-vocab-size-divisible-by changes nothing here: training pads the vocabulary, "
                     "the ids stay the same\n");
}

}  // namespace

void add_tokenizer_flags(ArgParser& parser) {
    const std::string group = "tokenizer";
    parser.option("tokenizer-type", ArgType::text)
        .defaults("GPT2BPETokenizer")
        .help(tokenizer_types_text())
        .group(group);
    // "vocab" is what argparse abbreviates to --vocab-file where there is no --vocab-size.
    parser.option("vocab-file", ArgType::text)
        .alias("vocab")
        .help("vocab.json of GPT2BPETokenizer, vocab.txt of BertWordPiece...")
        .group(group);
    parser.option("merge-file", ArgType::text).help("merges.txt of GPT2BPETokenizer").group(group);
    parser.option("vocab-size", ArgType::integer)
        .help("number of ids of NullTokenizer; entries used of a TikTokenizer, its special tokens included")
        .group(group);
    parser.option("tokenizer-model", ArgType::text)
        .help("SentencePiece .model, tiktoken file, or tokenizer.json or its folder (HuggingFaceTokenizer)")
        .group(group);
    parser.option("vocab-extra-ids", ArgType::integer)
        .defaults("0")
        .help("tokens <extra_id_0>, ... added to a BertWordPiece or SentencePieceTokenizer vocabulary (T5: 100)")
        .group(group);
    parser.option("tiktoken-pattern", ArgType::text).help("how TikTokenizer cuts words: v1 or v2").group(group);
    parser.option("tiktoken-num-special-tokens", ArgType::integer)
        .defaults("1000")
        .help("ids before the vocabulary of TikTokenizer")
        .group(group);
    parser.option("tiktoken-special-tokens", ArgType::text)
        .values(ArgCount::one_or_more())
        .help("names of the first of these; default <unk> <s> </s>")
        .group(group);
    add_newer_flags(parser, group);
}

TokenizerConfig tokenizer_config(const ParsedArgs& args) {
    answer_newer_flags(args);
    TokenizerConfig config;
    config.tokenizer_type = args.text("tokenizer_type");
    config.vocab_file = args.text("vocab_file");
    config.merge_file = args.text("merge_file");
    config.tokenizer_model = args.text("tokenizer_model");
    if (args.has("vocab_size")) config.vocab_size = args.integer("vocab_size");
    config.vocab_extra_ids = args.integer("vocab_extra_ids");
    config.tiktoken_pattern = args.text("tiktoken_pattern");
    config.tiktoken_num_special_tokens = args.integer("tiktoken_num_special_tokens");
    config.tiktoken_special_tokens = args.list("tiktoken_special_tokens");
    config.hf_include_special_tokens = !args.boolean("tokenizer_hf_no_include_special_tokens");
    config.sentencepiece_legacy = args.boolean("tokenizer_sentencepiece_legacy");
    return config;
}

}  // namespace tera
