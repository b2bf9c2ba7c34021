// Gradients of attention's keys and values on Hopper's warp groups; and, where they may be added up in any order, those
// of the queries with them.
#include "ops/attention_query_sums_sm90.cuh"
#include "ops/convert.h"

namespace tera::ops::cuda::sm90 {
namespace {

/// Keys and values meet queries and the gradients of what these got.
template <class Element, int D, bool drops, bool for_queries>
struct KeyGradient {
    using T = Element;
    static constexpr bool held = D <= 64 && !for_queries, lags = D <= 96 && !for_queries;
    static constexpr int groups = 2, slots = 1;
    using Own = HeadTile<D, groups * group_rows>;
    using Met = HeadTile<D, 64>;
    static constexpr int own_rows = Own::rows, queries = Met::rows;
    /// What queries have beside their rows.
    struct OfQueries {
        float shift[queries], mean[queries];
        int first[queries];
        std::uint64_t first_call[queries / 2];  ///< of each pair
        std::int64_t tile;                      ///< which one of all
    };
    /// Gradients of a group's scores, of two tiles in turns: rows are keys.
    using Scores = HeadTile<queries, group_rows>;
    static constexpr unsigned own_bytes = 2 * Own::bytes, met_bytes = 2 * Met::bytes, number_bytes = sizeof(OfQueries),
                              exchange_bytes = for_queries ? 2 * Scores::bytes : 0;
    static constexpr int stages = stages_of(slots * own_bytes + groups * exchange_bytes, met_bytes + number_bytes);

    struct Args {
        HeadMap q, k, v, d_o;
        Sizes n;
        Problem p;
        Items items;
        Rows<T> dk, dv;
        const float *delta, *lse;
        float* dq;  ///< of tiles of queries, as QuerySums says
    };

    __device__ static void load_own(const Args& args, const Item& item, unsigned at, unsigned full) {
        Own{at}.load(args.k.map, full, args.k.column(args.n, item.b, item.head), item.first);
        Own{at + Own::bytes}.load(args.v.map, full, args.v.column(args.n, item.b, item.head), item.first);
    }
    template <class F>
    __device__ static void walk(const Args& args, const Item& item, const F& f) {
        const Sizes& n = args.n;
        const int per_group = n.H / n.G, end = min(item.first + own_rows, n.Sk);
        const int before = n.causal ? item.first - n.later : 0;  // queries that see none of these
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
                if (meeting.concerns_any()) f(item.head * per_group + h, meeting);
            }
    }
    struct Numbers {
        static constexpr int each = queries / 32, calls = (queries / 2 + 31) / 32;  ///< of a lane
        float shift[each], mean[each];
        int first[each];
        std::uint64_t first_call[calls];
        std::int64_t tile;
        __device__ void store(const Memory<KeyGradient>& memory, int stage) const {
            auto& to = memory.template numbers_at<OfQueries>(stage);
            const int lane = static_cast<int>(threadIdx.x);
#pragma unroll
            for (int i = 0; i < each; ++i)
                to.shift[lane + 32 * i] = shift[i], to.mean[lane + 32 * i] = mean[i],
                                     to.first[lane + 32 * i] = first[i];
#pragma unroll
            for (int i = 0; i < calls; ++i)
                if (lane + 32 * i < queries / 2) to.first_call[lane + 32 * i] = first_call[i];
            if (lane == 0) to.tile = tile;
        }
    };
    __device__ static Numbers numbers(const Args& args, const Item& item, int head, int first) {
        const Sizes& n = args.n;
        const int lane = static_cast<int>(threadIdx.x);
        Numbers out;
#pragma unroll
        for (int i = 0; i < Numbers::each; ++i) {
            const int q = first + lane + 32 * i;
            const int at = n.number(item.b, head, q);
            const bool there = q < n.Sq;
            out.shift[i] = there ? args.lse[at] * log2_of_e : 0;
            out.mean[i] = there ? args.delta[at] : 0;
            out.first[i] = there ? n.begin(item.b, q) : INT32_MAX;
        }
#pragma unroll
        for (int i = 0; i < Numbers::calls; ++i) {
            const int pair = lane + 32 * i;
            out.first_call[i] = drops ? args.p.n.dropout.first_call(head, first + pair / 8 * 16 + pair % 8) : 0;
        }
        out.tile = QuerySums<D>::tile(n, item.b, head, first);
        return out;
    }
    __device__ static void load_met(const Args& args, const Item& item, int head, int first, unsigned at,
                                    unsigned full) {
        Met{at}.load(args.q.map, full, args.q.column(args.n, item.b, head), first);
        Met{at + Met::bytes}.load(args.d_o.map, full, args.d_o.column(args.n, item.b, head), first);
    }

