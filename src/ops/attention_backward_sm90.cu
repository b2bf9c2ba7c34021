// Gradients of attention on Hopper's warp groups. Those of the queries and those of keys and values have a kernel each,
// which both make the probabilities again: more products than one kernel for all, but nothing is added across blocks.
#include "ops/attention_mma.h"
#include "ops/attention_sm90.cuh"
#include "ops/attention_sm90.h"

namespace tera::ops::cuda {
namespace sm90 {
namespace {

/// Queries meet keys and values.
template <class Element, int D, bool drops>
struct QueryGradient {
    using T = Element;
    using Own = HeadTile<D, 2 * group_rows>;
    using Met = HeadTile<D, D <= 64 ? 128 : 64>;
    static constexpr int own_rows = Own::rows, groups = 2, slots = D <= 64 ? 2 : 1, stages = D <= 64 ? 3 : 4;
    static constexpr unsigned own_bytes = 2 * Own::bytes, met_bytes = 2 * Met::bytes, number_bytes = 0;
    static constexpr int keys = Met::rows;

    struct Args {
        HeadMap q, k, v, d_o;
        Problem p;
        Items items;
        Rows<T> dq;
        const float *delta, *lse;
    };

    __device__ static void load_own(const Args& args, const Item& item, unsigned at, unsigned full) {
        Own{at}.load(args.q.map, full, args.q.column(args.p.n, item.b, item.head), item.first);
        Own{at + Own::bytes}.load(args.d_o.map, full, args.d_o.column(args.p.n, item.b, item.head), item.first);
    }
    template <class F>
    __device__ static void walk(const Args& args, const Item& item, const F& f) {
        walk_keys<groups, keys>(args.p.n, item, f);
    }
    __device__ static NoNumbers numbers(const Args&, const Item&, int, int) { return {}; }
    __device__ static void load_met(const Args& args, const Item& item, int head, int first, unsigned at,
                                    unsigned full) {
        Met{at}.load(args.k.map, full, args.k.column(args.p.n, item.b, head), first);
        Met{at + Met::bytes}.load(args.v.map, full, args.v.column(args.p.n, item.b, head), first);
    }

    struct State {
        float dq[D / 2] = {}, shift[2], mean[2];
        Sight sights[2];
        Draws<true> draws;
        std::uint64_t first_call;
        int head, row;

        __device__ State(const Args& args, const Item& item, const Member& me)
            : draws(args.p, item.b), head(item.head), row(item.first + me.group * group_rows + me.row) {
            const Heads& n = args.p.n;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const std::int64_t at = (item.b * n.H + head) * n.Sq + row + 8 * r;
                const bool there = row + 8 * r < n.Sq;
                const float lse = there ? args.lse[at] : 0;
                shift[r] = lse == -INFINITY ? 0 : lse * log2_of_e;  // then all scores are hidden
                mean[r] = there ? args.delta[at] : 0;
                sights[r] = sight(n, item.b, row + 8 * r);
            }
            first_call = drops ? n.dropout.first_call(head, row) : 0;
        }

        __device__ void meet(const Args& args, const Member& me, const Memory<QueryGradient>& memory, int slot,
                             int stage, const Meeting& meeting) {
            const Own q{memory.own_at(slot)}, d_o{memory.own_at(slot) + Own::bytes};
            const Met k{memory.met_at(stage)}, v{memory.met_at(stage) + Met::bytes};
            float s[keys / 2], dp[keys / 2];
            hold(s), hold(dp);
            products_begin();
            multiply_transposed<T>(s, q, me.group * group_rows, k);
            products_given();
            multiply_transposed<T>(dp, d_o, me.group * group_rows, v);
            products_given();
            products_wait<1>();
            hold(s);
            if (!meeting.is_whole_for(me.group)) hide(s, sights, meeting.first);
            const float unit = args.p.scale * log2_of_e;
#pragma unroll
            for (int i = 0; i < keys / 2; ++i) s[i] = probability(s[i], unit, shift[i % 4 / 2]);
            products_wait<0>();
            hold(dp);
            if constexpr (drops)
                drop(reinterpret_cast<float(&)[keys / 8][4]>(dp), draws, first_call, head, row, meeting.first);
#pragma unroll
            for (int i = 0; i < keys / 2; ++i) s[i] *= fmaf(dp[i], args.p.factor, -mean[i % 4 / 2]);
            unsigned ds[keys / 16][4];
            to_words<T>(ds, s);
            hold(dq), hold(ds);
            products_begin();
            multiply_words<T>(dq, ds, k);
            products_given();
            products_wait<0>();
            hold(dq), hold(ds);
        }

