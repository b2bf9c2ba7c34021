#include "token/unicode.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace tera {

namespace {

#include "token/unicode_data.inc"

CharClass class_of(std::uint32_t code_point, Category category) {
    if (is_white_space(code_point)) return CharClass::space;
    if (category == Category::lu || category == Category::lt) return CharClass::upper;
    if (category == Category::ll) return CharClass::lower;
    if (category == Category::lm || category == Category::lo) return CharClass::caseless;
    if (category >= Category::mn && category <= Category::me) return CharClass::mark;
    if (category >= Category::nd && category <= Category::no) return CharClass::number;
    return CharClass::other;
}

Category run_category(std::uint32_t run) { return static_cast<Category>(run & 31); }

}  // namespace

const char* unicode_tables_version() { return unicode_version; }

Category general_category(std::uint32_t code_point) {
    if (code_point > 0x10FFFF) return Category::cn;
    const auto* next = std::upper_bound(std::begin(category_runs), std::end(category_runs), code_point << 5 | 31);
    return run_category(next[-1]);
}

bool is_white_space(std::uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

CharClassTable::CharClassTable() {
    std::map<std::vector<CharClass>, std::uint16_t> known_blocks;
    std::vector<CharClass> block(128);
    const std::uint32_t* run = std::begin(category_runs);
    const auto run_end = [&run] { return run + 1 < std::end(category_runs) ? run[1] >> 5 : 0x110000; };
    for (std::uint32_t first = 0; first < 0x110000; first += 128) {
        for (std::uint32_t c = first; c < first + 128; ++c) {
            while (run_end() <= c) ++run;
            // Most blocks are in the middle of a long run; the last white space is U+3000.
            if (c == first && c > 0x3000 && run_end() >= first + 128) {
                block.assign(128, class_of(c, run_category(*run)));
                break;
            }
            block[c & 127] = class_of(c, run_category(*run));
        }
        const auto [place, is_new] = known_blocks.try_emplace(block, static_cast<std::uint16_t>(known_blocks.size()));
        if (is_new) classes_.insert(classes_.end(), block.begin(), block.end());
        block_of_[first >> 7] = place->second;
    }
    for (std::uint32_t byte = 0; byte < 256; ++byte)
        first_byte_[byte] = byte < 128 ? static_cast<std::uint8_t>((*this)(byte)) : multi;
}

const CharClassTable& char_class_table() {
    static const CharClassTable table;
    return table;
}

}  // namespace tera
