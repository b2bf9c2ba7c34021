// Loads, stores, atomic operations.
#include "soft_gpu/elementwise.h"
#include "soft_gpu/translate.h"

namespace soft_gpu {
namespace {

using Space = Warp::Space;

std::uint64_t address_of(const Warp& w, const Step& s, int l) {
    const std::uint64_t base = s.wide_address ? w.lane<std::uint64_t>(s.a, l) : w.lane<std::uint32_t>(s.a, l);
    return base + static_cast<std::uint64_t>(s.number);
}

/// Where all lanes' elements lie, checked. Mostly they are in one allocation, which is then looked for once.
struct Places {
    std::byte* of[lanes];

    Places(Warp& w, const Step& s, Mask mask, Access access) {
        const std::size_t bytes = std::size_t{s.bytes} * s.count;
        const auto space = static_cast<Space>(s.space);
        std::uint64_t at[lanes], least = UINT64_MAX, most = 0, any = 0;
        const auto added = static_cast<std::uint64_t>(s.number);
        if (s.wide_address) {
            const std::uint64_t* base = w.read<std::uint64_t>(s.a);
            for (int l = 0; l < lanes; ++l) at[l] = base[l] + added;
        } else {
            const std::uint32_t* base = w.read<std::uint32_t>(s.a);
            for (int l = 0; l < lanes; ++l) at[l] = base[l] + added;
        }
        for_lanes(mask, [&](int l) { least = std::min(least, at[l]), most = std::max(most, at[l]), any |= at[l]; });
        bool plain = any % bytes == 0;
        if (space == Space::param) {
            const auto first = reinterpret_cast<std::uintptr_t>(w.block.cluster.parameters);
            plain &= least >= first && most + bytes <= first + w.f.parameter_bytes;
        } else {
            plain &= (space == Space::global || space == Space::generic) && most < shared_window &&
                     in_one(least, most + bytes - least, access, mask, at, bytes);
        }
        if (plain) {
            std::memcpy(of, at, sizeof of);
            return;
        }
        for_lanes(mask, [&](int l) { of[l] = w.memory_for(space, at[l], bytes, access, l); });
    }

  private:
    /// False if it must be looked at lane by lane: also to say what is wrong.
    static bool in_one(std::uint64_t least, std::uint64_t all, Access access, Mask mask, const std::uint64_t* at,
                       std::size_t bytes) {
        Memory::Block* block = Memory::get().find(reinterpret_cast<const void*>(least), all);
        if (block == nullptr) return false;
        const bool dense = all == bytes * static_cast<std::size_t>(std::popcount(mask));
        touch(*block, least, all, access, mask, at, bytes, dense);
        if (block->written.empty()) return true;
        const auto flags_at = [&](std::uint64_t address) {
            return block->written.data() + (address - reinterpret_cast<std::uintptr_t>(block->data));
        };
        // Together they are often all of what lies between the first and the last.
        constexpr std::uint64_t look_at_all = 1024;
        if (access == Access::write && dense) return std::memset(flags_at(least), 1, all), true;
        if (access == Access::read && all <= look_at_all && std::memchr(flags_at(least), 0, all) == nullptr)
            return true;
        bool right = true;
        for (Mask left = mask; left != 0; left &= left - 1) {
            std::uint8_t* const mine = flags_at(at[std::countr_zero(left)]);
            if (access == Access::write)
                std::memset(mine, 1, bytes);
            else
                right &= std::memchr(mine, 0, bytes) == nullptr;
        }
        return right;
    }

