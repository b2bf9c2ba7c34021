// What operations share in which queries meet tiles of keys and values.
#pragma once

#include "ops/attention_sm90.cuh"

namespace tera::ops::cuda::sm90 {

/// f(head of the keys, meeting) for each tile of KEYS keys that own queries see.
template <int GROUPS, int KEYS, class F>
__device__ inline void walk_keys(const Sizes& n, const Item& item, const F& f) {
    Span spans[GROUPS];
    int end = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        const int q0 = item.first + g * group_rows;
        spans[g] = Span(n, item.b, q0, q0 + group_rows);
        end = max(end, spans[g].last_end);
    }
    const int head = item.head / (n.H / n.G);
    for (int k0 = spans[0].first_begin / KEYS * KEYS; k0 < end; k0 += KEYS) {
        Meeting meeting{k0, 0};
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) meeting.add(g, spans[g].meets(k0, k0 + KEYS), spans[g].all_see(k0, k0 + KEYS));
        if (meeting.concerns_any()) f(head, meeting);
    }
}

/// Tiles that come without numbers.
struct NoNumbers {
    template <class Op>
    __device__ void store(const Memory<Op>&, int) const {}
};

/// Args: k and v as the copy engine takes them, sizes n.
template <int GROUPS, class Tile>
struct KeysMet {
    using Met = Tile;
    static constexpr int keys = Met::rows;
    static constexpr unsigned met_bytes = 2 * Met::bytes, number_bytes = 0, exchange_bytes = 0;

    template <class Args, class F>
    __device__ static void walk(const Args& args, const Item& item, const F& f) {
        walk_keys<GROUPS, keys>(args.n, item, f);
    }
    template <class Args>
    __device__ static NoNumbers numbers(const Args&, const Item&, int, int) {
        return {};
    }
    template <class Args>
    __device__ static void load_met(const Args& args, const Item& item, int head, int first, unsigned at,
                                    unsigned full) {
        Met{at}.load(args.k.map, full, args.k.column(args.n, item.b, head), first);
        Met{at + Met::bytes}.load(args.v.map, full, args.v.column(args.n, item.b, head), first);
    }
};

}  // namespace tera::ops::cuda::sm90
