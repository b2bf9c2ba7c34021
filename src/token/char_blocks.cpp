#include "token/char_blocks.h"

#include <algorithm>
#include <bit>

namespace tera {

namespace {

constexpr std::uint64_t one = 1;

unsigned first_bit(std::uint64_t mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

/// Adds the characters beyond ASCII, up to the first that is a space or not valid.
void classify_others(const char* p, CharBlock& block) {
    const auto utf8 = char_blocks::utf8_masks(p);
    const std::uint64_t leads = block.multi & ~utf8.continuation;
    const std::uint64_t follow = leads << 1 | utf8.three << 2 | utf8.four << 3;
    if (const std::uint64_t wrong = (follow ^ utf8.continuation) & block.known()) {
        const unsigned at = first_bit(wrong);
        block.cut(at > 3 ? at - 3 : 0);  // whatever character it is in begins there or later
    }
    const CharClassTable& table = char_class_table();
    std::uint64_t of_class[8] = {};
    for (std::uint64_t rest = leads & block.known(); rest != 0; rest &= rest - 1) {
        const unsigned i = first_bit(rest);
        const auto byte = [p, i](unsigned k) {
            return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i + k]));
        };
        const bool is_three = utf8.three >> i & 1, is_four = utf8.four >> i & 1;
        const unsigned length = 2u + is_three + is_four;
        if (i + length > block.limit) {
            block.cut(i);
            break;
        }
        std::uint32_t value = 0, least = 0;
        if (!is_three) {
            value = (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
            least = 0x80;
        } else if (!is_four) {
            value = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
            least = value >= 0xD800 && value < 0xE000 ? 0xFFFFFFFF : 0x800;
        } else {
            value = (byte(0) & 0x0F) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
            least = value > 0x10FFFF ? 0xFFFFFFFF : 0x10000;
        }
        const CharClass found = value < least ? CharClass::space : table(value);
        if (found == CharClass::space) {
            block.cut(i);
            break;
        }
        of_class[static_cast<unsigned>(found)] |= ((one << length) - 1) << i;
    }
    const std::uint64_t known = block.known();
    const auto add = [&](std::uint64_t& mask, CharClass which) {
        mask |= of_class[static_cast<unsigned>(which)] & known;
    };
    add(block.upper, CharClass::upper);
    add(block.lower, CharClass::lower);
    add(block.caseless, CharClass::caseless);
    add(block.mark, CharClass::mark);
    add(block.number, CharClass::number);
    block.lead = known & ~utf8.continuation;
}

}  // namespace

void CharBlock::cut(unsigned new_limit) {
    if (new_limit >= limit) return;
    limit = new_limit;
    for (std::uint64_t* mask :
         {&upper, &lower, &caseless, &mark, &number, &space, &line_end, &blank, &apostrophe, &multi, &lead})
        *mask &= known();
}

void classify_block(const char* p, unsigned size, CharBlock& block) {
    block = {};
    char_blocks::classify_ascii(p, block);
    block.limit = CharBlock::size;
    block.lead = ~std::uint64_t{0};
    if (size < CharBlock::size) block.cut(size);
    if (block.multi != 0) classify_others(p, block);
}

}  // namespace tera
