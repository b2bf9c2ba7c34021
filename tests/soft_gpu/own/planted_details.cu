// Faults that need a closer look: which lane has waited, which of several copies was waited for, what a barrier is made
// of.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/cuda/tensor_map.h"
#include "ops/hopper.cuh"
#include "soft_gpu/own/device_array.h"
#include "soft_gpu/own/planted_faults.h"

namespace soft_gpu_own {
namespace {

using namespace tera::ops::cuda::hopper;

using Number = std::uint16_t;

constexpr int box_columns = 64, box_rows = 8, box_size = box_columns * box_rows;
constexpr unsigned box_bytes = box_size * sizeof(Number);

__device__ int thread() { return static_cast<int>(threadIdx.x); }

using BoxKernel = void (*)(CUtensorMap matrix, Number* out, bool wrong);

/// One warp, unless there are to be more; whether all it has brought is sevens.
bool brings(BoxKernel kernel, bool wrong, int threads = 32) {
    DeviceArray<Number> matrix(std::vector<Number>(box_size, 7)), out(box_size);
    const CUtensorMap map =
        tera::map_of(matrix.data(), box_columns, box_rows, box_columns, box_columns, box_rows, false);
    kernel<<<1, threads>>>(map, out.data(), wrong);
    return out.values() == std::vector<Number>(box_size, 7);
}

struct Shared {
    alignas(1024) Number slot[2][box_size];
    alignas(8) std::uint64_t full[2], spare;

    __device__ unsigned full_at(int i) { return shared_address(&full[i]); }
    __device__ void begin() {
        if (thread() == 0)
            for (int i = 0; i < 2; ++i) barrier_init(full_at(i), 1);
        over_for_copies();
        __syncthreads();
    }
    __device__ void fetch(const CUtensorMap& from, int i) {
        barrier_expect(full_at(i), box_bytes);
        load_box(from, shared_address(slot[i]), full_at(i), 0, 0);
    }
    __device__ void show(Number* out, int i) {
        for (int k = thread() % 32; k < box_size; k += 32) out[k] = slot[i][k];
    }
};

__global__ void read_one_wait_for_other(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0)
        for (int i = 0; i < 2; ++i) shared.fetch(matrix, i);
    barrier_wait(shared.full_at(wrong ? 1 : 0), 0);
    shared.show(out, 0);
}
bool another_box_waited_for(bool wrong) { return brings(read_one_wait_for_other, wrong); }

__global__ void one_lane_waits(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) {
        shared.fetch(matrix, 0);
        barrier_wait(shared.full_at(0), 0);
    }
    if (!wrong) __syncwarp();
    shared.show(out, 0);
}
bool box_waited_for_by_another_lane(bool wrong) { return brings(one_lane_waits, wrong); }

__global__ void init_without_meeting(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    if (thread() == 0) {
        barrier_init(shared.full_at(0), 1);
        over_for_copies();
    }
    if (!wrong) __syncthreads();
    if (thread() == 32) shared.fetch(matrix, 0);
    if (thread() >= 32) {
        barrier_wait(shared.full_at(0), 0);
        shared.show(out, 0);
    }
}
bool barrier_used_beside_its_making(bool wrong) { return brings(init_without_meeting, wrong, 64); }

__global__ void write_over_barrier(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    volatile std::uint64_t* const at = wrong ? &shared.full[0] : &shared.spare;
    if (thread() == 0) *at = 0;
    __syncthreads();
    if (thread() == 0) shared.fetch(matrix, 0);
    barrier_wait(shared.full_at(0), 0);
    shared.show(out, 0);
}
bool barrier_written_over(bool wrong) { return brings(write_over_barrier, wrong); }

using Kernel = void (*)(const int* from, int* out, bool wrong);

bool mirrors(Kernel kernel, bool wrong, int blocks = 1) {
    std::vector<int> values(128);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    DeviceArray<int> from(values), out(32);
    kernel<<<blocks, 32>>>(from.data(), out.data(), wrong);
    values = out.values();
    for (int i = 0; i < 32; ++i)
        if (values[static_cast<std::size_t>(i)] != 31 - i) return false;
    return true;
}

