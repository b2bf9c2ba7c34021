// What SentencePiece does to text before it looks for pieces: rules from the model (longest first, over bytes), spaces
// at the ends and in a row taken out, a space put in front, spaces written as U+2581, invalid UTF-8 as U+FFFD. Each of
// these as the model says.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "token/piece_trie.h"
#include "token/sentencepiece_model.h"

namespace tera {

/// The rules of a precompiled_charsmap: a double array (as Darts-clone lays it out) from byte strings to offsets into
/// zero-terminated replacements.
class CharsMap {
  public:
    CharsMap() = default;
    /// UsageError if it is damaged.
    CharsMap(std::string_view blob, const std::string& file);

    bool empty() const { return units_.empty(); }
    struct Match {
        std::size_t length = 0;  // bytes replaced; 0: no rule
        std::string_view replacement;
    };
    Match longest(std::string_view text) const;
    /// Whether some rule may apply where these two bytes follow each other. False means that it does not.
    bool may_match(unsigned char first, unsigned char second) const {
        return may_match_[first][second >> 5] >> (second & 31) & 1;
    }

  private:
    std::uint32_t unit(std::size_t at) const { return at < units_.size() ? units_[at] : 0; }
    std::size_t find_child(std::size_t node, unsigned char byte) const;

    std::vector<std::uint32_t> units_;
    std::string replacements_;
    std::array<std::array<std::uint32_t, 8>, 256> may_match_{};
};

class SentencePieceNormalizer {
  public:
    SentencePieceNormalizer(const SentencePieceModel& model, const std::string& file);

    /// Replaces `out`.
    void normalize(std::string_view text, std::string& out) const;
    /// User-defined pieces: they stay as they are, and are found before anything else.
    const PieceTrie& user_defined() const { return user_defined_; }
    bool begins_user_defined(char c) const { return begins_user_defined_[static_cast<unsigned char>(c)]; }

  private:
    struct Prefix {
        std::string_view text;
        std::size_t consumed;
    };
    Prefix prefix(std::string_view text) const;

    CharsMap map_;
    PieceTrie user_defined_;
    std::array<bool, 256> begins_user_defined_{};
    // By an ASCII character and the byte behind it: the character stands for itself.
    std::array<std::array<bool, 256>, 128> stays_{};
    bool add_prefix_, add_suffix_, remove_extra_, escape_;
};

}  // namespace tera
