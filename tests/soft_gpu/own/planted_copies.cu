// Faults with what copies by itself: cp.async, boxes of the copy engine, barriers in shared memory.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/cuda/tensor_map.h"
#include "ops/hopper.cuh"
#include "soft_gpu/own/device_array.h"
#include "soft_gpu/own/planted_faults.h"

namespace soft_gpu_own {
namespace {

using namespace tera::ops::cuda::hopper;

using Number = std::uint16_t;  // a bf16, by its bits: here only copied

constexpr int two_warps = 64;
constexpr int box_columns = 64, box_rows = 8, box_size = box_columns * box_rows;
constexpr unsigned box_bytes = box_size * sizeof(Number);
constexpr int boxes = 2;  // of the matrix, one below the other

__device__ int thread() { return static_cast<int>(threadIdx.x); }

std::vector<Number> counted(std::size_t n) {
    std::vector<Number> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Number>(i + 1);
    return out;
}

/// What most kernels here have in shared memory.
struct Shared {
    alignas(1024) Number slot[boxes][box_size];
    alignas(8) std::uint64_t full[boxes], empty;

    __device__ unsigned slot_at(int i) { return shared_address(slot[i]); }
    __device__ unsigned full_at(int i) { return shared_address(&full[i]); }
    __device__ unsigned empty_at() { return shared_address(&empty); }