    static void touch(Memory::Block& block, std::uint64_t least, std::uint64_t all, Access access, Mask mask,
                      const std::uint64_t* at, std::size_t bytes, bool dense) {
        const bool write = access == Access::write;
        if (dense) return block.touch(reinterpret_cast<const void*>(least), all, write);
        std::uint64_t last = 0;  // neighbours are often in the same piece
        for (Mask left = mask; left != 0; left &= left - 1) {
            const std::uint64_t mine = at[std::countr_zero(left)];
            if (mine / StreamOrder::piece == last / StreamOrder::piece) continue;
            block.touch(reinterpret_cast<const void*>(mine), bytes, write);
            last = mine;
        }
    }
};

template <class T>
std::uint64_t element(const std::byte* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
}

/// T: as the element is in memory; its sign goes with it.
template <class T>
Outcome load(Warp& w, const Step& s, Mask mask) {
    const Places places(w, s, mask, Access::read);
    for (std::size_t k = 0; k < s.count; ++k) {
        const Value to = w.more(s, k);
        if (!to) continue;
        if (s.wide) {
            std::uint64_t* d = w.write<std::uint64_t>(to);
            for_lanes(mask, [&](int l) { d[l] = element<T>(places.of[l] + k * sizeof(T)); });
        } else {
            std::uint32_t* d = w.write<std::uint32_t>(to);
            for_lanes(mask,
                      [&](int l) { d[l] = static_cast<std::uint32_t>(element<T>(places.of[l] + k * sizeof(T))); });
        }
    }
    return Outcome::next;
}

template <class T>
Outcome store(Warp& w, const Step& s, Mask mask) {
    const Places places(w, s, mask, Access::write);
    for (std::size_t k = 0; k < s.count; ++k)
        for_lanes(mask, [&](int l) {
            const T x = s.wide ? static_cast<T>(w.lane<std::uint64_t>(w.more(s, k), l))
                               : static_cast<T>(w.lane<std::uint32_t>(w.more(s, k), l));
            std::memcpy(places.of[l] + k * sizeof(T), &x, sizeof x);
        });
    return Outcome::next;
}

Handler load_of(std::size_t bytes, bool is_signed) {
    switch (bytes) {
        case 1:
            return is_signed ? load<std::int8_t> : load<std::uint8_t>;
        case 2:
            return is_signed ? load<std::int16_t> : load<std::uint16_t>;
        case 4:
            return is_signed ? load<std::int32_t> : load<std::uint32_t>;
        default:
            return load<std::uint64_t>;
    }
}
Handler store_of(std::size_t bytes) {
    switch (bytes) {
        case 1:
            return store<std::uint8_t>;
        case 2:
            return store<std::uint16_t>;
        case 4:
            return store<std::uint32_t>;
        default:
            return store<std::uint64_t>;
    }
}

template <class T, bool larger>
Outcome extreme(Warp& w, const Step& s, Mask mask) {
    for (Mask left = mask; left != 0; left &= left - 1) {
        const int l = std::countr_zero(left);
        std::byte* p = w.memory_for(static_cast<Space>(s.space), address_of(w, s, l), sizeof(T), Access::atomic, l);
        T before;
        std::memcpy(&before, p, sizeof before);
        const T mine = w.lane<T>(s.b, l), after = larger ? std::max(before, mine) : std::min(before, mine);
        std::memcpy(p, &after, sizeof after);
        if (s.d) w.set_lane(s.d, l, before);
    }
    return Outcome::next;
}

/// Adds all of a lane's numbers to as many in memory, one lane after another.
Outcome add(Warp& w, const Step& s, Mask mask) {
    const std::size_t bytes = s.count * sizeof(float);
    for_lanes(mask, [&](int l) {
        std::byte* const p = w.memory_for(static_cast<Space>(s.space), address_of(w, s, l), bytes, Access::atomic, l);
        for (std::size_t k = 0; k < s.count; ++k) {
            float x;
            std::memcpy(&x, p + k * sizeof x, sizeof x);
            x += w.lane<float>(w.more(s, k), l);
            std::memcpy(p + k * sizeof x, &x, sizeof x);
        }
    });
    return Outcome::next;
}

Space space_of(const Instruction& i) {
    if (i.has("global")) return Space::global;
    if (i.has("shared") || i.has("shared::cta")) return Space::shared;
    if (i.has("local")) return Space::local;
    return i.has("param") ? Space::param : Space::generic;
}

}  // namespace

bool translate_memory(Translator& t, const Instruction& i, Step& s) {
    const std::string &name = i.parts[0], &type = i.parts.back();
    if (name != "ld" && name != "st" && name != "atom" && name != "red") return false;
    for (std::size_t k = 1; k + 1 < i.parts.size(); ++k) {
        static const std::map<std::string, bool> known = {
            {"global", true}, {"shared", true}, {"local", true}, {"param", true}, {"nc", true}, {"volatile", true},
            {"v2", true},     {"v4", true},     {"min", true},   {"max", true},   {"add", true}};
        if (!known.contains(i.parts[k])) return false;
    }
    s.space = static_cast<std::uint8_t>(space_of(i));
    s.bytes = static_cast<std::uint8_t>(bytes_of_type(type));
    if (name == "atom") {
        if (type != "s32" || !(i.has("min") || i.has("max"))) return false;
        s.d = t.destination(i.operands.at(0));
        t.address(s, i.operands.at(1));
        s.b = t.value(i.operands.at(2), 4);
        s.run = i.has("max") ? extreme<std::int32_t, true> : extreme<std::int32_t, false>;
        return true;
    }
    const bool adds = name == "red";
    if (i.has("add") != adds || (adds && (type != "f32" || !i.has("global")))) return false;
    const bool loads = name == "ld";
    const Operand &data = i.operands.at(loads ? 0 : 1), &place = i.operands.at(loads ? 1 : 0);
    t.address(s, place);
    std::vector<Value> values;
    const std::vector<Operand> alone = {data};
    const std::vector<Operand>& members = data.kind == Operand::Kind::list ? data.members : alone;
    const bool number = members[0].kind == Operand::Kind::number;
    s.wide = number ? s.bytes == 8 : t.is_wide(members[0]);
    for (const Operand& m : members) values.push_back(loads ? t.destination(m) : t.value(m, s.wide ? 8 : 4));
    s.count = static_cast<std::uint8_t>(members.size());
    s.more = t.keep(values);
    s.run = adds ? add : loads ? load_of(s.bytes, type[0] == 's') : store_of(s.bytes);
    return true;
}

}  // namespace soft_gpu
