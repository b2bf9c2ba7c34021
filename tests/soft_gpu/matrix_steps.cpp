// Products on the matrix units, of warps and of warp groups, and the fragments they take.
#include <limits>

#include "soft_gpu/elementwise.h"
#include "soft_gpu/half.h"
#include "soft_gpu/translate.h"

namespace soft_gpu {
namespace {

/// Four matrices of 8 x 8; lane l gives the address of row l % 8 of matrix l / 8, and has of each row l / 4 the columns
/// 2 (l % 4) and the next; transposed: of each column.
using Fragments = std::uint16_t[4][8][8];

bool here(const Warp& w) { return (w.alive & ~w.groups[w.now].lanes) == 0; }

std::uint32_t row_address(const Warp& w, const Step& s, int l) {
    const std::uint32_t address = w.lane<std::uint32_t>(s.a, l) + static_cast<std::uint32_t>(s.number);
    if (address % 16 != 0) throw Fault("a row at an address that is no multiple of 16");
    return address;
}

template <bool transposed>
Outcome load_fragments(Warp& w, const Step& s, Mask mask) {
    if (!here(w)) return Outcome::waits;
    if (mask != all_lanes) throw Fault("fragments for a part of a warp");
    Fragments m;
    for (int l = 0; l < lanes; ++l)
        std::memcpy(m[l / 8][l % 8], w.shared_for(row_address(w, s, l), 16, Access::read, l), 16);
    for (std::size_t k = 0; k < 4; ++k)
        for (int l = 0; l < lanes; ++l) {
            const int r = l / 4, c = 2 * (l % 4);
            const std::uint16_t low = transposed ? m[k][c][r] : m[k][r][c];
            const std::uint16_t high = transposed ? m[k][c + 1][r] : m[k][r][c + 1];
            w.set_lane(w.more(s, k), l, std::uint32_t{high} << 16 | low);
        }
    return Outcome::next;
}

Outcome store_fragments(Warp& w, const Step& s, Mask mask) {
    if (!here(w)) return Outcome::waits;
    if (mask != all_lanes) throw Fault("fragments of a part of a warp");
    Fragments m;
    for (std::size_t k = 0; k < 4; ++k)
        for (int l = 0; l < lanes; ++l) {
            const std::uint32_t two = w.lane<std::uint32_t>(w.more(s, k), l);
            m[k][l / 4][2 * (l % 4)] = static_cast<std::uint16_t>(two);
            m[k][l / 4][2 * (l % 4) + 1] = static_cast<std::uint16_t>(two >> 16);
        }
    for (int l = 0; l < lanes; ++l)
        std::memcpy(w.shared_for(row_address(w, s, l), 16, Access::write, l), m[l / 8][l % 8], 16);
    return Outcome::next;
}

struct Bf16 {
    static float value(std::uint16_t bits) { return from_bf16(bits); }
};
struct F16 {
    static float value(std::uint16_t bits) { return from_f16(bits); }
};

/// d [16, 8] = a [16, 16] b [16, 8] + c. Values: d 4, a 4, b 2, c 4.
template <class T>
Outcome multiply_warp(Warp& w, const Step& s, Mask mask) {
    if (!here(w)) return Outcome::waits;
    if (mask != all_lanes) throw Fault("a product of a part of a warp");
    float a[16][16], b[16][8], c[16][8];
    const auto halves = [&](std::size_t which, auto at) {
        const std::uint32_t* two = w.read<std::uint32_t>(w.more(s, which));
        for (int l = 0; l < lanes; ++l) {
            at(l / 4, 2 * (l % 4)) = T::value(static_cast<std::uint16_t>(two[l]));
            at(l / 4, 2 * (l % 4) + 1) = T::value(static_cast<std::uint16_t>(two[l] >> 16));
        }
    };
    for (std::size_t k = 0; k < 4; ++k)
        halves(4 + k, [&](int g, int t) -> float& {
            return a[g + 8 * static_cast<int>(k % 2)][t + 8 * static_cast<int>(k / 2)];
        });
    for (std::size_t k = 0; k < 2; ++k)
        halves(8 + k, [&](int g, int t) -> float& { return b[t + 8 * static_cast<int>(k)][g]; });
    for (int k = 0; k < 4; ++k) {
        const std::uint32_t* sum = w.read<float>(w.more(s, 10 + static_cast<std::size_t>(k)));
        for (int l = 0; l < lanes; ++l) c[l / 4 + 8 * (k / 2)][2 * (l % 4) + k % 2] = from_cell<float>(sum[l]);
    }
    for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 16; ++k)
            for (int j = 0; j < 8; ++j) c[i][j] += a[i][k] * b[k][j];
    for (int l = 0; l < lanes; ++l)
        for (int k = 0; k < 4; ++k)
            w.set_lane(w.more(s, static_cast<std::size_t>(k)), l, c[l / 4 + 8 * (k / 2)][2 * (l % 4) + k % 2]);
    return Outcome::next;
}

/// A tile in shared memory as products of warp groups are told of it. Rows of 128 bytes, whose pieces of 16 are
/// exchanged by the row's number.
class GroupTile {
  public:
    /// reads: for this warp; else another one of the group, whose product it is too, has been seen to read it.
    GroupTile(Warp& w, unsigned by, std::uint64_t told, bool reads)
        : w_(w), by_(by), reads_(reads), begin_(static_cast<std::uint32_t>((told & 0x3fff) << 4)) {
        if (told >> 62 != 1) throw Fault("a tile of another kind than of rows of 128 swizzled bytes");
        if ((told >> 49 & 7) != 0) throw Fault("a tile that begins within a pattern");
        between_blocks_ = static_cast<std::uint32_t>((told >> 16 & 0x3fff) << 4);
        between_eights_ = static_cast<std::uint32_t>((told >> 32 & 0x3fff) << 4);
    }
    /// Sixteen bytes, `at` of them on in row r.
    void rows(std::uint16_t (&to)[8], std::uint32_t r, std::uint32_t at) const {
        piece(to, r / 8 * between_eights_ + r % 8 * 128 + at);
    }
    /// The same where the inner dimension goes down: row r of a block of 64 columns.
    void columns(std::uint16_t (&to)[8], std::uint32_t block, std::uint32_t r, std::uint32_t at) const {
        piece(to, block * between_blocks_ + r / 8 * between_eights_ + r % 8 * 128 + at);
    }

