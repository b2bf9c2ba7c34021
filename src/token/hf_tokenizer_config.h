// What stands beside a tokenizer.json: which tokens are special and what they are for, and whether the begin and the
// end of a text are marked. Read as transformers 5 does.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "token/added_tokens.h"
#include "token/tokenizer.h"

namespace tera {

struct HfTokenizerConfig {
    std::string tokenizer_class;
    /// In the order in which they are added where the vocabulary lacks them: tokens that the configuration lists with
    /// all their properties, then the named ones.
    std::vector<AddedToken> listed_tokens;
    std::vector<AddedToken> special_tokens;
    std::string bos, eos, pad, sep, cls, mask, unk;  // empty: none
    std::optional<std::int32_t> eos_id;              // of generation_config.json, where nothing names a token
    bool split_special_tokens = false;               // special tokens inside text are text
    bool adds_special_tokens = true;                 // the post-processor is at work; not said by any file
    std::vector<TokenizerFile> files;                // as read
};

/// `folder` holds the tokenizer.json. Files that are not there are not missed.
HfTokenizerConfig read_hf_tokenizer_config(const std::string& folder);

}  // namespace tera
