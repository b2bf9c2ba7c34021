// What attention's kernels on Hopper's warp groups share. A block has some rows of a head, its own, 64 for each of its
// multiplying groups, and meets tiles of others, one after another: queries meet keys and values, or keys and values
// meet queries. One warp decides which tiles these are, and has the copy engine bring them, some ahead, also those of
// the rows that the block takes next.
//
// An operation has
//   Args                              matrices, as the copy engine wants them, and what else it needs
//   Own, Met                          tiles of own rows and of those met; two of each kind at most
//   groups, slots, stages             multiplying groups; own rows and tiles met that are in shared memory at once
//   exchange_bytes                    what the warps of a group tell each other through
//   held                              whether a group keeps its own rows in registers
//   lags                              whether the last products of a tile are made beside the first ones of the next
//   load_own, walk, load_met          what the deciding warp does
//   State, begin, first, next, last,  what a multiplying group does with its own rows: they have come, it meets the
//   finish                            first tile, each of the others, has met them all (meet: each, where nothing
//                                     lags); it says when it is done with a tile
#pragma once

#include "ops/attention_sm90.h"
#include "ops/attention_tiles_sm90.cuh"

namespace tera::ops::cuda::sm90 {

/// Of a multiplying group: which one, and the first of a lane's two rows in it; the other is eight further.
struct Member {
    int group = static_cast<int>(threadIdx.x) / group_threads - 1;
    int row = static_cast<int>(threadIdx.x) % group_threads / 32 * 16 + lane_row();
};

/// Which rows of which head a block has.
struct Item {
    int b, head, first;
};

/// All rows of all heads: those that meet most first, and of so many heads at once that what they meet stays in the
/// cache.
struct Items {
    int tiles, heads, heads_at_once;  ///< tiles of a head; heads of all samples
    int heads_of_sample;
    bool last_first;

    __device__ int count() const { return tiles * heads; }
    /// Which a block takes in a round: in every other one the last block the first, so that all have the same to do.
    __device__ static int of_round(int round) {
        const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
        return round * blocks + (round % 2 ? blocks - 1 - block : block);
    }
    __device__ Item at(int i, int rows) const {
        const int section = i / (tiles * heads_at_once), within = i - section * tiles * heads_at_once;
        const int left = heads - section * heads_at_once, width = left < heads_at_once ? left : heads_at_once;
        const int tile = within / width, head = section * heads_at_once + within % width;
        return {head / heads_of_sample, head % heads_of_sample, (last_first ? tiles - 1 - tile : tile) * rows};
    }
};

/// A tile to be met: its first row, for whom of the groups it is there at all and who of them sees all of it. The last
/// one of an item is none.
struct Meeting {
    int first;
    unsigned flags;
    static constexpr unsigned end = 1u << 31;
    __device__ bool ends() const { return flags & end; }
    __device__ bool concerns_any() const { return flags & 0xff; }
    __device__ bool concerns(int group) const { return flags >> group & 1; }
    __device__ bool is_whole_for(int group) const { return flags >> (8 + group) & 1; }
    __device__ void add(int group, bool some, bool whole) {
        flags |= static_cast<unsigned>(some) << group | static_cast<unsigned>(whole) << (8 + group);
    }
};

/// Sizes and masks in numbers that a multiprocessor is quick with.
struct Sizes {
    int B, Sq, Sk, H, G, K;
    int later;  ///< how many keys stand before the first query
    bool causal;
    const std::int32_t* doc_start;
    KeyPlaces places;