  private:
    void piece(std::uint16_t (&to)[8], std::uint32_t offset) const {
        std::uint32_t place = begin_ + offset;
        place ^= (place >> 7 & 7) << 4;
        const std::byte* from = w_.block.shared.data() + place;
        if (reads_ || place + 16 > w_.block.shared.size())
            from = w_.shared_for(place | w_.block.rank << block_shift, 16, Access::read, Toucher::nobody, by_);
        std::memcpy(to, from, 16);
    }
    Warp& w_;
    unsigned by_;
    bool reads_;
    std::uint32_t begin_, between_blocks_ = 0, between_eights_ = 0;
};

constexpr std::uint32_t inner = 16;

/// The sums of the registers that this step names: those that are under way; else new ones, with what the registers
/// hold, and then nothing in these until it was waited for.
Sums& sums_of(Warp& w, const Step& s) {
    const std::size_t count = static_cast<std::size_t>(s.number) / 2;
    const Value* const registers = &w.f.values[s.more];
    for (const auto& sums : w.sums)
        if (sums->registers[0].at == registers[0].at && sums->count == count) return *sums;
    w.sums.push_back(std::make_unique<Sums>());
    Sums& fresh = *w.sums.back();
    fresh.registers = registers;
    fresh.count = count;
    fresh.each(w, [](std::uint32_t& of_lane, float& sum) {
        sum = from_cell<float>(of_lane);
        of_lane = to_cell(std::numeric_limits<float>::quiet_NaN());
    });
    return fresh;
}

/// A warp's sixteen rows of d [64, N] = or += a [64, 16] b [16, N]; a factor in shared memory is read now, and may be
/// written to again only when it was waited for. Values: d N / 2, and the registers that have a where no tile does.
enum class Left { rows, turned, registers };
template <class T, bool columns_are_neighbours, Left left_is>
Outcome multiply_group(Warp& w, const Step& s, Mask mask) {
    if (!here(w)) return Outcome::waits;
    if (mask != all_lanes) throw Fault("a product of a part of a warp");
    const auto columns = static_cast<std::uint32_t>(s.number);
    const unsigned by = w.begin(Engine::products);
    const std::uint32_t of_group = w.index % 4;
    const GroupTile right(w, by, w.lane<std::uint64_t>(s.b, 0), of_group == 0);
    const bool adds = w.lane<std::uint8_t>(s.c, 0) & 1;
    float a[16][inner], b[inner][Sums::most_columns];
    std::uint16_t eight[8];
    if constexpr (left_is == Left::registers) {
        for (std::size_t k = 0; k < 4; ++k) {
            const std::uint32_t* two = w.read<std::uint32_t>(w.more(s, columns / 2 + k));
            for (std::size_t l = 0; l < lanes; ++l) {
                float* const at = &a[l / 4 + 8 * (k % 2)][2 * (l % 4) + 8 * (k / 2)];
                at[0] = T::value(static_cast<std::uint16_t>(two[l]));
                at[1] = T::value(static_cast<std::uint16_t>(two[l] >> 16));
            }
        }
    } else if constexpr (left_is == Left::turned) {
        const GroupTile left(w, by, w.lane<std::uint64_t>(s.a, 0), true);
        for (std::uint32_t k = 0; k < inner; ++k)
            for (std::uint32_t half = 0; half < 2; ++half) {
                left.columns(eight, 0, k, 32 * of_group + 16 * half);
                for (std::uint32_t r = 0; r < 8; ++r) a[8 * half + r][k] = T::value(eight[r]);
            }
    } else {
        const GroupTile left(w, by, w.lane<std::uint64_t>(s.a, 0), true);
        for (std::uint32_t r = 0; r < 16; ++r)
            for (std::uint32_t half = 0; half < 2; ++half) {
                left.rows(eight, 16 * of_group + r, 16 * half);
                for (std::uint32_t k = 0; k < 8; ++k) a[r][8 * half + k] = T::value(eight[k]);
            }
    }
    if constexpr (columns_are_neighbours) {
        for (std::uint32_t k = 0; k < inner; ++k)
            for (std::uint32_t n = 0; n < columns; n += 8) {
                right.columns(eight, n / 64, k, n % 64 * 2);
                for (std::uint32_t i = 0; i < 8; ++i) b[k][n + i] = T::value(eight[i]);
            }
    } else {
        for (std::uint32_t n = 0; n < columns; ++n)
            for (std::uint32_t half = 0; half < 2; ++half) {
                right.rows(eight, n, 16 * half);
                for (std::uint32_t k = 0; k < 8; ++k) b[8 * half + k][n] = T::value(eight[k]);
            }
    }
    Sums& sums = sums_of(w, s);
    sums.group = w.products.closed.size();
    for (std::uint32_t i = 0; i < Sums::rows; ++i) {
        float* const d = sums.of[i];
        if (!adds) std::fill_n(d, columns, 0.0f);
        for (std::uint32_t k = 0; k < inner; ++k)
            for (std::uint32_t n = 0; n < columns; ++n) d[n] += a[i][k] * b[k][n];
    }
    return Outcome::next;
}

Outcome close_products(Warp& w, const Step&, Mask) {
    w.close(w.products);
    return Outcome::next;
}
Outcome wait_for_products(Warp& w, const Step& s, Mask) {
    return w.wait_for_products(static_cast<std::size_t>(s.number)) ? Outcome::next : Outcome::waits;
}
Outcome nothing(Warp&, const Step&, Mask) { return Outcome::next; }

std::vector<Value> four(Translator& t, const Operand& list, bool written) {
    if (list.members.size() != 4) throw Fault("four registers are wanted");
    std::vector<Value> out;
    for (const Operand& m : list.members) out.push_back(written ? t.destination(m) : t.value(m, 4));
    return out;
}

bool translate_group_product(Translator& t, const Instruction& i, Step& s) {
    if (i.text() == "wgmma.fence.sync.aligned") return s.run = nothing, true;
    if (i.text() == "wgmma.commit_group.sync.aligned") return s.run = close_products, true;
    if (i.text() == "wgmma.wait_group.sync.aligned") {
        s.run = wait_for_products;
        t.waits_for_sums();
        s.number = static_cast<std::int64_t>(i.operands.at(0).bits);
        return true;
    }
    unsigned columns = 0;
    const bool bf16 = i.text().ends_with(".f32.bf16.bf16");
    if (i.parts.size() != 8 || i.parts[1] != "mma_async" || (!bf16 && !i.text().ends_with(".f32.f16.f16")) ||
        std::sscanf(i.parts[4].c_str(), "m64n%uk16", &columns) != 1 || columns > Sums::most_columns)
        return false;
    const auto number = [&](std::size_t k) {
        if (i.operands.at(k).kind != Operand::Kind::number) throw Fault("a number is wanted");
        return i.operands[k].bits;
    };
    const bool in_registers = !i.operands.at(1).members.empty();
    const std::size_t last = in_registers ? 6 : 7;  // number 6 says of a tile on the left whether it is turned
    if (i.operands.size() != last + 1 || number(4) != 1 || number(5) != 1) return false;
    std::vector<Value> all;
    for (const Operand& m : i.operands.at(0).members) all.push_back(t.changed(m));
    if (all.size() != columns / 2) throw Fault("another number of sums is wanted");
    t.gives_later(all);
    if (in_registers)
        for (const Value v : four(t, i.operands[1], false)) all.push_back(v);
    else
        s.a = t.value(i.operands[1], 8);
    s.more = t.keep(all);
    s.number = columns;
    s.b = t.value(i.operands.at(2), 8);
    s.c = t.value(i.operands.at(3), 1);
    const auto choose = [&]<class T>(T) {
        const auto right = [&]<Left left>() {
            return number(last) ? multiply_group<T, true, left> : multiply_group<T, false, left>;
        };
        if (in_registers) return right.template operator()<Left::registers>();
        return number(6) ? right.template operator()<Left::turned>() : right.template operator()<Left::rows>();
    };
    s.run = bf16 ? choose(Bf16{}) : choose(F16{});
    return true;
}

}  // namespace

