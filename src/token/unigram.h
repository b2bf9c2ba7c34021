// Unigram: of all ways to cut a piece into tokens, the one with the highest sum of scores (Viterbi over bytes). A
// character that is no token by itself may stand for the unknown token, at a score below all others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "token/piece_trie.h"

namespace tera {

struct UnigramOptions {
    std::int32_t unknown = 0;    // id
    bool byte_fallback = false;  // unknown text is its bytes, where "<0x00>" ... are tokens
};

class UnigramModel {
  public:
    /// Token and score; the id is the place. Of equal tokens the last counts.
    UnigramModel(std::span<const std::pair<std::string, double>> vocab, UnigramOptions options);

    struct Scratch {
        struct Node {
            double score = 0;
            std::uint32_t start = none;
            std::int32_t id = 0;
        };
        static constexpr std::uint32_t none = 0xFFFFFFFF;
        std::vector<Node> best;  // by the byte at which a path ends
        std::vector<Node> path;
    };
    /// Appends the ids of a piece (valid UTF-8, not empty). Time is linear in its length.
    void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const;

  private:
    void find_best(std::string_view piece, std::vector<Scratch::Node>& best) const;
    void add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const;

    UnigramOptions options_;
    std::vector<double> scores_;
    double unknown_score_ = 0;
    PieceTrie trie_;
    std::vector<std::int32_t> byte_ids_;  // of "<0x00>" ...; below 0: not there
};

/// "<0x0A>", the token of a byte in models with byte fallback.
std::string byte_fallback_token(unsigned char byte);

}  // namespace tera