    /// Barriers for one arrival, something in the slots, for everybody and for the copy engine.
    __device__ void begin() {
        for (int i = thread(); i < boxes * box_size; i += static_cast<int>(blockDim.x)) slot[0][i] = 0xabcd;
        if (thread() == 0) {
            for (int i = 0; i < boxes; ++i) barrier_init(full_at(i), 1);
            barrier_init(empty_at(), 32);
        }
        over_for_copies();
        __syncthreads();
    }
    __device__ void fetch(const CUtensorMap& from, int box, int to, int barrier) {
        barrier_expect(full_at(barrier), box_bytes);
        load_box(from, slot_at(to), full_at(barrier), 0, box * box_rows);
    }
    __device__ void show(Number* out, int i) {
        for (int k = thread() % 32; k < box_size; k += 32) out[k] = slot[i][k];
    }
};

using BoxKernel = void (*)(CUtensorMap matrix, Number* out, bool wrong);

/// Two warps, and a matrix of two boxes from which they bring one; whether it has come.
bool brings(BoxKernel kernel, bool wrong, std::size_t which = 0, unsigned blocks = 1) {
    const std::vector<Number> values = counted(boxes * box_size);
    DeviceArray<Number> matrix(values), out(box_size);
    const CUtensorMap map =
        tera::map_of(matrix.data(), box_columns, boxes * box_rows, box_columns, box_columns, box_rows, false);
    kernel<<<blocks, two_warps>>>(map, out.data(), wrong);
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(which * box_size);
    return out.values() == std::vector<Number>(first, first + box_size);
}

/// They write one box of the matrix.
bool takes(BoxKernel kernel, bool wrong) {
    DeviceArray<Number> matrix(box_size), unused(1);
    const CUtensorMap map =
        tera::map_of(matrix.data(), box_columns, box_rows, box_columns, box_columns, box_rows, false);
    kernel<<<1, two_warps>>>(map, unused.data(), wrong);
    return matrix.values() == counted(box_size);
}

// cp.async.

constexpr int piece = 4;  // ints that a thread copies

__global__ void copy_pieces(const int* from, int* out, bool wait, bool meet, int asks) {
    __shared__ alignas(16) int shared[two_warps * piece];
    for (int k = 0; k < piece; ++k) shared[thread() * piece + k] = -1;
    __syncthreads();
    __pipeline_memcpy_async(shared + thread() * piece, from + thread() * piece, piece * sizeof(int));
    __pipeline_commit();
    if (wait) __pipeline_wait_prior(0);
    if (meet) __syncthreads();
    const int other = (thread() + asks) % two_warps;
    for (int k = 0; k < piece; ++k) out[other * piece + k] = shared[other * piece + k];
}
bool copies_pieces(bool wait, bool meet, int asks) {
    std::vector<int> values(two_warps * piece);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    DeviceArray<int> from(values), out(values.size());
    copy_pieces<<<1, two_warps>>>(from.data(), out.data(), wait, meet, asks);
    return out.values() == values;
}
bool piece_read_before_it_came(bool wrong) { return copies_pieces(!wrong, false, 0); }
bool piece_read_after_a_barrier_alone(bool wrong) { return copies_pieces(!wrong, true, 32); }
bool piece_of_another_read_without_a_barrier(bool wrong) { return copies_pieces(true, !wrong, 32); }

/// The first of two groups has come, or both.
__global__ void copy_groups(const int* from, int* out, bool wrong) {
    __shared__ alignas(16) int shared[2][32 * piece];
    for (int i = 0; i < 2; ++i) {
        __pipeline_memcpy_async(shared[i] + thread() * piece, from + (i * 32 + thread()) * piece, 16);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    const int which = wrong ? 1 : 0;
    for (int k = 0; k < piece; ++k) out[thread() * piece + k] = shared[which][thread() * piece + k];
    __pipeline_wait_prior(0);
}
bool group_read_before_it_came(bool wrong) {
    std::vector<int> values(2 * 32 * piece);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    DeviceArray<int> from(values), out(32 * piece);
    copy_groups<<<1, 32>>>(from.data(), out.data(), wrong);
    values.resize(32 * piece);
    return out.values() == values;
}

// Boxes that are brought.

__global__ void read_box(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) shared.fetch(matrix, 0, 0, 0);
    if (!wrong) barrier_wait(shared.full_at(0), 0);
    if (thread() >= 32) shared.show(out, 0);
}
bool box_read_before_it_came(bool wrong) { return brings(read_box, wrong); }

/// A phase that was never begun counts as over.
__global__ void read_box_by_parity(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) shared.fetch(matrix, 0, 0, 0);
    barrier_wait(shared.full_at(0), wrong ? 1 : 0);
    if (thread() >= 32) shared.show(out, 0);
}
bool box_waited_for_with_the_last_parity(bool wrong) { return brings(read_box_by_parity, wrong); }

__global__ void wait_for_next_phase(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) shared.fetch(matrix, 0, 0, 0);
    barrier_wait(shared.full_at(0), 0);
    barrier_wait(shared.full_at(0), wrong ? 1 : 0);
    if (thread() >= 32) shared.show(out, 0);
}
bool phase_that_never_ends(bool wrong) { return brings(wait_for_next_phase, wrong); }

__global__ void wait_for_bytes(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) {
        barrier_expect(shared.full_at(0), box_bytes + (wrong ? 16 : 0));
        load_box(matrix, shared.slot_at(0), shared.full_at(0), 0, 0);
    }
    barrier_wait(shared.full_at(0), 0);
    if (thread() >= 32) shared.show(out, 0);
}
bool more_bytes_than_come(bool wrong) { return brings(wait_for_bytes, wrong); }

/// One slot for two boxes: the second may come when the first has been read, and the copy engine knows it.
__device__ void use_slot_again(const CUtensorMap& matrix, Number* out, bool waits, bool fences) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) {
        shared.fetch(matrix, 0, 0, 0);
        barrier_wait(waits ? shared.empty_at() : shared.full_at(0), 0);
        shared.fetch(matrix, 1, 0, 1);
    } else if (thread() >= 32) {
        barrier_wait(shared.full_at(0), 0);
        shared.show(out, 0);
        if (fences) over_for_copies();
        barrier_arrive(shared.empty_at());
        barrier_wait(shared.full_at(1), 0);
        shared.show(out, 0);
    }
}
__global__ void use_slot_too_early(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    use_slot_again(matrix, out, !wrong, true);
}
bool slot_filled_before_it_was_empty(bool wrong) { return brings(use_slot_too_early, wrong, 1); }