    struct State {
        OwnRows<Own, held> k, v;
        using Kept = std::uint32_t;                        ///< bits of a lane's scores
        unsigned p[queries / 16][4], ds[queries / 16][4];  ///< of the last tile met, at this stage
        int stage = 0, turn = 0;
        float dk[D / 2] = {}, dv[D / 2] = {};
        Draws<true> draws;
        int row;

        __device__ State(const Args& args, const Item& item, const Member& me)
            : draws(args.p, item.b), row(item.first + me.group * group_rows + me.row) {}

        __device__ void begin(const Memory<KeyGradient>& memory, int slot, const Member& me) {
            k.take(Own{memory.own_at(slot)}, me.group * group_rows);
            v.take(Own{memory.own_at(slot) + Own::bytes}, me.group * group_rows);
        }

        __device__ void first(const Args& args, const Member& me, const Memory<KeyGradient>& memory, const Arrived& a) {
            float s[queries / 2], dp[queries / 2];
            const Kept kept = begin_tile(s, dp, args, me, memory, a);
            products_wait<0>();
            hold(dp);
            differ(s, dp, kept, args, memory, a.stage);
            keep_words(s, kept);
            to_words<T>(ds, dp);
            stage = a.stage;
        }

        template <class Done>
        __device__ void next(const Args& args, const Member& me, const Memory<KeyGradient>& memory, const Arrived& a,
                             const Done& met) {
            float s[queries / 2], dp[queries / 2];
            hold(s), hold(dp), hold(dv), hold(dk), hold(p), hold(ds);
            products_begin();
            multiply_own(s, dp, memory, a.stage);
            multiply_met(memory);
            const Kept kept = draw(memory, a);
            products_wait<2>();
            hold(s);
            weigh(s, args, me, memory, a);
            products_wait<1>();
            hold(dp);
            differ(s, dp, kept, args, memory, a.stage);
            products_wait<0>();
            hold(dv), hold(dk), hold(p), hold(ds);
            met(stage);
            keep_words(s, kept);
            to_words<T>(ds, dp);
            stage = a.stage;
        }

        /// A tile from beginning to end, where registers have no room for two.
        template <class Done>
        __device__ void meet(const Args& args, const Member& me, const Memory<KeyGradient>& memory, const Arrived& a,
                             const Done& met) {
            const Met q{memory.met_at(a.stage)}, d_o{q.at + Met::bytes};
            float s[queries / 2], dp[queries / 2];
            const Kept kept = begin_tile(s, dp, args, me, memory, a);
            keep_words(s, kept);
            hold(dv), hold(p);
            products_begin();
            multiply_words<T>(dv, p, d_o);
            products_given();
            products_wait<1>();
            hold(dp);
            differ(s, dp, kept, args, memory, a.stage);
            to_words<T>(ds, dp);
            if constexpr (for_queries) {
                add_to_queries(args, me, memory, a, q);
            } else {
                hold(dk), hold(ds);
                products_begin();
                multiply_words<T>(dk, ds, q);
                products_given();
            }
            products_wait<0>();
            hold(dv), hold(dk), hold(p), hold(ds);
            met(a.stage);
        }

        /// What the queries of the tile get; and what the keys get, while the first of it is added.
        __device__ void add_to_queries(const Args& args, const Member& me, const Memory<KeyGradient>& memory,
                                       const Arrived& a, const Met& q) {
            tell(memory, me);
            float* const dq = args.dq + memory.template numbers_at<OfQueries>(a.stage).tile * QuerySums<D>::elements;
#pragma unroll
            for (int part = 0; part < D / QuerySums<D>::width; ++part) {
                float sums[QuerySums<D>::width / 2];
                hold(sums), hold(dk), hold(ds);
                products_begin();
                multiply_scores(sums, part, memory, me);
                products_given();
                if (part == 0) {
                    multiply_words<T>(dk, ds, q);
                    products_given();
                    products_wait<1>();
                } else {
                    products_wait<0>();
                }
                hold(sums);
                QuerySums<D>::add(dq, part, sums);
            }
        }

