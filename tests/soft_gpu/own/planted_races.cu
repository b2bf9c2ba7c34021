// Faults between threads. Shared memory is filled first, so that the fault is the same in whatever order warps come.
#include <cuda_runtime.h>

#include "ops/hopper.cuh"
#include "soft_gpu/own/device_array.h"
#include "soft_gpu/own/planted_faults.h"

namespace soft_gpu_own {
namespace {

namespace hopper = tera::ops::cuda::hopper;

constexpr unsigned full_warp = 0xffffffffu;
constexpr int two_warps = 64;

using Kernel = void (*)(int* out, bool wrong);

/// One value of each thread.
std::vector<int> run_threads(Kernel kernel, int threads, bool wrong) {
    DeviceArray<int> out(static_cast<std::size_t>(threads));
    kernel<<<1, threads>>>(out.data(), wrong);
    return out.values();
}

template <class F>
bool are(const std::vector<int>& values, F expected) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != expected(static_cast<int>(i))) return false;
    return true;
}
bool are_mirrored(const std::vector<int>& values) {
    const int last = static_cast<int>(values.size()) - 1;
    return are(values, [last](int i) { return last - i; });
}

__device__ int thread() { return static_cast<int>(threadIdx.x); }

__global__ void mirror_warps(int* out, bool wrong) {
    __shared__ int shared[two_warps];
    shared[thread()] = -1;
    __syncthreads();
    shared[thread()] = thread();
    if (!wrong) __syncthreads();
    out[thread()] = shared[two_warps - 1 - thread()];
}
bool race_between_warps(bool wrong) { return are_mirrored(run_threads(mirror_warps, two_warps, wrong)); }

__global__ void mirror_lanes(int* out, bool wrong) {
    __shared__ int shared[32];
    shared[thread()] = thread();
    if (!wrong) __syncwarp();
    out[thread()] = shared[31 - thread()];
}
bool race_between_lanes(bool wrong) { return are_mirrored(run_threads(mirror_lanes, 32, wrong)); }

__global__ void mirror_warps_in_place(int* out, bool wrong) {
    __shared__ int shared[two_warps];
    shared[thread()] = thread();
    __syncthreads();
    const int other = shared[two_warps - 1 - thread()];
    if (!wrong) __syncthreads();
    shared[thread()] = other;
    __syncthreads();
    out[thread()] = shared[thread()];
}
bool write_after_read(bool wrong) { return are_mirrored(run_threads(mirror_warps_in_place, two_warps, wrong)); }

__global__ void mirror_lanes_in_place(int* out, bool wrong) {
    __shared__ int shared[32];
    shared[thread()] = thread();
    __syncwarp();
    const int other = shared[31 - thread()];
    if (!wrong) __syncwarp();
    shared[thread()] = other;
    __syncwarp();
    out[thread()] = shared[thread()];
}
bool write_after_read_of_a_lane(bool wrong) { return are_mirrored(run_threads(mirror_lanes_in_place, 32, wrong)); }

/// Of sixteen warps that read one place one does not tell the first, which writes it.
__global__ void write_after_reads_of_all(int* out, bool wrong) {
    __shared__ int shared;
    if (thread() == 0) shared = 5;
    __syncthreads();
    const unsigned coming = wrong ? 512 - 32 : 512;
    out[thread()] = shared;
    if (thread() < 32) {
        hopper::meet(1, coming);
        if (thread() == 0) shared = 6;
    } else if (thread() < 512 - 32 || !wrong) {
        hopper::pass(1, coming);
    }
}
bool write_after_many_reads(bool wrong) {
    return are(run_threads(write_after_reads_of_all, 512, wrong), [](int) { return 5; });
}

__global__ void write_by_warps(int* out, bool wrong) {
    __shared__ int shared[two_warps];
    shared[thread()] = thread();
    __syncthreads();
    shared[wrong ? thread() % 32 : thread()] = two_warps - 1 - thread();
    __syncthreads();
    out[thread()] = shared[thread()];
}
bool two_warps_write_one_place(bool wrong) { return are_mirrored(run_threads(write_by_warps, two_warps, wrong)); }

__global__ void write_by_lanes(int* out, bool wrong) {
    __shared__ int shared[32];
    shared[thread()] = thread();
    __syncwarp();
    shared[wrong ? thread() / 2 : thread()] = 31 - thread();
    __syncwarp();
    out[thread()] = shared[thread()];
}
bool two_lanes_write_one_place(bool wrong) { return are_mirrored(run_threads(write_by_lanes, 32, wrong)); }

