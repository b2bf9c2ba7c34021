// Kernels with a fault, each with a twin that is right: one flag tells them apart.
#pragma once

#include <string>
#include <vector>

namespace soft_gpu_own {

struct Plant {
    const char* name;
    /// Runs one of the two. Whether the values are as they must be: of the right one.
    bool (*run)(bool wrong);
    const char* says;  ///< a regular expression that is in the fault's text
};

std::vector<Plant> plants_in_memory();
std::vector<Plant> plants_between_threads();
std::vector<Plant> plants_of_copies();
std::vector<Plant> plants_of_products();
/// Of lanes, of one copy among several, of barriers in shared memory.
std::vector<Plant> plants_in_detail();

// Launches that are refused.
void launch_with_threads(unsigned threads);
/// Of a kernel with bounds of 64.
void launch_bounded_with_threads(unsigned threads);
void launch_with_shared_memory(unsigned bytes);
/// And asks for them before.
void launch_with_shared_memory_asked_for(unsigned bytes);

/// a [64, 64] b [64, 128] on the matrix units, b's columns or its inner dimension as neighbours in memory.
/// Of ones; whether its sums are waited for before they are looked at.
std::vector<float> product_of_ones(bool waits);
/// Two, of which only the first is waited for.
std::vector<std::vector<float>> two_products_of_ones();
std::vector<float> product(bool columns_are_neighbours, const std::vector<float>& a, const std::vector<float>& b);

}  // namespace soft_gpu_own