        /// The other warps of the group what this one's keys have: a product over all keys needs it.
        __device__ void tell(const Memory<KeyGradient>& memory, const Member& me) {
            turn ^= 1;
            const int lane = static_cast<int>(threadIdx.x) % 32;
            const int key = static_cast<int>(threadIdx.x) % group_threads / 32 * 16 + lane % 16;
            const unsigned at = scores(memory, me).at + key * 128;
#pragma unroll
            for (int i = 0; i < queries / 16; ++i) store_fragments(at + ((2 * i + lane / 16) ^ key % 8) * 16, ds[i]);
            over_for_copies();
            hopper::meet(1 + me.group, group_threads);
        }
        __device__ Scores scores(const Memory<KeyGradient>& memory, const Member& me) const {
            return {memory.exchange_of(me.group) + turn * Scores::bytes};
        }
        /// The group's keys times what their scores have got: some columns of what the queries get.
        template <int n>
        __device__ void multiply_scores(float (&sums)[n], int part, const Memory<KeyGradient>& memory,
                                        const Member& me) const {
            const Scores of = scores(memory, me);
            const HeadTile<2 * n, own_rows> keys{k.tile.at + part * Own::block_bytes};
#pragma unroll
            for (int i = 0; i < group_rows / 16; ++i)
                multiply<true, T, true>(sums, of.down(i), keys.down(k.row / 16 + i), i > 0);
        }

        template <class Done>
        __device__ void last(const Memory<KeyGradient>& memory, const Done& met) {
            hold(dv), hold(dk), hold(p), hold(ds);
            products_begin();
            multiply_met(memory);
            products_wait<0>();
            hold(dv), hold(dk), hold(p), hold(ds);
            met(stage);
        }

        /// Probabilities in s, and which are kept; dp is still on its way.
        __device__ Kept begin_tile(float (&s)[queries / 2], float (&dp)[queries / 2], const Args& args,
                                   const Member& me, const Memory<KeyGradient>& memory, const Arrived& a) {
            hold(s), hold(dp);
            products_begin();
            multiply_own(s, dp, memory, a.stage);
            const Kept kept = draw(memory, a);
            products_wait<1>();
            hold(s);
            weigh(s, args, me, memory, a);
            return kept;
        }
        __device__ void multiply_own(float (&s)[queries / 2], float (&dp)[queries / 2],
                                     const Memory<KeyGradient>& memory, int at) const {
            const Met q{memory.met_at(at)}, d_o{q.at + Met::bytes};
            multiply_transposed<T>(s, k, q);
            products_given();
            multiply_transposed<T>(dp, v, d_o);
            products_given();
        }
        __device__ void multiply_met(const Memory<KeyGradient>& memory) {
            const Met q{memory.met_at(stage)}, d_o{q.at + Met::bytes};
            multiply_words<T>(dv, p, d_o);
            multiply_words<T>(dk, ds, q);
            products_given();
        }

        /// Which are kept, while products are on their way.
        __device__ Kept draw(const Memory<KeyGradient>& memory, const Arrived& a) const {
            Kept kept = 0;
            if constexpr (drops) {
                const OfQueries& of = memory.template numbers_at<OfQueries>(a.stage);
#pragma unroll
                for (int m = 0; m < queries / 16; ++m) {
                    const U32x4 words =
                        words_transposed(draws, of.first_call + m * 8, 0, a.meeting.first + m * 16, row - lane_row());
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        kept |= static_cast<Kept>(draws.keeps(words.v[e / 4 * 2 + e % 2], e % 4 / 2)) << (8 * m + e);
                }
                asm volatile("" : "+r"(kept));
            }
            return kept;
        }
        /// Scores become probabilities.
        __device__ void weigh(float (&s)[queries / 2], const Args& args, const Member& me,
                              const Memory<KeyGradient>& memory, const Arrived& a) {
            const Sizes& n = args.n;
            const Meeting& meeting = a.meeting;
            const OfQueries& of = memory.template numbers_at<OfQueries>(a.stage);
            const bool whole = meeting.is_whole_for(me.group);
            const float unit = args.p.scale * log2_of_e;
            // A key is seen from the query on that it has here, and by those who begin before it.
            const int from = n.causal ? row - n.later - meeting.first : INT32_MIN / 2;
#pragma unroll
            for (int i = 0; i < queries / 2; i += 4) {
                const int c = i / 4 * 8 + column();
                const float2 shift = *reinterpret_cast<const float2*>(of.shift + c);
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    s[i + e] = probability(s[i + e], unit, e % 2 ? shift.y : shift.x);
                    if (!whole && (c + e % 2 < from + e / 2 * 8 || row + e / 2 * 8 < of.first[c + e % 2])) s[i + e] = 0;
                }
            }
        }
        __device__ static int column() { return static_cast<int>(threadIdx.x) % 4 * 2; }
        __device__ static float keep(float x, Kept kept, int i) { return !drops || kept >> i & 1 ? x : 0; }

