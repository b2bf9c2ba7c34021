// Places for registers. PTX names thousands; few of them hold something that is still needed at the same time, and
// these alone get places of their own.
#pragma once

#include <vector>

#include "soft_gpu/program.h"

namespace soft_gpu {

/// What a step does to registers, by the places they were given first, and where it leads.
struct Uses {
    std::vector<std::int32_t> reads, writes;
    bool branches = false;  ///< to Step::target
    bool goes_on = true;    ///< to the step behind it
};

/// Gives all registers of the function new places.
void share_registers(Function& f, const std::vector<Uses>& uses);

}  // namespace soft_gpu