    __device__ int begin(int b, int q) const { return doc_start ? places.before(doc_start[q * B + b]) : 0; }
    __device__ int end(int q) const { return causal ? q + later + 1 : Sk; }
    __device__ Sight sight(int b, int q) const { return q < Sq ? Sight{begin(b, q), end(q)} : Sight{0, 0}; }
    /// Of what there is one for each head and query.
    __device__ int number(int b, int head, int q) const { return (b * H + head) * Sq + q; }
};
inline Sizes sizes_of(const AttentionSpec& s) {
    const auto small = [](std::int64_t x) { return static_cast<int>(x); };
    return {small(s.B), small(s.Sq),        small(s.Sk), small(s.H),  small(s.G),
            small(s.K), small(s.Sk - s.Sq), s.causal,    s.doc_start, problem_of(s).keys};
}

/// One that has come, and at which stage it lies.
struct Arrived {
    Meeting meeting;
    int stage;
};

/// First and last key that queries [from, to) see: those of the first of them and of the last, which neither begins nor
/// ends before it. Of none: nothing.
struct Span {
    int first_begin = INT32_MAX, last_begin = INT32_MAX, first_end = 0, last_end = 0;
    Span() = default;
    __device__ Span(const Sizes& n, int b, int from, int to) {
        if (from >= n.Sq) return;
        const int last = min(to, n.Sq) - 1;
        first_begin = n.begin(b, from), last_begin = n.doc_start ? n.begin(b, last) : 0;
        first_end = n.end(from), last_end = n.end(last);
    }
    __device__ bool meets(int begin, int end) const { return first_begin < end && last_end > begin; }
    __device__ bool all_see(int begin, int end) const { return last_begin <= begin && first_end >= end; }
};

constexpr unsigned most_shared_bytes = 227 * 1024;

/// How many tiles met fit beside own rows; four do.
constexpr int stages_of(unsigned own_bytes, unsigned met_bytes) {
    const int fit = static_cast<int>((most_shared_bytes - 2048 - own_bytes) / met_bytes);
    return fit < 4 ? fit : 4;
}

/// What a block's shared memory holds, in this order; addresses.
template <class Op>
struct Memory {
    static constexpr unsigned own = 0, met = Op::slots * Op::own_bytes, exchange = met + Op::stages * Op::met_bytes,
                              numbers = exchange + Op::groups * Op::exchange_bytes,
                              meetings = numbers + Op::stages * Op::number_bytes,
                              barriers = meetings + Op::stages * static_cast<unsigned>(sizeof(Meeting)),
                              all = 1024 + barriers + 8 * 2 * (Op::slots + Op::stages);
    static_assert(exchange % 1024 == 0 && Op::number_bytes % 8 == 0 && all <= most_shared_bytes,
                  "more than a block may have");

