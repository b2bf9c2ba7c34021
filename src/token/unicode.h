// Properties of code points. The tables are generated (scripts/make_unicode_data.py) and expanded once, on first use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tera {

/// The general category of Unicode, by its two-letter name in lower case. (Order: scripts/make_unicode_data.py.)
enum class Category : std::uint8_t {
    cn,
    lu,
    ll,
    lt,
    lm,
    lo,
    mn,
    mc,
    me,
    nd,
    nl,
    no,
    pc,
    pd,
    ps,
    pe,
    pi,
    pf,
    po,
    sm,
    sc,
    sk,
    so,
    zs,
    zl,
    zp,
    cc,
    cf,
    cs,
    co,
};

/// What the patterns of token/pretokenize.h tell apart. \p{L} is upper, lower and caseless together.
enum class CharClass : std::uint8_t {
    other,
    mark,      // \p{M}
    upper,     // \p{Lu} \p{Lt}
    lower,     // \p{Ll}
    caseless,  // \p{Lm} \p{Lo}
    number,    // \p{N}
    space,     // \s
};
constexpr bool is_letter(CharClass c) { return c >= CharClass::upper && c <= CharClass::caseless; }

Category general_category(std::uint32_t code_point);

/// The White_Space property: 25 code points, not the separators U+001C..U+001F.
bool is_white_space(std::uint32_t code_point);

/// CharClass of every code point in two steps: block_of[c / 128] chooses 128 classes.
class CharClassTable {
  public:
    CharClassTable();
    CharClass operator()(std::uint32_t c) const { return classes_[block_of_[c >> 7] * 128u + (c & 127)]; }
    /// By first byte of UTF-8: the class of an ASCII character, or `multi` for a byte beyond.
    static constexpr std::uint8_t multi = 7;
    const std::array<std::uint8_t, 256>& first_byte() const { return first_byte_; }

  private:
    std::array<std::uint16_t, 0x110000 / 128> block_of_;
    std::array<std::uint8_t, 256> first_byte_;
    std::vector<CharClass> classes_;
};

const CharClassTable& char_class_table();

const char* unicode_tables_version();

}  // namespace tera
