#include "token/piece_scanner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "token/char_blocks.h"
#include "token/pretokenize_rules.h"

namespace tera {

namespace {

constexpr std::uint64_t one = 1;

/// What begins at a byte is told by that byte, the text before it and so many bytes behind it: 'll and the like.
constexpr unsigned look_ahead = 3;

unsigned first_bit(std::uint64_t mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

/// The first bytes of runs of ones.
std::uint64_t run_starts(std::uint64_t mask) { return mask & ~(mask << 1); }

/// The bit of each run of `runs` (all of its bits) whose last bit is in `chosen`, moved to the first bit of the run.
std::uint64_t starts_of_runs(std::uint64_t runs, std::uint64_t chosen) {
    const std::uint64_t ends = runs & ~(runs >> 1), starts = run_starts(runs);
#if defined(__BMI2__)
    return _pdep_u64(_pext_u64(chosen, ends), starts);
#else
    std::uint64_t result = 0;
    for (std::uint64_t s = starts, e = ends; s != 0; s &= s - 1, e &= e - 1)
        if (e & -e & chosen) result |= s & -s;
    return result;
#endif
}

/// Where pieces begin in a block that begins with one. What depends on bytes behind the block may be wrong.
std::uint64_t gpt2_starts(const char* p, const CharBlock& block) {
    const std::uint64_t other = block.other() | block.mark, after_blank = block.blank << 1;
    std::uint64_t starts = (run_starts(block.letter()) | run_starts(block.number) | run_starts(other)) & ~after_blank;
    starts |= run_starts(block.space) | (block.space & ~(block.space >> 1));
    for (std::uint64_t rest = block.apostrophe & run_starts(other) & ~after_blank; rest != 0; rest &= rest - 1) {
        const unsigned i = first_bit(rest);
        const int length = contraction(p + i, p + block.limit, false);
        if (length == 0) continue;
        starts &= ~(one << (i + 1));
        if (i + length < CharBlock::size) starts |= one << (i + length);
    }
    return starts;
}

/// Runs of blanks: with a line end inside, a piece ends behind the last one; what is left gives its last character to
/// what follows. `tail`: line ends that belong to the punctuation before them.
std::uint64_t blank_starts(const CharBlock& block, std::uint64_t tail) {
    const std::uint64_t space = block.space & ~tail, plain = space & ~block.line_end;
    const std::uint64_t last = plain & ~(space >> 1);
    return run_starts(space) | last | starts_of_runs(plain, last);
}

/// Pieces of at most three digits each.
std::uint64_t number_starts(std::uint64_t number) {
    const std::uint64_t fourth = number & number << 1 & number << 2 & number << 3;
    std::uint64_t starts = 0;
    for (std::uint64_t next = run_starts(number); next != 0; next = next << 3 & fourth) starts |= next;
    return starts;
}

/// What a block cannot tell of words in upper and lower case ends it.
void cut_hard_cases(const char* p, CharBlock& block, std::uint64_t tail) {
    const std::uint64_t word = block.letter() | block.mark;
    std::uint64_t hard = block.mark & block.lead & ~(word << 1);  // a mark that is not inside a word
    hard |= block.upper & ((block.caseless | block.mark) << 1);   // whether the word goes on depends on what follows
    if (hard != 0) block.cut(first_bit(hard));
    for (std::uint64_t rest = block.other() & tail << 1; rest != 0; rest &= rest - 1)
        if (p[first_bit(rest)] == '/') return block.cut(first_bit(rest));
}

/// (?i:'s|...)? behind words.
void join_contractions(const char* p, CharBlock& block, std::uint64_t& starts) {
    unsigned joined = 0;  // end of the last one; a second one begins a piece
    for (std::uint64_t rest = block.apostrophe & (block.letter() | block.mark) << 1; rest != 0; rest &= rest - 1) {
        const unsigned i = first_bit(rest);
        const auto length = static_cast<unsigned>(contraction(p + i, p + block.limit, true));
        if (length == 0 || i == joined) continue;
        joined = i + length;
        starts &= ~(((one << length) - 1) << i);
        if (joined >= CharBlock::size) break;
        starts |= one << joined;
        if (block.mark >> joined & 1) return block.cut(joined);
    }
}

template <PretokenPattern pattern>
std::uint64_t modern_starts(const char* p, CharBlock& block) {
    constexpr PretokenRules rules = rules_of(pattern);
    if (rules.digits > 1 && (block.number & block.multi) != 0) block.cut(first_bit(block.number & block.multi));
    const auto line_tail = [&block](std::uint64_t other) {
        const std::uint64_t first = block.line_end & other << 1;
        return block.line_end & ~(block.line_end + first);  // carries run through the line ends that follow
    };
    if (rules.cased_words) cut_hard_cases(p, block, line_tail(block.other()));
    constexpr bool word_marks = rules.cased_words || rules.marks_in_words;
    const std::uint64_t letter = block.letter() | (word_marks ? block.mark : 0);
    const std::uint64_t other = block.other() | (word_marks ? 0 : block.mark);
    const std::uint64_t tail = line_tail(other);
    std::uint64_t starts = blank_starts(block, tail);
    const std::uint64_t other_starts = run_starts(other) & ~(block.blank << 1);
    starts |= other_starts;
    // A word takes one character before it that is neither number nor line end, if a piece begins with that.
    const std::uint64_t follow = block.multi & ~block.lead;
    const std::uint64_t after_multi = (follow + ((other_starts & block.multi) << 1)) & ~follow;
    const std::uint64_t taken = (other_starts & ~block.multi) << 1 | after_multi | (block.space & ~block.line_end) << 1;
    starts |= run_starts(letter) & ~taken;
    if (rules.cased_words) starts |= block.upper & block.lower << 1;
    starts |= rules.digits == 1 ? block.number & block.lead : number_starts(block.number);
    if (rules.contraction_first) {
        for (std::uint64_t rest = block.apostrophe & other_starts; rest != 0; rest &= rest - 1) {
            const unsigned i = first_bit(rest);
            const int length = contraction(p + i, p + block.limit, true);
            if (length > 0 && i + length < CharBlock::size) starts |= one << (i + length);
        }
    }
    if (rules.contraction_last) join_contractions(p, block, starts);
    return starts;
}

/// The bits from 1 on that the block can tell.
std::uint64_t certain(const CharBlock& block) {
    if (block.limit <= look_ahead + 1) return 0;
    // Blanks at the end of the block belong together with those behind it.
    const auto blanks = static_cast<unsigned>(std::countl_one(block.space << (CharBlock::size - block.limit)));
    const unsigned last = std::min(block.limit - look_ahead - 1, block.limit - blanks);
    return ((one << last << 1) - 1) & ~one;
}

/// Writes base + the place of each bit; may write up to 64 elements behind the last.
std::size_t write_places(std::uint64_t mask, std::uint32_t base, std::uint32_t* out) {
    const auto count = static_cast<std::size_t>(std::popcount(mask));
#if defined(__AVX512VBMI2__) && defined(__AVX512F__)
    alignas(64) static constexpr auto places = [] {
        std::array<std::uint8_t, 64> list{};
        for (unsigned i = 0; i < 64; ++i) list[i] = static_cast<std::uint8_t>(i);
        return list;
    }();
    const __m512i packed = _mm512_maskz_compress_epi8(mask, _mm512_load_si512(places.data()));
    const __m512i start = _mm512_set1_epi32(static_cast<int>(base));
    const auto store = [&](__m128i bytes, std::uint32_t* to) {
        _mm512_storeu_si512(to, _mm512_add_epi32(start, _mm512_maskz_cvtepu8_epi32(0xFFFF, bytes)));
    };
    store(_mm512_maskz_extracti32x4_epi32(0xF, packed, 0), out);
    if (count > 16) {
        store(_mm512_maskz_extracti32x4_epi32(0xF, packed, 1), out + 16);
        store(_mm512_maskz_extracti32x4_epi32(0xF, packed, 2), out + 32);
        store(_mm512_maskz_extracti32x4_epi32(0xF, packed, 3), out + 48);
    }
#else
    for (; mask != 0; mask &= mask - 1) *out++ = base + first_bit(mask);
#endif
    return count;
}

}  // namespace

template <PretokenPattern pattern>
std::size_t PieceScanner::scan(std::uint32_t* ends, std::size_t room) {
    const char* const begin = p_;
    std::size_t count = 0;
    char last_bytes[CharBlock::size];
    while (p_ < end_ && count + 2 * CharBlock::size <= room) {
        const char* bytes = p_;
        const auto size = static_cast<unsigned>(std::min<std::ptrdiff_t>(end_ - p_, CharBlock::size));
        if (size < CharBlock::size) {
            std::memset(last_bytes, 0, sizeof last_bytes);
            std::memcpy(last_bytes, p_, size);
            bytes = last_bytes;
        }
        CharBlock block;
        classify_block(bytes, size, block);
        std::uint64_t starts = 0;
        if constexpr (pattern == PretokenPattern::gpt2)
            starts = gpt2_starts(bytes, block);
        else
            starts = modern_starts<pattern>(bytes, block);
        starts &= certain(block);
        const auto base = static_cast<std::uint32_t>(p_ - begin);
        if (starts != 0) {
            count += write_places(starts, base, ends + count);
            p_ += std::bit_width(starts) - 1;
            continue;
        }
        const char* stop = piece_end(pattern, p_, end_);
        const std::ptrdiff_t most = std::numeric_limits<std::int32_t>::max();
        if (count > 0 && stop - begin > most) break;
        TERA_CHECK(stop - p_ <= most, "a piece of ", stop - p_, " bytes");
        p_ = stop;
        ends[count++] = static_cast<std::uint32_t>(p_ - begin);
    }
    return count;
}

std::size_t PieceScanner::next(std::uint32_t* ends, std::size_t room) {
    TERA_CHECK(room >= least_room, room);
    switch (pattern_) {
        case PretokenPattern::gpt2:
            return scan<PretokenPattern::gpt2>(ends, room);
        case PretokenPattern::cl100k:
            return scan<PretokenPattern::cl100k>(ends, room);
        case PretokenPattern::llama3:
            return scan<PretokenPattern::llama3>(ends, room);
        case PretokenPattern::qwen2:
            return scan<PretokenPattern::qwen2>(ends, room);
        case PretokenPattern::qwen3_5:
            return scan<PretokenPattern::qwen3_5>(ends, room);
        case PretokenPattern::tekken_v1:
            return scan<PretokenPattern::tekken_v1>(ends, room);
        case PretokenPattern::tekken_v2:
            return scan<PretokenPattern::tekken_v2>(ends, room);
        case PretokenPattern::o200k:
            return scan<PretokenPattern::o200k>(ends, room);
    }
    return 0;
}

}  // namespace tera
