// Tokens that are found in the text as they stand, before the model sees the rest: "<s>", "<|endoftext|>", ...
//
// Those that are not "normalized" are looked for in the raw text, the others (themselves normalised) in what the
// normalizer makes of the stretches between. The leftmost one wins, of several there the longest.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tera {

struct AddedToken {
    std::string content;
    std::int32_t id = -1;
    bool single_word = false;  // only where no word character stands next to it
    bool lstrip = false;       // takes the white space on its left
    bool rstrip = false;
    bool normalized = true;
    bool special = false;
};

/// Finds any of a set of strings in one pass (Aho and Corasick): from the state that stands for the longest suffix read
/// so far that begins some string, each byte leads on.
class StringFinder {
  public:
    /// Strings must be different and not empty.
    StringFinder() : StringFinder(std::vector<std::string_view>{}) {}
    explicit StringFinder(const std::vector<std::string_view>& strings);

    bool empty() const { return nodes_.size() == 1; }
    struct Match {
        std::size_t begin, end;
        std::uint32_t index;  // of the string
    };
    /// The leftmost match at or behind `from`, the longest of those; false if none.
    bool find(std::string_view text, std::size_t from, Match& match) const;

  private:
    static constexpr std::uint32_t none = 0xFFFFFFFF;
    struct Node {
        std::uint32_t fail = 0;        // the longest proper suffix that is a node
        std::uint32_t depth = 0;       // bytes
        std::uint32_t string = none;   // that ends here
        std::uint32_t shorter = none;  // node of the longest proper suffix that is a string
    };
    std::uint32_t child(std::uint32_t node, unsigned char byte) const {
        if (node == 0) return first_[byte];
        const auto found = children_.find(std::uint64_t{node} << 8 | byte);
        return found == children_.end() ? none : found->second;
    }
    std::uint32_t next(std::uint32_t node, unsigned char byte) const;
    std::size_t skip(std::string_view text, std::size_t at) const;

    std::vector<Node> nodes_;  // 0 is the root
    std::array<std::uint32_t, 256> first_;
    std::unordered_map<std::uint64_t, std::uint32_t> children_;  // node << 8 | byte; not of the root
    int only_first_ = -1;                                        // the byte with which all strings begin, if it is one
};

/// A stretch of text, or a token found there.
struct AddedSplit {
    std::size_t begin, end;
    std::int32_t id;  // below 0: text
};

class AddedTokenFinder {
  public:
    AddedTokenFinder() = default;
    /// `patterns[i]` is what to look for to find tokens[i]. With `split_special`, special tokens stay text where they
    /// are found.
    AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns,
                     bool split_special = false);

    bool empty() const { return finder_.empty(); }
    /// Replaces `splits`; what they leave out is nothing but white space that a token took.
    void split(std::string_view text, std::vector<AddedSplit>& splits) const;

  private:
    std::vector<AddedToken> tokens_;
    StringFinder finder_;
    bool split_special_ = false;
};

}  // namespace tera
