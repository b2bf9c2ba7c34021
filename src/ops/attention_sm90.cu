// Attention forward on Hopper's warp groups, after FlashAttention-3: queries meet tiles of 128 keys and values.
#include "ops/attention_sm90.h"

#include "ops/attention_sm90.cuh"

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
           s.B * s.H * ((std::max(s.Sq, s.Sk) + group_rows) / group_rows) < INT32_MAX;
}

namespace {

template <class Element, int D, bool drops>
struct Forward {
    using T = Element;
    using Own = HeadTile<D, (D <= 64 ? 3 : 2) * group_rows>;
    using Met = HeadTile<D, 128>;
    static constexpr int own_rows = Own::rows, groups = own_rows / group_rows, slots = 2, stages = D <= 64 ? 3 : 2;
    static constexpr unsigned own_bytes = Own::bytes, met_bytes = 2 * Met::bytes, number_bytes = 0;
    static constexpr int keys = Met::rows;

    struct Args {
        HeadMap q, k, v;
        Problem p;
        Items items;
        Rows<T> o;
        float* lse;
    };

    __device__ static void load_own(const Args& args, const Item& item, unsigned at, unsigned full) {
        Own{at}.load(args.q.map, full, args.q.column(args.p.n, item.b, item.head), item.first);
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
        float out[D / 2] = {}, top[2] = {-1e30f, -1e30f}, sum[2] = {};
        Sight sights[2];
        Draws<true> draws;
        std::uint64_t first_call;
        int head, row;

        __device__ State(const Args& args, const Item& item, const Member& me)
            : draws(args.p, item.b), head(item.head), row(item.first + me.group * group_rows + me.row) {
            const Heads& n = args.p.n;
#pragma unroll
            for (int r = 0; r < 2; ++r) sights[r] = sight(n, item.b, row + 8 * r);
            first_call = drops ? n.dropout.first_call(head, row) : 0;
        }

        __device__ void meet(const Args& args, const Member& me, const Memory<Forward>& memory, int slot, int stage,
                             const Meeting& meeting) {
            const Met k{memory.met_at(stage)}, v{memory.met_at(stage) + Met::bytes};
            float s[keys / 2];
            hold(s);
            products_begin();
            multiply_transposed<T>(s, Own{memory.own_at(slot)}, me.group * group_rows, k);
            products_given();
            products_wait<0>();
            hold(s);
            if (!meeting.is_whole_for(me.group)) hide(s, sights, meeting.first);
            const float unit = args.p.scale * log2_of_e;
            float shift[2], shrink[2];
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
            if (__any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
                for (int i = 0; i < D / 2; ++i) out[i] *= shrink[i % 4 / 2];
            }
            unsigned p[keys / 16][4];
            to_words<T>(p, s);
            hold(out), hold(p);
            products_begin();
            multiply_words<T>(out, p, v);
            products_given();
            products_wait<0>();
            hold(out), hold(p);
        }

        __device__ void finish(const Args& args, const Item& item, const Member&) {
            const Heads& n = args.p.n;
            float factor[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                sum[r] = over_row(sum[r], Sum{});
                factor[r] = sum[r] > 0 ? args.p.factor / sum[r] : 0;  // else there was no key to see
                if (threadIdx.x % 4 == 0 && row + 8 * r < n.Sq)
                    args.lse[(item.b * n.H + head) * n.Sq + row + 8 * r] =
                        sum[r] > 0 ? ln2 * (top[r] * args.p.scale * log2_of_e + log2f(sum[r])) : -INFINITY;
            }
            store_rows<D>(args.o, n, item.b, head, row, n.Sq, out, factor[0], factor[1]);
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
                                     problem_of(s),
                                     sm90::items_of(s.Sq, Op::own_rows, s.H, s.B, s.Sk * D * 4 / (s.H / s.G), true),
                                     rows<T>(HeadRows<Tensor>{out.o, 0}),
                                     out.lse.ptr<float>()};
        sm90::launch<Op>(exec, args);
    });
    return true;
}

}  // namespace tera::ops::cuda
