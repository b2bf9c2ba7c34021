// The files of tiktoken vocabularies. Both list byte strings in the order of their ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// Megatron's JSON file: a list of {"rank": place, "token_bytes": base64, "token_str": anything}, these keys exactly;
/// the first 256 are the single bytes. Returns the first `count`. UsageError (naming `file`) for anything else, for
/// tokens that are there twice, and if there are fewer than `count`.
std::vector<std::string> parse_tiktoken_json(std::string_view bytes, const std::string& file, std::size_t count);

/// A .tiktoken file: a token in base64 and its rank on each line. UsageError if ranks are not 0, 1, 2, ..., a token is
/// there twice, or a single byte is missing.
std::vector<std::string> parse_tiktoken_ranks(std::string_view bytes, const std::string& file);

/// False if it is not base64 with its padding.
bool decode_base64(std::string_view text, std::string& out);

}  // namespace tera