__global__ void use_slot_unfenced(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    use_slot_again(matrix, out, true, !wrong);
}
bool slot_filled_over_what_was_not_fenced(bool wrong) { return brings(use_slot_unfenced, wrong, 1); }

/// By a barrier of its own: made for so many arrivals, or not at all.
__device__ void read_by(const CUtensorMap& matrix, Number* out, int made_for, int more_arrivals) {
    __shared__ Shared shared;
    __shared__ std::uint64_t barrier;
    const unsigned at = shared_address(&barrier);
    if (thread() == 0 && made_for > 0) barrier_init(at, static_cast<unsigned>(made_for));
    shared.begin();
    if (thread() == 0) {
        barrier_expect(at, box_bytes);
        for (int i = 0; i < more_arrivals; ++i) barrier_arrive(at);
        load_box(matrix, shared.slot_at(0), at, 0, 0);
    }
    __syncthreads();
    barrier_wait(at, 0);
    if (thread() >= 32) shared.show(out, 0);
}
__global__ void arrive_twice(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    read_by(matrix, out, wrong ? 1 : 2, 1);
}
bool more_arrivals_than_made_for(bool wrong) { return brings(arrive_twice, wrong); }

__global__ void leave_out_init(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    read_by(matrix, out, wrong ? 0 : 1, 0);
}
bool barrier_that_nobody_made(bool wrong) { return brings(leave_out_init, wrong); }

__global__ void __cluster_dims__(2, 1, 1)
    read_shared_box(const __grid_constant__ CUtensorMap matrix, Number* out, bool wrong) {
    __shared__ Shared shared;
    shared.begin();
    cluster_meet();
    if (thread() == 0) barrier_expect(shared.full_at(0), box_bytes);
    cluster_meet();
    if (thread() == 0 && block_in_cluster() == 0)
        load_box_for(3, matrix, shared.slot_at(0), shared.full_at(0), 0, box_rows);
    if (!wrong || block_in_cluster() == 0) barrier_wait(shared.full_at(0), 0);
    if (thread() >= 32 && block_in_cluster() == 1) shared.show(out, 0);
    cluster_meet();
}
bool box_for_two_blocks_read_before_it_came(bool wrong) { return brings(read_shared_box, wrong, 1, 2); }

/// Behind the matrix are zeros.
__global__ void read_box_at_the_edge(const __grid_constant__ CUtensorMap matrix, Number* out) {
    __shared__ Shared shared;
    shared.begin();
    if (thread() == 0) {
        barrier_expect(shared.full_at(0), box_bytes);
        load_box(matrix, shared.slot_at(0), shared.full_at(0), 8, boxes * box_rows - 1);
    }
    barrier_wait(shared.full_at(0), 0);
    if (thread() < 32) shared.show(out, 0);
}
bool box_of_what_nobody_wrote(bool wrong) {
    const std::vector<Number> values = counted(boxes * box_size);
    DeviceArray<Number> matrix(values), empty(values.size()), out(box_size);
    const CUtensorMap map = tera::map_of(wrong ? empty.data() : matrix.data(), box_columns, boxes * box_rows,
                                         box_columns, box_columns, box_rows, false);
    read_box_at_the_edge<<<1, two_warps>>>(map, out.data());
    std::vector<Number> expected(box_size, 0);
    std::copy_n(values.end() - box_columns + 8, box_columns - 8, expected.begin());
    return out.values() == expected;
}

// Boxes that are taken.

struct BoxToTake {
    alignas(128) Number box[box_size];
    __device__ void fill(int added) {
        for (int i = thread(); i < box_size; i += two_warps) box[i] = static_cast<Number>(i + added);
    }
    __device__ unsigned at() { return shared_address(box); }
};

