// Products of a warp group, and faults with their factors.
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "core/cuda/tensor_map.h"
#include "ops/hopper.cuh"
#include "soft_gpu/own/device_array.h"
#include "soft_gpu/own/planted_faults.h"

namespace soft_gpu_own {
namespace {

using namespace tera::ops::cuda::hopper;

using Number = std::uint16_t;  // a bf16, by its bits

constexpr int rows = 64, columns = 128, depth = 64, group = 128;
constexpr unsigned a_bytes = rows * depth * 2, b_bytes = depth * columns * 2;
constexpr unsigned block_bytes = depth * 128;  // of 64 columns, where they are neighbours
constexpr std::size_t shared_bytes = 1024 + a_bytes + b_bytes + 8;
constexpr Number one = 0x3f80;

__device__ int thread() { return static_cast<int>(threadIdx.x); }

/// Both factors, one behind the other, and a barrier.
struct Factors {
    unsigned a, b, barrier;
    Number* numbers;
    __device__ explicit Factors(unsigned char* memory) {
        a = (shared_address(memory) + 1023) & ~1023u;
        b = a + a_bytes;
        barrier = b + b_bytes;
        numbers = reinterpret_cast<Number*>(memory + (a - shared_address(memory)));
    }
    __device__ void fill(Number x) {
        for (int i = thread(); i < static_cast<int>(a_bytes + b_bytes) / 2; i += static_cast<int>(blockDim.x))
            numbers[i] = x;
    }
};

template <bool columns_are_neighbours>
__device__ void multiply_all(float (&c)[64], const Factors& f) {
    constexpr unsigned step = columns_are_neighbours ? 16 * 128 : 16 * 2;  // bytes to the next 16 of b
    const std::uint64_t a = tile_at(f.a), b = tile_at(f.b, columns_are_neighbours ? block_bytes : 16);
    hold(c);
    products_begin();
#pragma unroll
    for (int k = 0; k < depth / 16; ++k) multiply<columns_are_neighbours>(c, a + 2 * k, b + k * (step >> 4), k > 0);
    products_given();
}

__device__ void show(float* out, const float (&c)[64]) {
    const int row = thread() / 32 * 16 + thread() % 32 / 4, column = 2 * (thread() % 4);
    for (int i = 0; i < 64; ++i) out[(row + i % 4 / 2 * 8) * columns + i / 4 * 8 + column + i % 2] = c[i];
}

template <bool columns_are_neighbours>
__global__ void product_of(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* out,
                           bool overwritten_at_once, bool all_wait) {
    extern __shared__ unsigned char memory[];
    Factors f(memory);
    if (thread() == 0) barrier_init(f.barrier, 1);
    over_for_copies();
    __syncthreads();
    if (thread() == 0) {
        barrier_expect(f.barrier, a_bytes + b_bytes);
        load_box(a, f.a, f.barrier, 0, 0);
        load_box(b, f.b, f.barrier, 0, 0);
        if (columns_are_neighbours) load_box(b, f.b + block_bytes, f.barrier, 64, 0);
    }
    if (all_wait || thread() < group - 32) barrier_wait(f.barrier, 0);
    float c[64] = {};
    multiply_all<columns_are_neighbours>(c, f);
    if (!overwritten_at_once) products_wait<0>();
    f.fill(0);
    products_wait<0>();
    hold(c);
    show(out, c);
}

std::vector<Number> as_bf16(const std::vector<float>& values) {
    std::vector<Number> out;
    for (const float x : values) out.push_back(static_cast<Number>(std::bit_cast<std::uint32_t>(x) >> 16));
    return out;
}

std::vector<float> run_product(bool columns_are_neighbours, const std::vector<float>& a, const std::vector<float>& b,
                               bool overwritten_at_once, bool all_wait) {
    std::vector<float> lying(b.size());
    for (std::size_t k = 0; k < depth; ++k)
        for (std::size_t n = 0; n < columns; ++n) lying[n * depth + k] = b[k * columns + n];
    DeviceArray<Number> at_a(as_bf16(a)), at_b(as_bf16(columns_are_neighbours ? b : lying));
    DeviceArray<float> out(rows * columns);
    const CUtensorMap of_a = tera::map_of(at_a.data(), depth, rows, depth, 64, rows, true);
    if (columns_are_neighbours) {
        const CUtensorMap of_b = tera::map_of(at_b.data(), columns, depth, columns, 64, depth, true);
        product_of<true><<<1, group, shared_bytes>>>(of_a, of_b, out.data(), overwritten_at_once, all_wait);
    } else {
        const CUtensorMap of_b = tera::map_of(at_b.data(), depth, columns, depth, 64, columns, true);
        product_of<false><<<1, group, shared_bytes>>>(of_a, of_b, out.data(), overwritten_at_once, all_wait);
    }
    return out.values();
}

bool all_are(const std::vector<float>& values, float x) {
    for (const float v : values)
        if (v != x) return false;
    return true;
}

template <bool columns_are_neighbours>
bool factors_overwritten_before_the_end(bool wrong) {
    const std::vector<float> a(rows * depth, 1), b(depth * columns, 1);
    return all_are(run_product(columns_are_neighbours, a, b, wrong, true), depth);
}

/// One warp of the four does not wait for the copy.
bool factors_not_waited_for(bool wrong) {
    const std::vector<float> a(rows * depth, 1), b(depth * columns, 1);
    return all_are(run_product(false, a, b, false, !wrong), depth);
}

/// Of ones that threads have written.
__global__ void product_of_ones(float* out, bool fence, bool waits = true) {
    extern __shared__ unsigned char memory[];
    Factors f(memory);
    f.fill(one);
    if (fence) over_for_copies();
    __syncthreads();
    float c[64] = {};
    multiply_all<false>(c, f);
    if (waits) products_wait<0>();
    hold(c);
    show(out, c);
}
/// Two, and the second is not waited for.
__global__ void two_products_of_ones(float* first, float* second) {
    extern __shared__ unsigned char memory[];
    Factors f(memory);
    f.fill(one);
    over_for_copies();
    __syncthreads();
    float c[64] = {}, d[64] = {};
    multiply_all<false>(c, f);
    multiply_all<false>(d, f);
    products_wait<1>();
    show(first, c);
    show(second, d);
}
bool factors_written_without_a_fence(bool wrong) {
    DeviceArray<float> out(rows * columns);
    product_of_ones<<<1, group, shared_bytes>>>(out.data(), !wrong);
    return all_are(out.values(), depth);
}
bool product_of_half_a_group(bool wrong) {
    DeviceArray<float> out(rows * columns);
    product_of_ones<<<1, wrong ? group / 2 : group, shared_bytes>>>(out.data(), true);
    return all_are(out.values(), depth);
}

}  // namespace

std::vector<float> product(bool columns_are_neighbours, const std::vector<float>& a, const std::vector<float>& b) {
    return run_product(columns_are_neighbours, a, b, false, true);
}

std::vector<float> product_of_ones(bool waits) {
    DeviceArray<float> out(rows * columns);
    product_of_ones<<<1, group, shared_bytes>>>(out.data(), true, waits);
    return out.values();
}

std::vector<std::vector<float>> two_products_of_ones() {
    DeviceArray<float> first(rows * columns), second(rows * columns);
    two_products_of_ones<<<1, group, shared_bytes>>>(first.data(), second.data());
    return {first.values(), second.values()};
}

std::vector<Plant> plants_of_products() {
    return {{"factors_overwritten_before_the_end", factors_overwritten_before_the_end<false>,
             "write over what is being read"},
            {"neighbouring_columns_overwritten_before_the_end", factors_overwritten_before_the_end<true>,
             "write over what is being read"},
            {"factors_not_waited_for", factors_not_waited_for, "a race|never written"},
            {"factors_written_without_a_fence", factors_written_without_a_fence, "without a fence"},
            {"product_of_half_a_group", product_of_half_a_group, "not whole"}};
}

}  // namespace soft_gpu_own