        /// dp becomes the gradients of the scores.
        __device__ void differ(const float (&s)[queries / 2], float (&dp)[queries / 2], Kept kept, const Args& args,
                               const Memory<KeyGradient>& memory, int at) {
            const OfQueries& of = memory.template numbers_at<OfQueries>(at);
#pragma unroll
            for (int i = 0; i < queries / 2; i += 4) {
                const float2 mean = *reinterpret_cast<const float2*>(of.mean + i / 4 * 8 + column());
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    dp[i + e] =
                        s[i + e] * fmaf(keep(dp[i + e], kept, i + e), args.p.factor, -(e % 2 ? mean.y : mean.x));
            }
        }
        __device__ void keep_words(const float (&s)[queries / 2], Kept kept) {
#pragma unroll
            for (int i = 0; i < queries / 2; i += 2)
                p[i / 8][i % 8 / 2] = two<T>(keep(s[i], kept, i), keep(s[i + 1], kept, i + 1));
        }

        __device__ void finish(const Args& args, const Item& item, const Member&) {
            const Sizes& n = args.n;
            store_rows<D>(args.dk, args.p.n, item.b, item.head, row, n.Sk, dk, args.p.scale, args.p.scale);
            store_rows<D>(args.dv, args.p.n, item.b, item.head, row, n.Sk, dv, args.p.factor, args.p.factor);
        }
    };
};

}  // namespace

namespace {

/// bytes: of what is met of a query.
template <class Op, class T>
void launch_for_keys(const Exec& exec, const Backward& b, std::int64_t bytes, float* dq) {
    const AttentionSpec& s = b.s;
    launch<Op>(exec, {head_map(s, b.q, s.Sq, Op::queries), head_map(s, b.k, s.Sk, Op::own_rows),
                      head_map(s, b.v, s.Sk, Op::own_rows), head_map(s, b.d_o, s.Sq, Op::queries), sizes_of(s),
                      problem_of(s), items_of(s.Sk, Op::own_rows, s.G, s.B, s.Sq * bytes * (s.H / s.G), false),
                      rows<T>(b.grads.dk), rows<T>(b.grads.dv), b.delta.ptr<float>(), b.out.lse.ptr<float>(), dq});
}

}  // namespace

void key_gradients(const Exec& exec, const Backward& b) {
    dispatch(b.q.data.dtype, b.s, [&](auto zero, auto width, auto drops) {
        using T = decltype(zero);
        constexpr int D = width;
        launch_for_keys<KeyGradient<device_t<T>, D, drops, false>, T>(exec, b, D * 4, nullptr);
    });
}

void gradients(const Exec& exec, const Backward& b) {
    const AttentionSpec& s = b.s;
    dispatch(b.q.data.dtype, s, [&](auto zero, auto width, auto drops) {
        using T = decltype(zero);
        constexpr int D = width;
        if constexpr (drops) {
            using Sums = QuerySums<D>;
            const std::int64_t tiles = Sums::tiles(s);
            const Tensor sums = exec.tensor(DType::f32, {tiles, Sums::elements});
            if (exec.counts()) return;
            fill_zero(exec, sums);
            launch_for_keys<KeyGradient<device_t<T>, D, true, true>, T>(exec, b, D * 8, sums.ptr<float>());
            attention_query_sums_to_rows<device_t<T>, D>
                <<<static_cast<unsigned>(tiles), group_threads, 0, exec.gpu->stream>>>(rows<T>(b.grads.dq), heads_of(s),
                                                                                       sums.ptr<float>());
            TERA_LAUNCHED();
        }
    });
}

}  // namespace tera::ops::cuda::sm90