        __device__ void finish(const Args& args, const Item& item, const Member&) {
            const Heads& n = args.p.n;
            store_rows<D>(args.dq, n, item.b, head, row, n.Sq, dq, args.p.scale, args.p.scale);
        }
    };
};

/// Keys and values meet queries and the gradients of what these got.
template <class Element, int D, bool drops>
struct KeyGradient {
    using T = Element;
    using Own = HeadTile<D, 2 * group_rows>;
    using Met = HeadTile<D, 64>;
    static constexpr int own_rows = Own::rows, groups = 2, slots = D <= 64 ? 2 : 1, stages = 4 - (D > 64);
    static constexpr int queries = Met::rows;
    /// What queries have beside their rows.
    struct OfQueries {
        float shift[queries], mean[queries];
        int first[queries];
        std::uint64_t first_call[queries / 2];  ///< of each pair
    };
    static constexpr unsigned own_bytes = 2 * Own::bytes, met_bytes = 2 * Met::bytes, number_bytes = sizeof(OfQueries);

    struct Args {
        HeadMap q, k, v, d_o;
        Problem p;
        Items items;
        Rows<T> dk, dv;
        const float *delta, *lse;
    };

    __device__ static void load_own(const Args& args, const Item& item, unsigned at, unsigned full) {
        Own{at}.load(args.k.map, full, args.k.column(args.p.n, item.b, item.head), item.first);
        Own{at + Own::bytes}.load(args.v.map, full, args.v.column(args.p.n, item.b, item.head), item.first);
    }
    template <class F>
    __device__ static void walk(const Args& args, const Item& item, const F& f) {
        const Heads& n = args.p.n;
        const int per_group = static_cast<int>(n.H / n.G), end = min(item.first + own_rows, static_cast<int>(n.Sk));
        const int before = n.causal ? item.first - static_cast<int>(n.Sk - n.Sq) : 0;  // queries that see none of these
        for (int h = 0; h < per_group; ++h)
            for (int q0 = max(before, 0) / queries * queries; q0 < n.Sq; q0 += queries) {
                const Span span(n, item.b, q0, q0 + queries);
                if (span.first_begin >= end) break;  // nor does a later one
                Meeting meeting{q0, 0};
#pragma unroll
                for (int g = 0; g < groups; ++g) {
                    const int key = item.first + g * group_rows;
                    meeting.add(g, key < end && span.meets(key, key + group_rows), span.all_see(key, key + group_rows));
                }
                if (meeting.flags) f(item.head * per_group + h, meeting);
            }
    }
    struct Numbers {
        float shift[2], mean[2];
        int first[2];
        std::uint64_t first_call;
        __device__ void store(const Memory<KeyGradient>& memory, int stage) const {
            auto& to = memory.template numbers_at<OfQueries>(stage);
            const int lane = static_cast<int>(threadIdx.x);
#pragma unroll
            for (int i = 0; i < 2; ++i)
                to.shift[lane + 32 * i] = shift[i], to.mean[lane + 32 * i] = mean[i],
                                     to.first[lane + 32 * i] = first[i];
            to.first_call[lane] = first_call;
        }
    };
    __device__ static Numbers numbers(const Args& args, const Item& item, int head, int first) {
        const Heads& n = args.p.n;
        const int lane = static_cast<int>(threadIdx.x);
        Numbers out;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int q = first + lane + 32 * i;
            const std::int64_t at = (item.b * n.H + head) * n.Sq + q;
            const bool there = q < n.Sq;
            out.shift[i] = there ? args.lse[at] * log2_of_e : 0;
            out.mean[i] = there ? args.delta[at] : 0;
            out.first[i] = there ? static_cast<int>(n.first_key(item.b, q)) : INT32_MAX;
        }
        out.first_call = drops ? n.dropout.first_call(head, first + lane / 8 * 16 + lane % 8) : 0;
        return out;
    }
    __device__ static void load_met(const Args& args, const Item& item, int head, int first, unsigned at,
                                    unsigned full) {
        Met{at}.load(args.q.map, full, args.q.column(args.p.n, item.b, head), first);
        Met{at + Met::bytes}.load(args.d_o.map, full, args.d_o.column(args.p.n, item.b, head), first);
    }

    struct State {
        float dk[D / 2] = {}, dv[D / 2] = {};
        Draws<true> draws;
        int row;

        __device__ State(const Args& args, const Item& item, const Member& me)
            : draws(args.p, item.b), row(item.first + me.group * group_rows + me.row) {}

