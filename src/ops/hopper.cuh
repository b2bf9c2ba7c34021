// What Hopper's GPUs have for matrix products, in its own words: tiles of memory that a copy engine brings and takes,
// barriers that count their bytes, products of warp groups straight from shared memory.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "ops/cuda_types.cuh"

namespace tera::ops::cuda::hopper {

__device__ inline unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Barriers in shared memory, by their addresses.

__device__ inline void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// The one arrival of a phase, which ends when so many bytes have come too.
__device__ inline void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred there;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
        "@!there bra again;\n"
        "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}
__device__ inline void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// At the barrier at the same place in a block of the cluster.
__device__ inline void barrier_arrive(unsigned barrier, unsigned block) {
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(barrier),
        "r"(block)
        : "memory");
}

// Meetings of threads.

__device__ inline void cluster_meet() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ inline unsigned block_in_cluster() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline void meet(unsigned which, unsigned threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(which), "r"(threads) : "memory");
}
/// Comes without waiting for the others.
__device__ inline void pass(unsigned which, unsigned threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(which), "r"(threads) : "memory");
}
template <int count>
__device__ inline void give_up_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// The copy engine: a box of a matrix, at (column, row).

__device__ inline void load_box(const CUtensorMap& map, unsigned to, unsigned barrier, int column, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row)
        : "memory");
}
/// To the same place of all blocks in the mask.
__device__ inline void load_box_for(std::uint16_t blocks, const CUtensorMap& map, unsigned to, unsigned barrier,
                                    int column, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%3, "
        "%4}], [%2], %5;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(blocks)
        : "memory");
}
__device__ inline void store_box(const CUtensorMap& map, unsigned from, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(from),
                 "r"(column), "r"(row)
                 : "memory");
}
__device__ inline void stores_given() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until what this thread has stored from may be written to again, but for what it has given last.
template <int but_for>
__device__ inline void stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(but_for) : "memory");
}
/// What threads have read and written of shared memory is over for the copy engine, which may take it or write it
/// again. A barrier alone does not say so: it has been seen to fill a slot while a thread still read it.
__device__ inline void over_for_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Fragments of 8 x 8, four at once; a lane gives the address of one row.