__global__ void extremes(int* out, bool wrong) {
    __shared__ int range[2];
    if (thread() == 0) range[0] = 1000, range[1] = -1000;
    __syncthreads();
    const int x = (thread() * 37 + 11) % 101 - 50;
    atomicMin(&range[0], x);
    atomicMax(&range[1], x);
    if (!wrong) __syncthreads();
    out[thread()] = 1000 * range[0] + range[1];
}
bool read_beside_atomics(bool wrong) {
    return are(run_threads(extremes, 128, wrong), [](int) { return 1000 * -50 + 50; });
}

__global__ void least(int* out, bool wrong) {
    __shared__ int low;
    if (thread() == 0) low = 1000;
    __syncthreads();
    if (wrong)
        low = min(low, thread());
    else
        atomicMin(&low, thread());
    __syncthreads();
    out[thread()] = low;
}
bool extreme_without_atomics(bool wrong) {
    return are(run_threads(least, two_warps, wrong), [](int) { return 0; });
}

__global__ void meet_for_64(int* out, bool wrong) {
    if (thread() < 32 || !wrong) hopper::meet(1, 64);
    out[thread()] = thread();
}
bool too_few_at_a_barrier(bool wrong) {
    return are(run_threads(meet_for_64, two_warps, wrong), [](int i) { return i; });
}

__global__ void meet_for_others(int* out, bool wrong) {
    hopper::meet(1, wrong && thread() < 32 ? 96 : 64);
    out[thread()] = thread();
}
bool different_numbers_at_a_barrier(bool wrong) {
    return are(run_threads(meet_for_others, two_warps, wrong), [](int i) { return i; });
}

/// One warp tells, and goes on; the other waits for it.
__global__ void pass_on(int* out, bool wrong) {
    __shared__ int shared[32];
    if (thread() < 32) shared[thread()] = -1;
    __syncthreads();
    if (thread() < 32) {
        shared[thread()] = thread();
        hopper::pass(1, 64);
    } else {
        if (wrong)
            hopper::pass(1, 64);
        else
            hopper::meet(1, 64);
        out[thread() - 32] = shared[63 - thread()];
    }
}
bool barrier_not_waited_for(bool wrong) {
    std::vector<int> values = run_threads(pass_on, two_warps, wrong);
    values.resize(32);
    return are_mirrored(values);
}

__global__ void exchange_halves(int* out, bool wrong) {
    int x = thread();
    if (thread() < 16 || !wrong) x = __shfl_xor_sync(full_warp, x, 31);
    out[thread()] = x;
}
bool lane_asked_that_has_left(bool wrong) { return are_mirrored(run_threads(exchange_halves, 32, wrong)); }

/// Halves go different ways; each may only name itself.
__global__ void exchange_apart(int* out, bool wrong) {
    int x = thread();
    if (thread() < 16)
        x = __shfl_xor_sync(wrong ? full_warp : 0x0000ffffu, x, 1) + 100;
    else
        x = __shfl_xor_sync(wrong ? full_warp : 0xffff0000u, x, 2) + 200;
    out[thread()] = x;
}
bool lanes_missing_in_a_shuffle(bool wrong) {
    return are(run_threads(exchange_apart, 32, wrong), [](int i) { return i < 16 ? (i ^ 1) + 100 : (i ^ 2) + 200; });
}

__global__ void meet_in_half_a_warp(int* out, bool wrong) {
    if (thread() < 16) __syncwarp(wrong ? full_warp : 0x0000ffffu);
    out[thread()] = __shfl_xor_sync(full_warp, thread(), 31);
}
bool lanes_missing_in_a_warps_barrier(bool wrong) { return are_mirrored(run_threads(meet_in_half_a_warp, 32, wrong)); }

}  // namespace

std::vector<Plant> plants_between_threads() {
    return {{"race_between_warps", race_between_warps, "a race"},
            {"race_between_lanes", race_between_lanes, "read of what is being written"},
            {"write_after_read", write_after_read, "a race"},
            {"write_after_read_of_a_lane", write_after_read_of_a_lane, "write over what is being read"},
            {"write_after_many_reads", write_after_many_reads, "a race"},
            {"two_warps_write_one_place", two_warps_write_one_place, "write over a write"},
            {"two_lanes_write_one_place", two_lanes_write_one_place, "write over a write"},
            {"read_beside_atomics", read_beside_atomics, "a race"},
            {"extreme_without_atomics", extreme_without_atomics, "a race"},
            {"too_few_at_a_barrier", too_few_at_a_barrier, "nobody can go on"},
            {"different_numbers_at_a_barrier", different_numbers_at_a_barrier, "different numbers"},
            {"barrier_not_waited_for", barrier_not_waited_for, "a race"},
            {"lane_asked_that_has_left", lane_asked_that_has_left, "one that is not there"},
            {"lanes_missing_in_a_shuffle", lanes_missing_in_a_shuffle, "nobody can go on"},
            {"lanes_missing_in_a_warps_barrier", lanes_missing_in_a_warps_barrier, "nobody can go on"}};
}

}  // namespace soft_gpu_own
