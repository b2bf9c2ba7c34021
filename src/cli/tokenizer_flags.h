// The tokenizer flags that the data commands share, by Megatron's names.
#pragma once

#include "config/arg_parser.h"
#include "token/tokenizer.h"

namespace tera {

/// Declares --tokenizer-type, --vocab-file, --merge-file and the rest, in a group of their own.
void add_tokenizer_flags(ArgParser& parser);

/// The flags as given.
TokenizerConfig tokenizer_config(const ParsedArgs& args);

}  // namespace tera
