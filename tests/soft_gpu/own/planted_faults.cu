// Faults in memory, and wrong launches.
#include <cuda_runtime.h>

#include "soft_gpu/own/device_array.h"
#include "soft_gpu/own/planted_faults.h"

namespace soft_gpu_own {
namespace {

// What is wrong comes from the host: an index, a pointer, or what it has left out.

__global__ void write_at(float* to, int i) { to[i] = 1; }
__global__ void read_at(const float* from, int i, float* out) { *out = from[i]; }
__global__ void read_four_at(const float* from, int i, float* out) {
    const float4 x = *reinterpret_cast<const float4*>(from + i);
    *out = x.x + x.y + x.z + x.w;
}

bool write_behind_the_end(bool wrong) {
    DeviceArray<float> x(32);
    write_at<<<1, 1>>>(x.data(), wrong ? 32 : 31);
    return x.values()[31] == 1;
}

bool reads(const float* from, int i) {
    DeviceArray<float> out(1);
    read_at<<<1, 1>>>(from, i, out.data());
    return out.values()[0] == 1;
}

bool read_behind_the_end(bool wrong) {
    DeviceArray<float> x(std::vector<float>(32, 1));
    return reads(x.data(), wrong ? 32 : 31);
}

bool read_before_the_start(bool wrong) {
    DeviceArray<float> x(std::vector<float>(32, 1));
    return reads(x.data(), wrong ? -1 : 0);
}

bool read_through_null(bool wrong) {
    DeviceArray<float> x(std::vector<float>(32, 1));
    return reads(wrong ? nullptr : x.data(), 3);
}

bool read_of_what_nobody_wrote(bool wrong) {
    DeviceArray<float> x(32);
    if (!wrong) write_at<<<1, 1>>>(x.data(), 5);
    return reads(x.data(), 5);
}

/// All but the last byte.
bool read_of_what_was_half_written(bool wrong) {
    DeviceArray<float> x(32), out(1);
    (void)cudaMemset(x.data(), 0, 32 * sizeof(float) - (wrong ? 1 : 0));
    read_at<<<1, 1>>>(x.data(), 31, out.data());
    return out.values()[0] == 0;
}

bool read_of_four_between_fours(bool wrong) {
    DeviceArray<float> x(std::vector<float>(32, 0.25f)), out(1);
    read_four_at<<<1, 1>>>(x.data(), wrong ? 2 : 4, out.data());
    return out.values()[0] == 1;
}

bool copy_behind_the_end(bool wrong) {
    DeviceArray<float> x(std::vector<float>(32, 1));
    std::vector<float> out(33);
    const cudaError_t result =
        cudaMemcpy(out.data(), x.data(), (wrong ? 33 : 32) * sizeof(float), cudaMemcpyDeviceToHost);
    return result == cudaSuccess && out[31] == 1;
}

__global__ void write_shared_at(int i, float* out) {
    extern __shared__ float shared[];
    shared[threadIdx.x] = static_cast<float>(threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) shared[i] = -1;
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x];
}
bool write_behind_the_end_of_shared(bool wrong) {
    DeviceArray<float> out(32);
    write_shared_at<<<1, 32, 32 * sizeof(float)>>>(wrong ? 32 : 31, out.data());
    return out.values()[31] == -1 && out.values()[30] == 30;
}

__global__ void read_shared_at(int i, float* out) {
    extern __shared__ float shared[];
    shared[0] = 1;
    *out = shared[i];
}
bool read_behind_the_end_of_shared(bool wrong) {
    DeviceArray<float> out(1);
    read_shared_at<<<1, 1, 4 * sizeof(float)>>>(wrong ? 4 : 0, out.data());
    return out.values()[0] == 1;
}
bool read_of_shared_that_nobody_wrote(bool wrong) {
    DeviceArray<float> out(1);
    read_shared_at<<<1, 1, 4 * sizeof(float)>>>(wrong ? 3 : 0, out.data());
    return out.values()[0] == 1;
}

__global__ void write_local_at(int i, int* out) {
    int local[4] = {0, 1, 2, 3};
    local[i] = 7;
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += local[(k + i) % 4];
    *out = sum;
}
bool write_behind_the_end_of_local(bool wrong) {
    DeviceArray<int> out(1);
    write_local_at<<<1, 1>>>(wrong ? 4 : 3, out.data());
    return out.values()[0] == 0 + 1 + 2 + 7;
}

__global__ void do_nothing() {}
__global__ void __launch_bounds__(64) do_nothing_bounded() {}
__global__ void touch_shared() {
    extern __shared__ float shared[];
    shared[threadIdx.x] = 0;
}
__global__ void touch_much_shared() {
    extern __shared__ float shared[];
    shared[threadIdx.x] = 0;
}

}  // namespace

std::vector<Plant> plants_in_memory() {
    return {{"write_behind_the_end", write_behind_the_end, "behind the end"},
            {"read_behind_the_end", read_behind_the_end, "behind the end"},
            {"read_before_the_start", read_before_the_start, "before the start"},
            {"read_through_null", read_through_null, "null pointer"},
            {"read_of_what_nobody_wrote", read_of_what_nobody_wrote, "never written"},
            {"read_of_what_was_half_written", read_of_what_was_half_written, "never written"},
            {"read_of_four_between_fours", read_of_four_between_fours, "no multiple of 16"},
            {"copy_behind_the_end", copy_behind_the_end, "behind the end"},
            {"write_behind_the_end_of_shared", write_behind_the_end_of_shared, "outside it"},
            {"read_behind_the_end_of_shared", read_behind_the_end_of_shared, "outside it"},
            {"read_of_shared_that_nobody_wrote", read_of_shared_that_nobody_wrote, "never written"},
            {"write_behind_the_end_of_local", write_behind_the_end_of_local, "local memory"}};
}

void launch_with_threads(unsigned threads) { do_nothing<<<1, threads>>>(); }
void launch_bounded_with_threads(unsigned threads) { do_nothing_bounded<<<1, threads>>>(); }
void launch_with_shared_memory(unsigned bytes) { touch_shared<<<1, 32, bytes>>>(); }
void launch_with_shared_memory_asked_for(unsigned bytes) {
    (void)cudaFuncSetAttribute(touch_much_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    touch_much_shared<<<1, 32, bytes>>>();
}

}  // namespace soft_gpu_own
