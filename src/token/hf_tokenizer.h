// HuggingFaceTokenizer: a folder with tokenizer.json, executed here. The ids are those of `tokenizers` for the same
// file and of tokenizer(text).input_ids in `transformers`: special tokens inside text are found, and the file's
// post-processor adds what it adds (<s>, [CLS], ...). Bytes that are not valid UTF-8 are U+FFFD first, as in Python's
// errors="replace".
#pragma once

#include <memory>
#include <string>

#include "token/tokenizer.h"

namespace tera {

/// `path` is a tokenizer.json or its folder. Files beside it that count when they are there: tokenizer_config.json,
/// special_tokens_map.json, generation_config.json. UsageError for anything in the file that is not known here.
std::unique_ptr<Tokenizer> load_hugging_face_tokenizer(const std::string& path, bool add_special_tokens = true);

/// From the bytes of a tokenizer.json alone; `file` is only named in errors.
std::unique_ptr<Tokenizer> parse_hugging_face_tokenizer(std::string bytes, const std::string& file);

}  // namespace tera
