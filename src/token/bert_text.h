// How BERT's own tokenizer reads text before WordPiece: cleaned, cut at white space, around Chinese characters and at
// punctuation; for lower-case vocabularies in lower case and without accents. As Megatron's bert_tokenization.py does
// it in Python, whose lower() knows the Greek final sigma.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// What becomes of one code point.
enum class BertChar : std::uint8_t {
    part,     // of a word
    punct,    // a word of its own, once lower-cased and without accents
    chinese,  // white space on both sides
    blank,    // white space
    dropped,  // control characters, U+FFFD
};
BertChar bert_char(std::uint32_t code_point);

/// The word, which has no white space in it, as a lower-case vocabulary has it: lower case, decomposed (NFD), without
/// nonspacing marks. Replaces `out`.
void bert_lower(const std::vector<std::uint32_t>& word, std::vector<std::uint32_t>& out);

}  // namespace tera
