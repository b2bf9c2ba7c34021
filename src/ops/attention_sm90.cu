// Attention forward on Hopper's warp groups, after FlashAttention-3: queries meet tiles of keys and values. While the
// probabilities of one tile are made, those of the last one meet their values.
#include "ops/attention_keys_met_sm90.cuh"
#include "ops/attention_mma.h"

namespace tera::ops::cuda {
namespace sm90 {

bool applies(const Exec& exec, const AttentionSpec& s, const HeadRows<ConstTensor>& q, const HeadRows<ConstTensor>& k,
             const HeadRows<ConstTensor>& v) {
    const auto reachable = [&](const HeadRows<ConstTensor>& r) {
        return r.offset % 8 == 0 && r.data.cols() % 8 == 0 && s.B * r.data.cols() <= INT32_MAX;
    };
    const DType dtype = q.data.dtype;
    return exec.gpu->hopper && (dtype == DType::bf16 || dtype == DType::f16) &&
           (s.K == 64 || s.K == 96 || s.K == 128) && s.Sq > 0 && s.Sk > 0 && std::max(s.Sq, s.Sk) < INT32_MAX - 256 &&
           s.scale > 0 && (s.dropout == 0 || problem_of(s).aligned) && reachable(q) && reachable(k) && reachable(v) &&
           s.B * s.H * std::max(s.Sq, s.Sk) < INT32_MAX;
}

namespace {

template <class Element, int D, bool drops>
struct Forward : KeysMet<D <= 64 ? 3 : 2, HeadTile<D, 96>> {
    using T = Element;
    using Keys = KeysMet<D <= 64 ? 3 : 2, HeadTile<D, 96>>;
    using Keys::keys, Keys::met_bytes;
    using typename Keys::Met;
    static constexpr bool held = true, lags = true;
    static constexpr int groups = D <= 64 ? 3 : 2, slots = 1;
    using Own = HeadTile<D, groups * group_rows>;
    static constexpr int own_rows = Own::rows;
    static constexpr unsigned own_bytes = Own::bytes;
    static constexpr int stages = stages_of(slots * own_bytes, met_bytes);

    struct Args {
        HeadMap q, k, v;
        Sizes n;
        Problem p;
        Items items;
        Rows<T> o;
        float* lse;
    };

    __device__ static void load_own(const Args& args, const Item& item, unsigned at, unsigned full) {
        Own{at}.load(args.q.map, full, args.q.column(args.n, item.b, item.head), item.first);
    }
    struct State {
        OwnRows<Own, held> q;
        unsigned p[keys / 16][4];  ///< of the last tile met, at this stage
        int stage = 0;
        float out[D / 2] = {}, top[2] = {-1e30f, -1e30f}, sum[2] = {};
        Sight sights[2];
        Draws<true> draws;
        std::uint64_t first_call;
        int head, row;

        __device__ State(const Args& args, const Item& item, const Member& me)
            : draws(args.p, item.b), head(item.head), row(item.first + me.group * group_rows + me.row) {
            const Sizes& n = args.n;
#pragma unroll
            for (int r = 0; r < 2; ++r) sights[r] = n.sight(item.b, row + 8 * r);
            first_call = drops ? args.p.n.dropout.first_call(head, row) : 0;
        }

        __device__ void begin(const Memory<Forward>& memory, int slot, const Member& me) {
            q.take(Own{memory.own_at(slot)}, me.group * group_rows);
        }

        __device__ void first(const Args& args, const Member& me, const Memory<Forward>& memory, const Arrived& a) {
            float s[keys / 2], shrink[2];
            hold(s);
            products_begin();
            multiply_transposed<T>(s, q, Met{memory.met_at(a.stage)});
            products_given();
            products_wait<0>();
            hold(s);
            weigh(s, shrink, args, me, a.meeting);
            shrink_sums(shrink);
            to_words<T>(p, s);
            stage = a.stage;
        }

        template <class Done>
        __device__ void next(const Args& args, const Member& me, const Memory<Forward>& memory, const Arrived& a,
                             const Done& met) {
            float s[keys / 2], shrink[2];
            hold(s), hold(out), hold(p);
            products_begin();
            multiply_transposed<T>(s, q, Met{memory.met_at(a.stage)});
            products_given();
            multiply_words<T>(out, p, values(memory));
            products_given();
            products_wait<1>();
            hold(s);
            weigh(s, shrink, args, me, a.meeting);
            products_wait<0>();
            hold(out), hold(p);
            met(stage);
            shrink_sums(shrink);
            to_words<T>(p, s);
            stage = a.stage;
        }

