#include "cli/tokenizer_flags.h"

namespace tera {

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
}

TokenizerConfig tokenizer_config(const ParsedArgs& args) {
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
    return config;
}

}  // namespace tera