__global__ void copy_for_another_lane(const int* from, int* out, bool wrong) {
    __shared__ alignas(16) int shared[128];
    __pipeline_memcpy_async(shared + thread() * 4, from + thread() * 4, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (!wrong) __syncwarp();
    out[thread()] = shared[31 - thread()];
}
bool piece_of_another_lane(bool wrong) { return mirrors(copy_for_another_lane, wrong); }

/// A lane's arrival at a barrier is no meeting of the warp.
__global__ void arrive_in_between(const int* from, int* out, bool wrong) {
    __shared__ int shared[32];
    __shared__ std::uint64_t barrier;
    if (thread() == 0) barrier_init(shared_address(&barrier), 2);
    __syncwarp();
    shared[thread()] = from[thread()];
    if (!wrong) __syncwarp();
    if (thread() == 0) barrier_arrive(shared_address(&barrier));
    out[thread()] = shared[31 - thread()];
}
bool race_of_lanes_around_an_arrival(bool wrong) { return mirrors(arrive_in_between, wrong); }

__global__ void name_others(const int* from, int* out, bool wrong) {
    const unsigned mask = wrong ? 0x0000ffffu : 0xffffffffu;
    out[thread()] = __shfl_xor_sync(mask, from[thread()], 31);
}
bool lane_not_in_its_own_mask(bool wrong) { return mirrors(name_others, wrong); }

/// The first block must not end before the other has told it.
__global__ void __cluster_dims__(2, 1, 1) leave_early(const int* from, int* out, bool wrong) {
    __shared__ std::uint64_t barrier;
    const unsigned at = shared_address(&barrier);
    if (thread() == 0) barrier_init(at, 1);
    cluster_meet();
    if (block_in_cluster() == 0) out[thread()] = from[31 - thread()];
    if (block_in_cluster() == 1 && thread() == 0) barrier_arrive(at, 0);
    if (!wrong) cluster_meet();
}
bool block_that_has_left(bool wrong) { return mirrors(leave_early, wrong, 2); }

/// That each lane has its own byte is no fault.
__global__ void write_bytes(const int* from, int* out, bool wrong) {
    __shared__ unsigned char bytes[32];
    bytes[thread()] = static_cast<unsigned char>(from[thread()]);
    if (!wrong) __syncwarp();
    out[thread()] = bytes[31 - thread()];
}
bool race_in_bytes(bool wrong) { return mirrors(write_bytes, wrong); }

/// What threads have written last is not the copy engine's to write over without a fence.
__global__ void write_then_load(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    for (int k = thread(); k < box_size; k += 32) shared.slot[0][k] = 1;
    if (!wrong) over_for_copies();
    __syncthreads();
    if (thread() == 0) shared.fetch(matrix, 0);
    barrier_wait(shared.full_at(0), 0);
    shared.show(out, 0);
}
bool box_over_what_was_not_fenced(bool wrong) { return brings(write_then_load, wrong); }

/// Lanes have written, one of them tells.
__global__ void one_lane_tells(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() < 32) {
        for (int k = thread(); k < box_size; k += 32) shared.slot[0][k] = 7;
        if (!wrong) __syncwarp();
        if (thread() == 0) barrier_arrive(shared.full_at(0));
    } else {
        barrier_wait(shared.full_at(0), 0);
        shared.show(out, 0);
    }
}
bool told_by_one_lane_for_all(bool wrong) { return brings(one_lane_tells, wrong, 64); }

/// Written by copies of threads, which are theirs: the copy engine needs a fence.
__global__ void copy_then_store(const __grid_constant__ CUtensorMap matrix, const int* from, bool wrong) {
    __shared__ alignas(128) int box[box_bytes / 4];
    for (int i = 0; i < 2; ++i)
        __pipeline_memcpy_async(box + (i * 32 + thread()) * 4, from + (i * 32 + thread()) * 4, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (!wrong) over_for_copies();
    __syncthreads();
    if (thread() == 0) {
        store_box(matrix, shared_address(box), 0, 0);
        stores_given();
        stores_read<0>();
    }
}
bool piece_taken_without_a_fence(bool wrong) {
    const std::vector<int> values(box_bytes / 4, 5);
    DeviceArray<int> from(values), to(box_bytes / 4);
    const CUtensorMap map = tera::map_of(to.data(), box_columns, box_rows, box_columns, box_columns, box_rows, false);
    copy_then_store<<<1, 32>>>(map, from.data(), wrong);
    return to.values() == values;
}

}  // namespace

std::vector<Plant> plants_in_detail() {
    return {{"another_box_waited_for", another_box_waited_for, "a race"},
            {"box_waited_for_by_another_lane", box_waited_for_by_another_lane, "a race"},
            {"barrier_used_beside_its_making", barrier_used_beside_its_making, "barrier"},
            {"barrier_written_over", barrier_written_over, "barrier"},
            {"piece_of_another_lane", piece_of_another_lane, "a race"},
            {"race_of_lanes_around_an_arrival", race_of_lanes_around_an_arrival, "a race"},
            {"lane_not_in_its_own_mask", lane_not_in_its_own_mask, "lane"},
            {"block_that_has_left", block_that_has_left, "has ended"},
            {"race_in_bytes", race_in_bytes, "a race"},
            {"box_over_what_was_not_fenced", box_over_what_was_not_fenced, "without a fence"},
            {"told_by_one_lane_for_all", told_by_one_lane_for_all, "a race"},
            {"piece_taken_without_a_fence", piece_taken_without_a_fence, "without a fence"}};
}

}  // namespace soft_gpu_own