bool translate_matrix(Translator& t, const Instruction& i, Step& s) {
    const std::string text = i.text();
    if (i.parts[0] == "wgmma") return translate_group_product(t, i, s);
    if (text == "ldmatrix.sync.aligned.m8n8.x4.shared.b16" ||
        text == "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16") {
        s.run = i.has("trans") ? load_fragments<true> : load_fragments<false>;
        t.address(s, i.operands.at(1));
        s.more = t.keep(four(t, i.operands.at(0), true));
        return true;
    }
    if (text == "stmatrix.sync.aligned.m8n8.x4.shared.b16") {
        s.run = store_fragments;
        t.address(s, i.operands.at(0));
        s.more = t.keep(four(t, i.operands.at(1), false));
        return true;
    }
    const bool bf16 = text == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
    if (!bf16 && text != "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") return false;
    std::vector<Value> all = four(t, i.operands.at(0), true);
    for (const std::size_t k : {1u, 2u, 3u})
        for (const Operand& m : i.operands.at(k).members) all.push_back(t.value(m, 4));
    if (all.size() != 14) throw Fault("another number of registers is wanted");
    s.more = t.keep(all);
    s.run = bf16 ? multiply_warp<Bf16> : multiply_warp<F16>;
    return true;
}

}  // namespace soft_gpu
