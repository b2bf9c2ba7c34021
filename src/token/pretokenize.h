// Cuts text into the pieces that byte-pair encoding never crosses, by the patterns that tokenizers use.
//
// Every character belongs to exactly one piece. A byte that is not valid UTF-8 is a character of its own, neither
// letter nor number nor space, and stays in its piece as it is. Classes are those of Unicode 16, as in Hugging Face
// tokenizers and tiktoken.
#pragma once

#include <optional>
#include <string_view>

#include "token/unicode.h"

namespace tera {

/// Written as the regular expressions, which alternate from left to right:
///   gpt2       's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///   llama3     (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+
///              |\s+(?!\S)|\s+                            (also tiktoken's cl100k_base of before 2024)
///   cl100k     llama3 with |\s++$ before |\s*[\r\n]+: blanks that end the text are one piece   (tiktoken's
///   cl100k_base) qwen2      llama3 with single digits, \p{N} qwen3_5    qwen2 where marks \p{M} are letters inside
///   words tekken_v1  qwen2 without the contractions            (Megatron's TikTokenizer, pattern v1) tekken_v2  U =
///   [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W = [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
///              [^\r\n\p{L}\p{N}]?U*W+|[^\r\n\p{L}\p{N}]?U+W*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
///                                                       (TikTokenizer v2, Mistral Nemo, Apertus)
///   o200k      tekken_v2 with \p{N}{1,3}, and (?i:'s|'t|'re|'ve|'m|'ll|'d)? behind each word
enum class PretokenPattern { gpt2, cl100k, llama3, qwen2, qwen3_5, tekken_v1, tekken_v2, o200k };

/// The pattern whose pieces this regular expression gives: one of those in the tokenizer.json files of GPT-2, Llama 3,
/// Qwen, Mistral Nemo and Apertus, in tiktoken or in Megatron, letter by letter. Nothing for any other.
std::optional<PretokenPattern> pretoken_pattern_of(std::string_view regex);

/// End of the piece that begins at p; p < end. One piece at a time, character by character.
const char* piece_end(PretokenPattern pattern, const char* p, const char* end);

}  // namespace tera
