// Copies that go on by themselves, and the barriers in shared memory that tell of their end. A copy is made at once;
// that it is waited for is seen by the clocks it carries.
#include "soft_gpu/elementwise.h"
#include "soft_gpu/tensor_map.h"
#include "soft_gpu/translate.h"

namespace soft_gpu {
namespace {

constexpr std::uint32_t offset_bits = (1u << block_shift) - 1;

std::uint32_t address_at(const Warp& w, const Step& s, int l) {
    return w.lane<std::uint32_t>(s.a, l) + static_cast<std::uint32_t>(s.number);
}

Outcome barrier_init(Warp& w, const Step& s, Mask mask) {
    for_lanes(mask, [&](int l) {
        const std::uint32_t address = address_at(w, s, l);
        if (address % 8 != 0) throw Fault("a barrier at an address that is no multiple of 8");
        w.shared_for(address, barrier_bytes, Access::write, l);
        MemoryBarrier b;
        b.expected = b.pending = w.lane<std::int32_t>(s.b, l);
        if (b.expected <= 0) throw Fault("a barrier in shared memory for nobody");
        b.gathering = b.released = Clock(w.block.cluster.agents);
        w.block.cluster.block(address >> block_shift, "a barrier").memory_barriers[address & offset_bits] =
            std::move(b);
    });
    return Outcome::next;
}

Outcome barrier_arrive(Warp& w, const Step& s, Mask mask) {
    for_lanes(mask, [&](int l) {
        MemoryBarrier& b = w.barrier_at(address_at(w, s, l), l, w.agent());
        if (s.b) expect_bytes(b, w.lane<std::uint32_t>(s.b, l));
    });
    // All of them have told when the last of them is counted.
    for_lanes(mask, [&](int l) { w.tell(w.barrier_at(address_at(w, s, l), l, w.agent()).gathering, mask); });
    for_lanes(mask, [&](int l) { arrive(w.barrier_at(address_at(w, s, l), l, w.agent()), 1); });
    return Outcome::next;
}

/// Gives whether the phase is over; does not wait.
Outcome barrier_try_wait(Warp& w, const Step& s, Mask mask) {
    Mask over = 0;
    for_lanes(mask, [&](int l) {
        const MemoryBarrier& b = w.barrier_at(address_at(w, s, l), l, w.agent());
        if ((b.phase & 1) != (w.lane<std::uint32_t>(s.b, l) & 1)) over |= Mask{1} << l;
    });
    const std::uint32_t one = address_at(w, s, std::countr_zero(mask));
    bool same = true;
    for_lanes(mask, [&](int l) { same &= address_at(w, s, l) == one; });
    for_lanes(mask, [&](int l) {
        const Mask mine = Mask{1} << l;
        if (over & mine && !same) w.learn(w.barrier_at(address_at(w, s, l), l, w.agent()).released, mine);
        w.set_lane<std::uint8_t>(s.d, l, over >> l & 1);
    });
    if (same && over) w.learn(w.barrier_at(one, std::countr_zero(mask), w.agent()).released, over);
    return over == mask ? Outcome::next : Outcome::asks;
}

/// The same place in another block of the cluster.
Outcome map_address(Warp& w, const Step& s, Mask mask) {
    for_lanes(mask, [&](int l) {
        const std::uint32_t rank = w.lane<std::uint32_t>(s.b, l);
        w.block.cluster.block(rank, "an address");
        w.set_lane(s.d, l, (w.lane<std::uint32_t>(s.a, l) & offset_bits) | rank << block_shift);
    });
    return Outcome::next;
}

/// Of sixteen bytes so many are read, the others are zero.
Outcome copy_async(Warp& w, const Step& s, Mask mask) {
    const unsigned by = w.begin(Engine::copies);
    for_lanes(mask, [&](int l) {
        const auto from = w.lane<std::uint64_t>(s.b, l);
        const std::uint32_t bytes = w.lane<std::uint32_t>(s.c, l);
        if (bytes > 16 || (bytes > 0 && from % 16 != 0))
            throw Fault("a copy from an address that is no multiple of 16");
        std::byte* to = w.shared_for(address_at(w, s, l), 16, Access::write, l, by);
        std::fill_n(to, 16, std::byte{0});
        if (bytes == 0) return;
        Memory::get().read(reinterpret_cast<const void*>(from), bytes, "read");
        std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    });
    return Outcome::next;
}

/// From global to shared memory in one piece; a barrier counts the bytes.
Outcome copy_bulk(Warp& w, const Step& s, Mask mask) {
    for_lanes(mask, [&](int l) {
        const auto* from = reinterpret_cast<const std::byte*>(w.lane<std::uint64_t>(s.b, l));
        const std::uint32_t bytes = w.lane<std::uint32_t>(s.c, l), to = address_at(w, s, l);
        if (bytes % 16 != 0 || to % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
            throw Fault("a copy whose size or place is no multiple of 16");
        if (bytes == 0) return;
        const unsigned by = w.begin(Engine::loads);
        std::byte* there = w.shared_for(to, bytes, Access::write, l, by);
        Memory::get().read(from, bytes, "read");
        std::memcpy(there, from, bytes);
        bytes_came(w.barrier_at(w.lane<std::uint32_t>(w.more(s, 0), l), l, by), bytes, by, w.given[by - w.agent()]);
    });
    return Outcome::next;
}

/// A box of a matrix, row by row, sixteen bytes at a time; f gets the place in the matrix, null outside it, and the
/// offset in shared memory.
template <class F>
void for_box(const TensorMap& map, std::int32_t column, std::int32_t row, std::uint32_t shared, F f) {
    constexpr std::int64_t piece = 16;
    const std::int64_t row_bytes = std::int64_t{map.box[0]} * map.element_bytes;
    if (shared % (map.swizzle ? 1024 : 128) != 0 && !(map.swizzle && row_bytes < 128))
        throw Fault("a box at a place in shared memory that the copy engine does not take");
    for (std::int64_t r = 0; r < map.box[1]; ++r)
        for (std::int64_t at = 0; at < row_bytes; at += piece) {
            auto place = static_cast<std::uint32_t>(shared + r * row_bytes + at);
            if (map.swizzle) place ^= (place >> 7 & 7) << 4;
            const std::int64_t in_row = std::int64_t{column} * map.element_bytes + at;
            const auto width = static_cast<std::int64_t>(map.sizes[0]) * map.element_bytes;
            const bool inside = row + r >= 0 && row + r < static_cast<std::int64_t>(map.sizes[1]);
            std::byte* matrix = nullptr;
            std::size_t bytes = 0;
            if (inside && in_row >= 0 && in_row < width) {
                matrix = const_cast<std::byte*>(static_cast<const std::byte*>(map.address)) +
                         (row + r) * static_cast<std::int64_t>(map.stride_bytes) + in_row;
                bytes = static_cast<std::size_t>(std::min(piece, width - in_row));
            }
            f(matrix, bytes, place);
        }
}

struct Box {
    const TensorMap& map;
    std::int32_t column, row;
};
Box box_of(const Warp& w, const Step& s, int l) {
    return {tensor_map_at(reinterpret_cast<const void*>(w.lane<std::uint64_t>(s.b, l))),
            w.lane<std::int32_t>(w.more(s, 0), l), w.lane<std::int32_t>(w.more(s, 1), l)};
}

/// To the same place of each block in the mask, if there is one; each block's barrier counts its own bytes.
Outcome load_box(Warp& w, const Step& s, Mask mask) {
    for_lanes(mask, [&](int l) {
        const Box box = box_of(w, s, l);
        const std::uint32_t to = address_at(w, s, l), barrier = w.lane<std::uint32_t>(s.c, l);
        std::uint32_t blocks = 1u << w.block.rank;
        if (const Value many = w.more(s, 2)) blocks = w.lane<std::uint16_t>(many, l);
        for (; blocks != 0; blocks &= blocks - 1) {
            const unsigned by = w.begin(Engine::loads);
            const auto rank = static_cast<std::uint32_t>(std::countr_zero(blocks)) << block_shift;
            for_box(box.map, box.column, box.row, (to & offset_bits) | rank,
                    [&](const std::byte* from, std::size_t bytes, std::uint32_t place) {
                        std::byte* there = w.shared_for(place, 16, Access::write, l, by);
                        std::fill_n(there, 16, std::byte{0});
                        if (from == nullptr) return;
                        Memory::get().read(from, bytes, "read");
                        std::memcpy(there, from, bytes);
                    });
            const std::int64_t bytes = std::int64_t{box.map.box[0]} * box.map.box[1] * box.map.element_bytes;
            bytes_came(w.barrier_at((barrier & offset_bits) | rank, l, by), bytes, by, w.given[by - w.agent()]);
        }
    });
    return Outcome::next;
}

Outcome store_box(Warp& w, const Step& s, Mask mask) {
    const unsigned by = w.begin(Engine::stores);
    for_lanes(mask, [&](int l) {
        const Box box = box_of(w, s, l);
        for_box(box.map, box.column, box.row, address_at(w, s, l),
                [&](std::byte* to, std::size_t bytes, std::uint32_t place) {
                    if (to == nullptr) return;
                    const std::byte* from = w.shared_for(place, bytes, Access::read, l, by);
                    Memory::get().wrote(to, bytes, "write");
                    std::memcpy(to, from, bytes);
                });
    });
    return Outcome::next;
}

template <Groups Warp::*which>
Outcome close_group(Warp& w, const Step&, Mask) {
    w.close(w.*which);
    return Outcome::next;
}
template <Groups Warp::*which>
Outcome wait_for_groups(Warp& w, const Step& s, Mask) {
    w.wait_for(w.*which, static_cast<std::size_t>(s.number));
    return Outcome::next;
}

/// What was written before is there for the copy engine, wherever this is known.
Outcome fence_for_engine(Warp& w, const Step&, Mask mask) {
    w.fence(mask);
    return Outcome::next;
}
Outcome nothing(Warp&, const Step&, Mask) { return Outcome::next; }

bool translate_memory_barrier(Translator& t, const Instruction& i, Step& s) {
    const std::string text = i.text();
    if (text == "mbarrier.init.shared::cta.b64") {
        t.address(s, i.operands.at(0));
        s.b = t.value(i.operands.at(1), 4);
        s.run = barrier_init;
    } else if (text == "mbarrier.arrive.shared::cta.b64" || text == "mbarrier.arrive.shared::cluster.b64") {
        t.address(s, i.operands.at(1));
        s.run = barrier_arrive;
        return i.operands.size() == 2 && i.operands[0].kind == Operand::Kind::sink;
    } else if (text == "mbarrier.arrive.expect_tx.shared::cta.b64") {
        t.address(s, i.operands.at(1));
        s.b = t.value(i.operands.at(2), 4);
        s.run = barrier_arrive;
        return i.operands[0].kind == Operand::Kind::sink;
    } else if (text == "mbarrier.try_wait.parity.shared::cta.b64") {
        s.d = t.destination(i.operands.at(0));
        t.address(s, i.operands.at(1));
        s.b = t.value(i.operands.at(2), 4);
        s.run = barrier_try_wait;
    } else {
        return false;
    }
    return true;
}

/// The base register of an address that has nothing added to it.
Value base_of(Translator& t, const Operand& o, std::size_t bytes) {
    if (o.kind != Operand::Kind::address || o.bits != 0) throw Fault("a plain address is wanted");
    return t.value({Operand::Kind::name, o.name, {}, 0, 0, {}}, bytes);
}

bool translate_copy(Translator& t, const Instruction& i, Step& s) {
    const std::string text = i.text();
    const auto coordinates = [&](const Operand& matrix, Value blocks) {
        if (matrix.members.size() != 2) throw Fault("two coordinates are wanted");
        s.b = base_of(t, matrix, 8);
        s.more = t.keep({t.value(matrix.members[0], 4), t.value(matrix.members[1], 4), blocks});
    };
    const std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
    if (text == load || text == load + ".multicast::cluster") {
        t.address(s, i.operands.at(0));
        coordinates(i.operands.at(1), i.operands.size() > 3 ? t.value(i.operands[3], 2) : Value{});
        s.c = base_of(t, i.operands.at(2), 4);
        s.run = load_box;
    } else if (text == "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group") {
        coordinates(i.operands.at(0), Value{});
        t.address(s, i.operands.at(1));
        s.run = store_box;
    } else if (text == "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes") {
        t.address(s, i.operands.at(0));
        s.b = base_of(t, i.operands.at(1), 8);
        s.c = t.value(i.operands.at(2), 4);
        s.more = t.keep({base_of(t, i.operands.at(3), 4)});
        s.run = copy_bulk;
    } else if (text == "cp.async.cg.shared.global") {
        t.address(s, i.operands.at(0));
        s.b = base_of(t, i.operands.at(1), 8);
        if (i.operands.at(2).bits != 16) return false;
        s.c = t.value(i.operands.back(), 4);
        s.run = copy_async;
    } else {
        return false;
    }
    return true;
}

}  // namespace

bool translate_asynchronous(Translator& t, const Instruction& i, Step& s) {
    const std::string text = i.text();
    if (text.starts_with("mbarrier.")) return translate_memory_barrier(t, i, s);
    if (text == "mapa.shared::cluster.u32") {
        s.d = t.destination(i.operands.at(0));
        s.a = t.value(i.operands.at(1), 4);
        s.b = t.value(i.operands.at(2), 4);
        s.run = map_address;
        return true;
    }
    if (text == "fence.proxy.async.shared::cta") return s.run = fence_for_engine, true;
    if (text == "fence.mbarrier_init.release.cluster") return s.run = nothing, true;
    static const std::map<std::string, Handler> groups = {
        {"cp.async.commit_group", close_group<&Warp::copies>},
        {"cp.async.wait_group", wait_for_groups<&Warp::copies>},
        {"cp.async.bulk.commit_group", close_group<&Warp::stores>},
        {"cp.async.bulk.wait_group.read", wait_for_groups<&Warp::stores>}};
    if (const auto at = groups.find(text); at != groups.end()) {
        s.run = at->second;
        if (!i.operands.empty()) s.number = static_cast<std::int64_t>(i.operands[0].bits);
        return true;
    }
    return translate_copy(t, i, s);
}

}  // namespace soft_gpu