        template <class Done>
        __device__ void last(const Memory<Forward>& memory, const Done& met) {
            hold(out), hold(p);
            products_begin();
            multiply_words<T>(out, p, values(memory));
            products_given();
            products_wait<0>();
            hold(out), hold(p);
            met(stage);
        }

        __device__ void shrink_sums(const float (&by)[2]) {
#pragma unroll
            for (int i = 0; i < D / 2; ++i) out[i] *= by[i % 4 / 2];
        }
        __device__ Met values(const Memory<Forward>& memory) const { return {memory.met_at(stage) + Met::bytes}; }

        /// Scores become probabilities, but for a factor; by which what has been added up so far shrinks.
        __device__ void weigh(float (&s)[keys / 2], float (&shrink)[2], const Args& args, const Member& me,
                              const Meeting& meeting) {
            if (!meeting.is_whole_for(me.group)) hide(s, sights, meeting.first);
            const float unit = args.p.scale * log2_of_e;
            float shift[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float most = top[r];
#pragma unroll
                for (int i = 2 * r; i < keys / 2; i += 4) most = fmaxf(most, fmaxf(s[i], s[i + 1]));
                most = over_row(most, Max{});
                shrink[r] = exp2_of((top[r] - most) * unit);
                top[r] = most;
                shift[r] = most * unit;
                sum[r] *= shrink[r];
            }
#pragma unroll
            for (int i = 0; i < keys / 2; ++i) {
                s[i] = exp2_of(fmaf(s[i], unit, -shift[i % 4 / 2]));
                sum[i % 4 / 2] += s[i];
            }
            if constexpr (drops)
                drop(reinterpret_cast<float(&)[keys / 8][4]>(s), draws, first_call, head, row, meeting.first);
        }

        __device__ void finish(const Args& args, const Item& item, const Member&) {
            const Sizes& n = args.n;
            float factor[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                sum[r] = over_row(sum[r], Sum{});
                factor[r] = sum[r] > 0 ? args.p.factor / sum[r] : 0;  // else there was no key to see
                if (threadIdx.x % 4 == 0 && row + 8 * r < n.Sq)
                    args.lse[n.number(item.b, head, row + 8 * r)] =
                        sum[r] > 0 ? ln2 * (top[r] * args.p.scale * log2_of_e + log2f(sum[r])) : -INFINITY;
            }
            store_rows<D>(args.o, args.p.n, item.b, head, row, n.Sq, out, factor[0], factor[1]);
        }
    };
};

}  // namespace
}  // namespace sm90

bool sm90_attention(const Exec& exec, const AttentionSpec& s, const AttentionOut& out, HeadRows<ConstTensor> q,
                    HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (!sm90::applies(exec, s, q, k, v)) return false;
    sm90::dispatch(q.data.dtype, s, [&](auto zero, auto width, auto drops) {
        using T = decltype(zero);
        constexpr int D = width;
        using Op = sm90::Forward<device_t<T>, D, drops>;
        const typename Op::Args args{sm90::head_map(s, q, s.Sq, Op::own_rows),
                                     sm90::head_map(s, k, s.Sk, Op::keys),
                                     sm90::head_map(s, v, s.Sk, Op::keys),
                                     sm90::sizes_of(s),
                                     problem_of(s),
                                     sm90::items_of(s.Sq, Op::own_rows, s.H, s.B, s.Sk * D * 4 / (s.H / s.G), true),
                                     rows<T>(HeadRows<Tensor>{out.o, 0}),
                                     out.lse.ptr<float>()};
        sm90::launch<Op>(exec, args);
    });
    return true;
}

bool sm90_attention_backward(const Exec& exec, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o,
                             HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                             const AttentionOut& out) {
    if (!sm90::applies(exec, s, q, k, v) || !take_words(grads)) return false;
    ArenaScope scope(*exec.arena);
    const Tensor delta = exec.tensor(DType::f32, out.lse.shape);
    const sm90::Backward backward{s, grads, {d_o, 0}, q, k, v, out, delta};
    if (!exec.counts()) attention_delta(exec, s, delta, d_o, out.o);
    if (AttentionDropout(s).threshold > 0 && !exec.gpu->deterministic) {
        sm90::gradients(exec, backward);
    } else if (!exec.counts()) {
        sm90::query_gradients(exec, backward);
        sm90::key_gradients(exec, backward);
    }
    return true;
}

}  // namespace tera::ops::cuda
