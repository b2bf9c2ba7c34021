// Gradients of attention's queries on Hopper's warp groups.
#include "ops/attention_keys_met_sm90.cuh"

namespace tera::ops::cuda::sm90 {
namespace {

/// Queries meet keys and values.
template <class Element, int D, bool drops>
struct QueryGradient : KeysMet<2, HeadTile<D, D <= 96 ? 96 : 64>> {
    using T = Element;
    using Keys = KeysMet<2, HeadTile<D, D <= 96 ? 96 : 64>>;
    using Keys::keys, Keys::met_bytes;
    using typename Keys::Met;
    static constexpr bool held = D <= 64, lags = true;
    static constexpr int groups = 2, slots = 1;
    using Own = HeadTile<D, groups * group_rows>;
    static constexpr int own_rows = Own::rows;
    static constexpr unsigned own_bytes = 2 * Own::bytes;
    static constexpr int stages = stages_of(slots * own_bytes, met_bytes);

    struct Args {
        HeadMap q, k, v, d_o;
        Sizes n;
        Problem p;
        Items items;
        Rows<T> dq;
        const float *delta, *lse;
    };

    __device__ static void load_own(const Args& args, const Item& item, unsigned at, unsigned full) {
        Own{at}.load(args.q.map, full, args.q.column(args.n, item.b, item.head), item.first);
        Own{at + Own::bytes}.load(args.d_o.map, full, args.d_o.column(args.n, item.b, item.head), item.first);
    }
    struct State {
        OwnRows<Own, held> q, d_o;
        unsigned ds[keys / 16][4];  ///< of the last tile met, at this stage
        int stage = 0;
        float dq[D / 2] = {}, shift[2], mean[2];
        Sight sights[2];
        Draws<true> draws;
        std::uint64_t first_call;
        int head, row;

        __device__ State(const Args& args, const Item& item, const Member& me)
            : draws(args.p, item.b), head(item.head), row(item.first + me.group * group_rows + me.row) {
            const Sizes& n = args.n;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int at = n.number(item.b, head, row + 8 * r);
                const bool there = row + 8 * r < n.Sq;
                const float lse = there ? args.lse[at] : 0;
                shift[r] = lse == -INFINITY ? 0 : lse * log2_of_e;  // then all scores are hidden
                mean[r] = there ? args.delta[at] : 0;
                sights[r] = n.sight(item.b, row + 8 * r);
            }
            first_call = drops ? args.p.n.dropout.first_call(head, row) : 0;
        }

        __device__ void begin(const Memory<QueryGradient>& memory, int slot, const Member& me) {
            q.take(Own{memory.own_at(slot)}, me.group * group_rows);
            d_o.take(Own{memory.own_at(slot) + Own::bytes}, me.group * group_rows);
        }

        __device__ void first(const Args& args, const Member& me, const Memory<QueryGradient>& memory,
                              const Arrived& a) {
            float s[keys / 2], dp[keys / 2];
            hold(s), hold(dp);
            products_begin();
            multiply_own(s, dp, memory, a.stage);
            products_wait<1>();
            hold(s);
            weigh(s, args, me, a.meeting);
            products_wait<0>();
            hold(dp);
            differ(s, dp, args, a.meeting);
            to_words<T>(ds, s);
            stage = a.stage;
        }

        template <class Done>
        __device__ void next(const Args& args, const Member& me, const Memory<QueryGradient>& memory, const Arrived& a,
                             const Done& met) {
            float s[keys / 2], dp[keys / 2];
            hold(s), hold(dp), hold(dq), hold(ds);
            products_begin();
            multiply_own(s, dp, memory, a.stage);
            multiply_words<T>(dq, ds, keys_at(memory, stage));
            products_given();
            products_wait<2>();
            hold(s);
            weigh(s, args, me, a.meeting);
            products_wait<1>();
            hold(dp);
            differ(s, dp, args, a.meeting);
            products_wait<0>();
            hold(dq), hold(ds);
            met(stage);
            to_words<T>(ds, s);
            stage = a.stage;
        }

        __device__ void multiply_own(float (&s)[keys / 2], float (&dp)[keys / 2], const Memory<QueryGradient>& memory,
                                     int stage) const {
            const Met k = keys_at(memory, stage), v{k.at + Met::bytes};
            multiply_transposed<T>(s, q, k);
            products_given();
            multiply_transposed<T>(dp, d_o, v);
            products_given();
        }

        template <class Done>
        __device__ void last(const Memory<QueryGradient>& memory, const Done& met) {
            hold(dq), hold(ds);
            products_begin();
            multiply_words<T>(dq, ds, keys_at(memory, stage));
            products_given();
            products_wait<0>();
            hold(dq), hold(ds);
            met(stage);
        }

        __device__ static Met keys_at(const Memory<QueryGradient>& memory, int stage) { return {memory.met_at(stage)}; }

        /// Scores become probabilities.
        __device__ void weigh(float (&s)[keys / 2], const Args& args, const Member& me, const Meeting& meeting) {
            if (!meeting.is_whole_for(me.group)) hide(s, sights, meeting.first);
            const float unit = args.p.scale * log2_of_e;
#pragma unroll
            for (int i = 0; i < keys / 2; ++i) s[i] = probability(s[i], unit, shift[i % 4 / 2]);
        }
        /// And these the gradients of the scores.
        __device__ void differ(float (&s)[keys / 2], float (&dp)[keys / 2], const Args& args, const Meeting& meeting) {
            if constexpr (drops)
                drop(reinterpret_cast<float(&)[keys / 8][4]>(dp), draws, first_call, head, row, meeting.first);
#pragma unroll
            for (int i = 0; i < keys / 2; ++i) s[i] *= fmaf(dp[i], args.p.factor, -mean[i % 4 / 2]);
        }

        __device__ void finish(const Args& args, const Item& item, const Member&) {
            const Sizes& n = args.n;
            store_rows<D>(args.dq, args.p.n, item.b, head, row, n.Sq, dq, args.p.scale, args.p.scale);
        }
    };
};

}  // namespace

void query_gradients(const Exec& exec, const Backward& b) {
    const AttentionSpec& s = b.s;
    dispatch(b.q.data.dtype, s, [&](auto zero, auto width, auto drops) {
        using T = decltype(zero);
        constexpr int D = width;
        using Op = QueryGradient<device_t<T>, D, drops>;
        launch<Op>(exec, {head_map(s, b.q, s.Sq, Op::own_rows), head_map(s, b.k, s.Sk, Op::keys),
                          head_map(s, b.v, s.Sk, Op::keys), head_map(s, b.d_o, s.Sq, Op::own_rows), sizes_of(s),
                          problem_of(s), items_of(s.Sq, Op::own_rows, s.H, s.B, s.Sk * D * 4 / (s.H / s.G), true),
                          rows<T>(b.grads.dq), b.delta.ptr<float>(), b.out.lse.ptr<float>()});
    });
}

}  // namespace tera::ops::cuda::sm90