    unsigned char* memory;
    unsigned begin;
    __device__ explicit Memory(unsigned char* p) {
        const unsigned at = shared_address(p);
        begin = (at + 1023) & ~1023u;
        memory = p + (begin - at);
    }
    __device__ unsigned own_at(int slot) const { return begin + slot * Op::own_bytes; }
    __device__ unsigned met_at(int stage) const { return begin + met + stage * Op::met_bytes; }
    __device__ unsigned exchange_of(int group) const { return begin + exchange + group * Op::exchange_bytes; }
    template <class Numbers>
    __device__ Numbers& numbers_at(int stage) const {
        return *reinterpret_cast<Numbers*>(memory + numbers + stage * Op::number_bytes);
    }
    __device__ Meeting& meeting(int stage) const { return reinterpret_cast<Meeting*>(memory + meetings)[stage]; }
    /// As each lane of a warp reads it, or the first one for all.
    template <bool by_all>
    __device__ Meeting arrived_at(int stage) const {
        Meeting there = {0, 0};
        if (by_all || threadIdx.x % 32 == 0) there = meeting(stage);
        if (by_all) return there;
        return {__shfl_sync(0xffffffff, there.first, 0), __shfl_sync(0xffffffff, there.flags, 0)};
    }
    __device__ unsigned own_full(int slot) const { return begin + barriers + 8 * slot; }
    __device__ unsigned own_empty(int slot) const { return own_full(Op::slots + slot); }
    __device__ unsigned met_full(int stage) const { return own_full(2 * Op::slots + stage); }
    __device__ unsigned met_empty(int stage) const { return own_full(2 * Op::slots + Op::stages + stage); }
};

/// A place in a ring, and the parity of the phase that it is in.
template <int count>
struct Turn {
    int at = 0;
    unsigned parity = 0;
    __device__ void next() {
        if (++at == count) at = 0, parity ^= 1;
    }
};

/// Of a warp, when a tile is met: each that has written or read something beside the tile says so itself. Where that is
/// the meeting alone, the first does it for all.
template <class Op>
constexpr bool all_arrive = Op::number_bytes > 0;

/// A group that decides and those that multiply.
template <class Op>
constexpr int threads_of = (1 + Op::groups) * group_threads;

template <class Op>
__global__ void __launch_bounds__(threads_of<Op>, 1) attention_kernel(const __grid_constant__ typename Op::Args args) {
    extern __shared__ unsigned char bytes[];
    const Memory<Op> memory(bytes);
    if (threadIdx.x == 0) {
        constexpr unsigned warps = Op::groups * group_threads / 32, lanes = all_arrive<Op> ? 32 : 1;
        for (int i = 0; i < Op::slots; ++i)
            barrier_init(memory.own_full(i), 1), barrier_init(memory.own_empty(i), warps);
        for (int i = 0; i < Op::stages; ++i)
            barrier_init(memory.met_full(i), lanes), barrier_init(memory.met_empty(i), warps * lanes);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    Turn<Op::slots> slot;
    Turn<Op::stages> stage;
    const int count = args.items.count();
    if (threadIdx.x < group_threads) {
        give_up_registers<Op::groups == 2 ? 24 : 32>();
        if (threadIdx.x >= 32) return;
        const bool asks = threadIdx.x == 0;
        for (int round = 0; Items::of_round(round) < count; ++round) {
            const Item item = args.items.at(Items::of_round(round), Op::own_rows);
            barrier_wait(memory.own_empty(slot.at), slot.parity ^ 1);
            if (asks) {
                barrier_expect(memory.own_full(slot.at), Op::own_bytes);
                Op::load_own(args, item, memory.own_at(slot.at), memory.own_full(slot.at));
            }
            slot.next();
            // Each tile has its head, and numbers of its rows, which all lanes read ahead.
            Op::walk(args, item, [&](int head, const Meeting& meeting) {
                const auto numbers = Op::numbers(args, item, head, meeting.first);
                barrier_wait(memory.met_empty(stage.at), stage.parity ^ 1);
                numbers.store(memory, stage.at);
                if (asks) memory.meeting(stage.at) = meeting;
                __syncwarp();
                if (asks) {
                    barrier_expect(memory.met_full(stage.at), Op::met_bytes);
                    Op::load_met(args, item, head, meeting.first, memory.met_at(stage.at), memory.met_full(stage.at));
                } else if (all_arrive<Op>) {
                    barrier_arrive(memory.met_full(stage.at));
                }
                stage.next();
            });
            barrier_wait(memory.met_empty(stage.at), stage.parity ^ 1);
            if (asks) memory.meeting(stage.at) = {0, Meeting::end};
            __syncwarp();
            if (asks || all_arrive<Op>) barrier_arrive(memory.met_full(stage.at));
            stage.next();
        }
    } else {
        take_registers<Op::groups == 2 ? 240 : 160>();
        const auto release = [](unsigned barrier) {
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
        };
        const Member me;
        for (int round = 0; Items::of_round(round) < count; ++round) {
            const Item item = args.items.at(Items::of_round(round), Op::own_rows);
            typename Op::State state(args, item, me);
            barrier_wait(memory.own_full(slot.at), slot.parity);
            state.begin(memory, slot.at, me);
            if constexpr (Op::held) over_for_copies(), release(memory.own_empty(slot.at));
            const auto met = [&](int which) {
                if (all_arrive<Op>)
                    barrier_arrive(memory.met_empty(which));
                else
                    release(memory.met_empty(which));
            };
            bool more = true, lags = false;  // behind a tile whose products are not all given yet
            while (more) {
                barrier_wait(memory.met_full(stage.at), stage.parity);
                __syncwarp();  // lane 0 has been on its own; products are of all
                const Arrived arrived{memory.template arrived_at<all_arrive<Op>>(stage.at), stage.at};
                stage.next();
                if (!arrived.meeting.concerns(me.group)) {
                    if (lags) state.last(memory, met), lags = false;  // its stage may be what the next tile waits for
                    met(arrived.stage);
                    more = !arrived.meeting.ends();
                } else if constexpr (Op::lags) {
                    if (lags)
                        state.next(args, me, memory, arrived, met);
                    else
                        state.first(args, me, memory, arrived), lags = true;
                } else {
                    state.meet(args, me, memory, arrived, met);
                }
            }
            if constexpr (!Op::held) release(memory.own_empty(slot.at));
            slot.next();
            state.finish(args, item, me);
        }
    }
}

/// Scores of keys that this lane's two queries do not see, of a tile from `first` on.
template <int n>
__device__ inline void hide(float (&s)[n], const Sight (&sights)[2], int first) {
#pragma unroll
    for (int i = 0; i < n; ++i)
        if (!sights[i % 4 / 2].sees(first + lane_column(i / 4, i))) s[i] = -INFINITY;
}
/// Of a score that may be hidden.
__device__ inline float probability(float score, float unit, float shift) { return exp2_of(fmaf(score, unit, -shift)); }

/// Writes this lane's two rows of x [64, D], times a factor each, to rows `row` and row + 8 of a head that has so many.
template <int D, class T>
__device__ inline void store_rows(const Rows<T>& to, const Heads& n, int b, int head, int row, int rows,
                                  const float (&x)[D / 2], float by_first, float by_second) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (row + 8 * r >= rows) continue;
        T* const at = to.at(n, row + 8 * r, b, head) + lane_column(0, 0);
        const float by = r ? by_second : by_first;
#pragma unroll
        for (int i = 0; i < D / 8; ++i) {
            *reinterpret_cast<unsigned*>(at + 8 * i) = two<T>(x[4 * i + 2 * r] * by, x[4 * i + 2 * r + 1] * by);
        }
    }
}