        __device__ void meet(const Args& args, const Member& me, const Memory<KeyGradient>& memory, int slot, int stage,
                             const Meeting& meeting) {
            const Heads& n = args.p.n;
            const Own k{memory.own_at(slot)}, v{memory.own_at(slot) + Own::bytes};
            const Met q{memory.met_at(stage)}, d_o{memory.met_at(stage) + Met::bytes};
            const OfQueries& of = memory.template numbers_at<OfQueries>(stage);
            float s[queries / 2], dp[queries / 2];
            hold(s), hold(dp);
            products_begin();
            multiply_transposed<T>(s, k, me.group * group_rows, q);
            products_given();
            multiply_transposed<T>(dp, v, me.group * group_rows, d_o);
            products_given();
            products_wait<1>();
            hold(s);
            const bool whole = meeting.is_whole_for(me.group);
            const float unit = args.p.scale * log2_of_e;
            // A key is seen from the query on that it has here, and by those who begin before it.
            const int from = n.causal ? row - static_cast<int>(n.Sk - n.Sq) - meeting.first : INT32_MIN / 2;
            const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
            for (int i = 0; i < queries / 2; i += 4) {
                const int c = i / 4 * 8 + column;
                const float2 shift = *reinterpret_cast<const float2*>(of.shift + c);
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    s[i + e] = probability(s[i + e], unit, e % 2 ? shift.y : shift.x);
                    if (!whole && (c + e % 2 < from + e / 2 * 8 || row + e / 2 * 8 < of.first[c + e % 2])) s[i + e] = 0;
                }
            }
            [[maybe_unused]] std::uint32_t kept = 0;
            if constexpr (drops) {
#pragma unroll
                for (int m = 0; m < queries / 16; ++m) {
                    const U32x4 words =
                        words_transposed(draws, of.first_call + m * 8, 0, meeting.first + m * 16, row - lane_row());
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        kept |= static_cast<std::uint32_t>(draws.keeps(words.v[e / 4 * 2 + e % 2], e % 4 / 2))
                                << (8 * m + e);
                }
            }
            const auto keep = [&](float x, int i) { return !drops || kept >> i & 1 ? x : 0; };
            unsigned p[queries / 16][4], ds[queries / 16][4];
#pragma unroll
            for (int i = 0; i < queries / 2; i += 2) p[i / 8][i % 8 / 2] = two<T>(keep(s[i], i), keep(s[i + 1], i + 1));
            hold(dv), hold(p);
            products_begin();
            multiply_words<T>(dv, p, d_o);
            products_given();
            products_wait<1>();
            hold(dp);
#pragma unroll
            for (int i = 0; i < queries / 2; i += 4) {
                const float2 mean = *reinterpret_cast<const float2*>(of.mean + i / 4 * 8 + column);
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    s[i + e] *= fmaf(keep(dp[i + e], i + e), args.p.factor, -(e % 2 ? mean.y : mean.x));
            }
            to_words<T>(ds, s);
            hold(dk), hold(ds);
            products_begin();
            multiply_words<T>(dk, ds, q);
            products_given();
            products_wait<0>();
            hold(dv), hold(dk), hold(p), hold(ds);
        }

        __device__ void finish(const Args& args, const Item& item, const Member&) {
            const Heads& n = args.p.n;
            store_rows<D>(args.dk, n, item.b, item.head, row, n.Sk, dk, args.p.scale, args.p.scale);
            store_rows<D>(args.dv, n, item.b, item.head, row, n.Sk, dv, args.p.factor, args.p.factor);
        }
    };
};

}  // namespace
}  // namespace sm90

bool sm90_attention_backward(const Exec& exec, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o,
                             HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                             const AttentionOut& out) {
    if (!sm90::applies(exec, s, q, k, v)) return false;
    ArenaScope scope(*exec.arena);
    const Tensor delta = exec.tensor(DType::f32, out.lse.shape);
    if (exec.counts()) return true;
    attention_delta(exec, s, delta, d_o, out.o);
    sm90::dispatch(q.data.dtype, s, [&](auto zero, auto width, auto drops) {
        using T = decltype(zero);
        constexpr int D = width;
        using Queries = sm90::QueryGradient<device_t<T>, D, drops>;
        using Keys = sm90::KeyGradient<device_t<T>, D, drops>;
        const HeadRows<ConstTensor> of_out{d_o, 0};
        const Problem p = problem_of(s);
        sm90::launch<Queries>(
            exec, {sm90::head_map(s, q, s.Sq, Queries::own_rows), sm90::head_map(s, k, s.Sk, Queries::keys),
                   sm90::head_map(s, v, s.Sk, Queries::keys), sm90::head_map(s, of_out, s.Sq, Queries::own_rows), p,
                   sm90::items_of(s.Sq, Queries::own_rows, s.H, s.B, s.Sk * D * 4 / (s.H / s.G), true),
                   rows<T>(grads.dq), delta.ptr<float>(), out.lse.ptr<float>()});
        sm90::launch<Keys>(
            exec, {sm90::head_map(s, q, s.Sq, Keys::queries), sm90::head_map(s, k, s.Sk, Keys::own_rows),
                   sm90::head_map(s, v, s.Sk, Keys::own_rows), sm90::head_map(s, of_out, s.Sq, Keys::queries), p,
                   sm90::items_of(s.Sk, Keys::own_rows, s.G, s.B, s.Sq * D * 4 * (s.H / s.G), false), rows<T>(grads.dk),
                   rows<T>(grads.dv), delta.ptr<float>(), out.lse.ptr<float>()});
    });
    return true;
}

}  // namespace tera::ops::cuda
