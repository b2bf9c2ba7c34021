#include "token/hf_unicode.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace tera {

namespace {

#include "token/hf_unicode_data.inc"

/// Strings by code point, as the generated arrays hold them: keys are code << 5 | length, sorted.
class CodeStrings {
  public:
    CodeStrings(std::span<const std::uint32_t> keys, std::span<const std::uint32_t> codes)
        : keys_(keys), codes_(codes), starts_(keys.size()) {
        std::uint32_t at = 0;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            starts_[i] = at;
            at += keys[i] & 31;
        }
    }
    std::span<const std::uint32_t> find(std::uint32_t c) const {
        const auto found = std::lower_bound(keys_.begin(), keys_.end(), c << 5);
        if (found == keys_.end() || *found >> 5 != c) return {};
        return codes_.subspan(starts_[static_cast<std::size_t>(found - keys_.begin())], *found & 31);
    }

  private:
    std::span<const std::uint32_t> keys_, codes_;
    std::vector<std::uint32_t> starts_;
};

}  // namespace

HfCharTable::HfCharTable() : kinds_(property_kinds) {
    std::map<std::vector<std::uint16_t>, std::uint16_t> known_blocks;
    std::vector<std::uint16_t> block(128);
    const std::uint32_t* run = std::begin(property_runs);
    for (std::uint32_t c = 0; c < 0x110000; ++c) {
        while (run + 1 < std::end(property_runs) && run[1] >> 11 <= c) ++run;
        block[c & 127] = static_cast<std::uint16_t>(*run & 2047);
        if ((c & 127) != 127) continue;
        const auto [place, is_new] = known_blocks.try_emplace(block, static_cast<std::uint16_t>(known_blocks.size()));
        if (is_new) numbers_.insert(numbers_.end(), block.begin(), block.end());
        block_of_[c >> 7] = place->second;
    }
}

const HfCharTable& hf_chars() {
    static const HfCharTable table;
    return table;
}

int combining_class(std::uint32_t c) {
    const auto* found = std::lower_bound(std::begin(combining_keys), std::end(combining_keys), c << 8);
    return found != std::end(combining_keys) && *found >> 8 == c ? static_cast<int>(*found & 255) : 0;
}

std::span<const std::uint32_t> lower_case(std::uint32_t c) {
    static const CodeStrings strings(lower_keys, lower_codes);
    return strings.find(c);
}

std::span<const std::uint32_t> decomposition(std::uint32_t c, bool compatible) {
    static const CodeStrings canonical(canonical_keys, canonical_codes);
    static const CodeStrings compatible_only(compatible_keys, compatible_codes);
    if (compatible) {
        const auto found = compatible_only.find(c);
        if (!found.empty()) return found;
    }
    return canonical.find(c);
}

std::optional<std::uint32_t> composition(std::uint32_t first, std::uint32_t second) {
    using namespace hangul;
    if (first - l < ls && second - v < vs) return s + ((first - l) * vs + second - v) * ts;
    if (first - s < ss && (first - s) % ts == 0 && second - t - 1 < ts - 1) return first + second - t;
    const auto [from, to] = std::equal_range(std::begin(composition_firsts), std::end(composition_firsts), first);
    const auto* seconds = composition_seconds + (from - composition_firsts);
    const auto* end = composition_seconds + (to - composition_firsts);
    const auto* found = std::lower_bound(seconds, end, second);
    if (found == end || *found != second) return std::nullopt;
    return composition_results[found - composition_seconds];
}

}  // namespace tera
