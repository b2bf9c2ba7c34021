// A set of byte strings with a number each, in a double array: the children of a node stand at base + byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tera {

class PieceTrie {
  public:
    static constexpr std::uint32_t root = 0;
    static constexpr std::uint32_t none = 0xFFFFFFFF;

    PieceTrie() : PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>>{}) {}
    /// Strings must be different and not empty, values not negative.
    explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> entries);

    bool empty() const { return is_empty_; }
    /// The node that `byte` leads to, or none.
    std::uint32_t child(std::uint32_t node, unsigned char byte) const {
        const std::uint32_t at = nodes_[node].base + byte;
        return nodes_[at].parent == node ? at : none;
    }
    /// Value of the string that ends at this node; below 0 if none does.
    std::int32_t value(std::uint32_t node) const { return nodes_[node].value; }

    struct Match {
        std::int32_t value = -1;  // below 0: none
        std::size_t length = 0;
    };
    /// The longest string that `text` begins with.
    Match longest(std::string_view text) const {
        Match best;
        std::uint32_t node = root;
        for (std::size_t i = 0; i < text.size(); ++i) {
            node = child(node, static_cast<unsigned char>(text[i]));
            if (node == none) break;
            if (value(node) >= 0) best = {value(node), i + 1};
        }
        return best;
    }

  private:
    struct Node {
        std::uint32_t base = 0;
        std::uint32_t parent = none;
        std::int32_t value = -1;
    };
    std::uint32_t find_base(const std::vector<unsigned char>& bytes);

    std::vector<Node> nodes_;  // always 256 free ones behind the last base
    std::uint32_t first_free_ = 1;
    std::uint32_t end_ = 0;  // one past the last place taken
    bool is_empty_ = true;
};

}  // namespace tera