__device__ inline void load_fragments(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
__device__ inline void store_fragments(unsigned address, const unsigned (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// Products of a warp group. A lane has rows l / 4 and l / 4 + 8 of its warp's 16, and of each eight columns 2 (l % 4)
// and the next: c[4 b], c[4 b + 1] in the first row, c[4 b + 2], c[4 b + 3] in the second.

/// Of a tile in shared memory whose rows of 128 bytes the copy engine has swizzled. block_step: bytes between blocks of
/// 64 columns, where columns are neighbours (ignored where the inner dimension is).
__device__ inline std::uint64_t tile_at(unsigned address, unsigned block_step = 16) {
    return static_cast<std::uint64_t>((address & 0x3ffff) >> 4) | static_cast<std::uint64_t>(block_step >> 4) << 16 |
           static_cast<std::uint64_t>(1024 >> 4) << 32 | std::uint64_t{1} << 62;
}
__device__ inline void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void products_given() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left>
__device__ inline void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
/// Keeps the compiler from touching c, sums or a first factor, around products that are on their way.
template <int n>
__device__ inline void hold(float (&c)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) asm volatile("" : "+f"(c[i])::"memory");
}
template <int n>
__device__ inline void hold(unsigned (&a)[n][4]) {
#pragma unroll
    for (int i = 0; i < n; ++i) asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
}
// A thread's sums as operands, by their count, and their numbers in the instruction.
#define TERA_SUMS_16(c, i)                                                                                       \
    "+f"((c)[(i) + 0]), "+f"((c)[(i) + 1]), "+f"((c)[(i) + 2]), "+f"((c)[(i) + 3]), "+f"((c)[(i) + 4]),          \
        "+f"((c)[(i) + 5]), "+f"((c)[(i) + 6]), "+f"((c)[(i) + 7]), "+f"((c)[(i) + 8]), "+f"((c)[(i) + 9]),      \
        "+f"((c)[(i) + 10]), "+f"((c)[(i) + 11]), "+f"((c)[(i) + 12]), "+f"((c)[(i) + 13]), "+f"((c)[(i) + 14]), \
        "+f"((c)[(i) + 15])
#define TERA_SUMS_32(c) TERA_SUMS_16(c, 0), TERA_SUMS_16(c, 16)
#define TERA_SUMS_48(c) TERA_SUMS_32(c), TERA_SUMS_16(c, 32)
#define TERA_SUMS_64(c) TERA_SUMS_48(c), TERA_SUMS_16(c, 48)
#define TERA_SUMS_96(c) TERA_SUMS_64(c), TERA_SUMS_16(c, 64), TERA_SUMS_16(c, 80)
#define TERA_NUMBERS_32                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TERA_NUMBERS_48 \
    TERA_NUMBERS_32     \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TERA_NUMBERS_64 \
    TERA_NUMBERS_48     \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TERA_NUMBERS_96                                                                                 \
    TERA_NUMBERS_64                                                                                     \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
    "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TERA_PRODUCT(width, type, numbers, add, factors)                                                             \
    "{\n.reg .pred p;\nsetp.ne.b32 p, " add ", 0;\nwgmma.mma_async.sync.aligned.m64n" width "k16.f32." type "." type \
    " {" numbers "}, " factors ";\n}\n"

/// c [64, width] = or += a [64, 16] b [16, width], the width by what c holds. The inner dimension of b is the slow one
/// where columns are neighbours, that of a where its rows are.
template <bool columns_are_neighbours, class T = __nv_bfloat16, bool rows_are_neighbours = false, int n>
__device__ inline void multiply(float (&c)[n], std::uint64_t a, std::uint64_t b, int add) {
    static_assert(n == 32 || n == 48 || n == 64 || n == 96);
    constexpr bool bf16 = std::is_same_v<T, __nv_bfloat16>;
#define TERA_MULTIPLY(count, width, type, a_, b_, add_, turned_)                                         \
    asm volatile(TERA_PRODUCT(width, type, TERA_NUMBERS_##count, add_, a_ ", " b_ ", p, 1, 1, " turned_) \
                 : TERA_SUMS_##count(c)                                                                  \
                 : "l"(a), "l"(b), "r"(add), "n"(rows_are_neighbours ? 1 : 0), "n"(columns_are_neighbours ? 1 : 0))
#define TERA_MULTIPLY_EITHER(count, width, a_, b_, add_, turned_)   \
    if constexpr (bf16)                                             \
        TERA_MULTIPLY(count, width, "bf16", a_, b_, add_, turned_); \
    else                                                            \
        TERA_MULTIPLY(count, width, "f16", a_, b_, add_, turned_)
    if constexpr (n == 32) {
        TERA_MULTIPLY_EITHER(32, "64", "%32", "%33", "%34", "%35, %36");
    } else if constexpr (n == 48) {
        TERA_MULTIPLY_EITHER(48, "96", "%48", "%49", "%50", "%51, %52");
    } else if constexpr (n == 64) {
        TERA_MULTIPLY_EITHER(64, "128", "%64", "%65", "%66", "%67, %68");
    } else {
        TERA_MULTIPLY_EITHER(96, "192", "%96", "%97", "%98", "%99, %100");
    }
#undef TERA_MULTIPLY_EITHER
#undef TERA_MULTIPLY
}

/// The same with a as a lane has it of sums, two elements in a word.
template <bool columns_are_neighbours, class T, int n>
__device__ inline void multiply(float (&c)[n], const unsigned (&a)[4], std::uint64_t b, int add) {
    static_assert(n == 32 || n == 48 || n == 64);
    constexpr bool bf16 = std::is_same_v<T, __nv_bfloat16>;
#define TERA_MULTIPLY(count, width, type, a_, b_, add_, turned_)                                              \
    asm volatile(TERA_PRODUCT(width, type, TERA_NUMBERS_##count, add_, "{" a_ "}, " b_ ", p, 1, 1, " turned_) \
                 : TERA_SUMS_##count(c)                                                                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(columns_are_neighbours ? 1 : 0))
#define TERA_MULTIPLY_EITHER(count, width, a_, b_, add_, turned_)   \
    if constexpr (bf16)                                             \
        TERA_MULTIPLY(count, width, "bf16", a_, b_, add_, turned_); \
    else                                                            \
        TERA_MULTIPLY(count, width, "f16", a_, b_, add_, turned_)
    if constexpr (n == 32) {
        TERA_MULTIPLY_EITHER(32, "64", "%32, %33, %34, %35", "%36", "%37", "%38");
    } else if constexpr (n == 48) {
        TERA_MULTIPLY_EITHER(48, "96", "%48, %49, %50, %51", "%52", "%53", "%54");
    } else {
        TERA_MULTIPLY_EITHER(64, "128", "%64, %65, %66, %67", "%68", "%69", "%70");
    }
#undef TERA_MULTIPLY_EITHER
#undef TERA_MULTIPLY
}

#undef TERA_PRODUCT
#undef TERA_SUMS_16
#undef TERA_SUMS_32
#undef TERA_SUMS_48
#undef TERA_SUMS_64
#undef TERA_SUMS_96
#undef TERA_NUMBERS_32
#undef TERA_NUMBERS_48
#undef TERA_NUMBERS_64
#undef TERA_NUMBERS_96

}  // namespace tera::ops::cuda::hopper
