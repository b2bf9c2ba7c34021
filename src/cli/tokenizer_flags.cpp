#include "cli/tokenizer_flags.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

void add_tokenizer_flags(ArgParser& parser) {
    const std::string group = "tokenizer";
    parser.option("tokenizer-type", ArgType::text)
        .defaults("GPT2BPETokenizer")
        .help("GPT2BPETokenizer or NullTokenizer")
        .group(group);
    // "vocab" is what argparse abbreviates to --vocab-file where there is no --vocab-size.
    parser.option("vocab-file", ArgType::text).alias("vocab").help("vocab.json").group(group);
    parser.option("merge-file", ArgType::text).help("merges.txt").group(group);
    parser.option("vocab-size", ArgType::integer).help("number of ids of NullTokenizer").group(group);
    parser.option("tokenizer-model", ArgType::text).help("file of tokenizers that are not built yet").group(group);
    parser.option("vocab-extra-ids", ArgType::integer).defaults("0").help("not built yet").group(group);
    parser.option("tiktoken-pattern", ArgType::text).help("not built yet").group(group);
    parser.option("tiktoken-num-special-tokens", ArgType::integer).help("not built yet").group(group);
    parser.option("tiktoken-special-tokens", ArgType::text)
        .values(ArgCount::one_or_more())
        .help("not built yet")
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
    for (const char* name : {"tiktoken-pattern", "tiktoken-num-special-tokens", "tiktoken-special-tokens"}) {
        std::string dest = name;
        std::replace(dest.begin(), dest.end(), '-', '_');
        if (args.given(dest)) usage_error("--", name, ": TikTokenizer is not built yet; leave the flag out");
    }
    if (config.vocab_extra_ids != 0) usage_error("--vocab-extra-ids is not built yet; leave it out or give 0");
    return config;
}

}  // namespace tera