/// Rows of heads as the copy engine takes them: those of all samples side by side.
struct HeadMap {
    CUtensorMap map;
    int width, first;  ///< of a sample's row; the column of its head 0
    __device__ int column(const Sizes& n, int b, int head) const { return b * width + first + head * n.K; }
};
inline HeadMap head_map(const AttentionSpec& s, const HeadRows<ConstTensor>& r, std::int64_t S, int rows) {
    const std::int64_t width = r.data.cols();
    return {map_of(r.data.data, s.B * width, S, s.B * width, 64, rows, true), static_cast<int>(width),
            static_cast<int>(r.offset)};
}

/// met_bytes: of what a head meets. Of so many heads at least as all multiprocessors have something of at once.
inline Items items_of(std::int64_t rows, int tile, std::int64_t heads_of_sample, std::int64_t B, std::int64_t met_bytes,
                      bool last_first) {
    constexpr std::int64_t in_cache = std::int64_t{24} << 20, multiprocessors = 132;
    const std::int64_t heads = heads_of_sample * B, tiles = (rows + tile - 1) / tile;
    const std::int64_t at_once = std::max(in_cache / met_bytes, (multiprocessors + tiles - 1) / tiles);
    return {static_cast<int>(tiles), static_cast<int>(heads),
            static_cast<int>(std::clamp<std::int64_t>(at_once, 1, heads)), static_cast<int>(heads_of_sample),
            last_first};
}

template <class Op>
void launch(const Exec& exec, const typename Op::Args& args) {
    constexpr auto bytes = static_cast<int>(Memory<Op>::all);
    static const bool prepared = [] {
        TERA_CUDA(cudaFuncSetAttribute(attention_kernel<Op>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        return true;
    }();
    (void)prepared;
    const int allowed =
        exec.gpu->product_multiprocessors > 0 ? exec.gpu->product_multiprocessors : exec.gpu->multiprocessors;
    const int blocks = std::min(args.items.tiles * args.items.heads, allowed);
    attention_kernel<Op><<<static_cast<unsigned>(blocks), threads_of<Op>, bytes, exec.gpu->stream>>>(args);
    TERA_LAUNCHED();
}

/// Whether these kernels take it.
bool applies(const Exec& exec, const AttentionSpec& s, const HeadRows<ConstTensor>& q, const HeadRows<ConstTensor>& k,
             const HeadRows<ConstTensor>& v);

/// Backward, whose gradients of queries and of keys and values have a kernel each. Both make the probabilities again:
/// more products than one kernel for all, but nothing is added across blocks.
struct Backward {
    const AttentionSpec& s;
    const AttentionGrads& grads;
    HeadRows<ConstTensor> d_o, q, k, v;
    const AttentionOut& out;
    Tensor delta;  ///< as attention_delta makes it
};
void query_gradients(const Exec& exec, const Backward& b);
void key_gradients(const Exec& exec, const Backward& b);
/// All in one kernel, where something is dropped: what is costs more than the products. What queries get is added up in
/// memory, in any order, so not the same bits every time.
void gradients(const Exec& exec, const Backward& b);

/// Calls f with the element type, the width of heads, and whether anything is dropped.
template <class F>
void dispatch(DType dtype, const AttentionSpec& s, const F& f) {
    const auto with_width = [&](auto zero, auto drops) {
        if (s.K == 64)
            f(zero, std::integral_constant<int, 64>{}, drops);
        else if (s.K == 96)
            f(zero, std::integral_constant<int, 96>{}, drops);
        else
            f(zero, std::integral_constant<int, 128>{}, drops);
    };
    const auto with_type = [&](auto zero) {
        AttentionDropout(s).threshold > 0 ? with_width(zero, std::true_type{}) : with_width(zero, std::false_type{});
    };
    dtype == DType::bf16 ? with_type(bf16_t{}) : with_type(f16_t{});
}

}  // namespace tera::ops::cuda::sm90
