#include "token/piece_trie.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> entries) : is_empty_(entries.empty()) {
    nodes_.resize(512);
    nodes_[root].parent = none - 1;  // taken, and nobody's child
    std::sort(entries.begin(), entries.end());
    struct Range {
        std::uint32_t node;
        std::size_t begin, end, depth;  // the entries that share the first `depth` bytes
    };
    std::vector<Range> open = {{root, 0, entries.size(), 0}};
    std::vector<unsigned char> bytes;
    std::vector<std::size_t> starts;
    while (!open.empty()) {
        Range range = open.back();
        open.pop_back();
        if (range.begin < range.end && entries[range.begin].first.size() == range.depth) {
            TERA_CHECK(range.depth > 0 && entries[range.begin].second >= 0, "an empty or negative entry");
            nodes_[range.node].value = entries[range.begin++].second;
            TERA_CHECK(range.begin == range.end || entries[range.begin].first.size() > range.depth, "entered twice");
        }
        bytes.clear();
        starts.clear();
        for (std::size_t i = range.begin; i < range.end; ++i) {
            const auto byte = static_cast<unsigned char>(entries[i].first[range.depth]);
            if (!bytes.empty() && bytes.back() == byte) continue;
            bytes.push_back(byte);
            starts.push_back(i);
        }
        if (bytes.empty()) continue;
        starts.push_back(range.end);
        const std::uint32_t base = find_base(bytes);
        nodes_[range.node].base = base;
        for (std::size_t k = 0; k < bytes.size(); ++k) nodes_[base + bytes[k]].parent = range.node;
        end_ = std::max(end_, base + bytes.back() + 1);
        for (std::size_t k = bytes.size(); k-- > 0;)
            open.push_back({base + bytes[k], starts[k], starts[k + 1], range.depth + 1});
    }
}

/// A base at which all of these children are free: the first one, unless that is far. An only child takes the first
/// free place, so the holes that large families leave fill up again.
std::uint32_t PieceTrie::find_base(const std::vector<unsigned char>& bytes) {
    constexpr std::uint32_t patience = 256;
    const auto is_free = [this](std::uint32_t at) { return nodes_[at].parent == none; };
    while (!is_free(first_free_)) {
        ++first_free_;
        if (nodes_.size() < std::size_t{first_free_} + 768) nodes_.resize(nodes_.size() * 2);
    }
    std::uint32_t passed = 0;
    for (std::uint32_t at = std::max<std::uint32_t>(first_free_, bytes[0]);; ++at) {
        if (nodes_.size() < std::size_t{at} + 768) nodes_.resize(nodes_.size() * 2);
        const std::uint32_t base = at - bytes[0];
        const auto fits = [&](unsigned char byte) { return is_free(base + byte); };
        if (is_free(at) && std::all_of(bytes.begin(), bytes.end(), fits)) return base;
        if (++passed == patience) at = std::max(at, end_ + 256);  // nothing is there yet
    }
}

}  // namespace tera