__global__ void store_box_after(const __grid_constant__ CUtensorMap matrix, bool fence, bool meet) {
    __shared__ BoxToTake shared;
    shared.fill(0);
    over_for_copies();
    __syncthreads();
    shared.fill(1);
    if (fence) over_for_copies();
    if (meet) __syncthreads();
    if (thread() == 0) {
        store_box(matrix, shared.at(), 0, 0);
        stores_given();
        stores_read<0>();
    }
}
bool stores(bool fence, bool meet) {
    DeviceArray<Number> matrix(box_size);
    const CUtensorMap map =
        tera::map_of(matrix.data(), box_columns, box_rows, box_columns, box_columns, box_rows, false);
    store_box_after<<<1, two_warps>>>(map, fence, meet);
    return matrix.values() == counted(box_size);
}
bool box_taken_without_a_fence(bool wrong) { return stores(!wrong, true); }
bool box_taken_without_a_barrier(bool wrong) { return stores(true, !wrong); }

__global__ void overwrite_stored(const __grid_constant__ CUtensorMap matrix, Number*, bool wrong) {
    __shared__ BoxToTake shared;
    shared.fill(1);
    over_for_copies();
    __syncthreads();
    if (thread() == 0) {
        store_box(matrix, shared.at(), 0, 0);
        stores_given();
        if (!wrong) stores_read<0>();
    }
    __syncthreads();
    shared.fill(2);
    if (thread() == 0) stores_read<0>();
}
bool box_overwritten_while_it_is_taken(bool wrong) { return takes(overwrite_stored, wrong); }

/// The last group but one has been read, or all.
__global__ void overwrite_last_stored(const __grid_constant__ CUtensorMap matrix, Number*, bool wrong) {
    __shared__ BoxToTake first, second;
    first.fill(0);
    second.fill(1);
    over_for_copies();
    __syncthreads();
    if (thread() == 0) {
        store_box(matrix, first.at(), 0, 0);
        stores_given();
        store_box(matrix, second.at(), 0, 0);
        stores_given();
        stores_read<1>();
    }
    __syncthreads();
    if (wrong)
        second.fill(2);
    else
        first.fill(2);
    if (thread() == 0) stores_read<0>();
}
bool last_box_overwritten_while_it_is_taken(bool wrong) { return takes(overwrite_last_stored, wrong); }

}  // namespace

std::vector<Plant> plants_of_copies() {
    return {{"piece_read_before_it_came", piece_read_before_it_came, "read of what is being written"},
            {"piece_read_after_a_barrier_alone", piece_read_after_a_barrier_alone, "read of what is being written"},
            {"piece_of_another_read_without_a_barrier", piece_of_another_read_without_a_barrier, "a race"},
            {"group_read_before_it_came", group_read_before_it_came, "read of what is being written"},
            {"box_read_before_it_came", box_read_before_it_came, "a race"},
            {"box_waited_for_with_the_last_parity", box_waited_for_with_the_last_parity, "a race|nobody can go on"},
            {"phase_that_never_ends", phase_that_never_ends, "nobody can go on"},
            {"more_bytes_than_come", more_bytes_than_come, "nobody can go on"},
            {"slot_filled_before_it_was_empty", slot_filled_before_it_was_empty, "a race"},
            {"slot_filled_over_what_was_not_fenced", slot_filled_over_what_was_not_fenced, "without a fence"},
            {"more_arrivals_than_made_for", more_arrivals_than_made_for, "more arrivals"},
            {"barrier_that_nobody_made", barrier_that_nobody_made, "nobody has made"},
            {"box_for_two_blocks_read_before_it_came", box_for_two_blocks_read_before_it_came, "a race"},
            {"box_of_what_nobody_wrote", box_of_what_nobody_wrote, "never written"},
            {"box_taken_without_a_fence", box_taken_without_a_fence, "without a fence"},
            {"box_taken_without_a_barrier", box_taken_without_a_barrier, "a race"},
            {"box_overwritten_while_it_is_taken", box_overwritten_while_it_is_taken, "write over what is being read"},
            {"last_box_overwritten_while_it_is_taken", last_box_overwritten_while_it_is_taken,
             "write over what is being read"}};
}

}  // namespace soft_gpu_own
