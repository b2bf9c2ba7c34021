// What must be the same on every rank and is not: a flag, a checkpoint that one machine does not see, other data. Left
// alone it trains something that nobody asked for, without an error.
#pragma once

#include <string>
#include <vector>

#include "comm/comm.h"
#include "config/run_config.h"
#include "data/dataset_builder.h"

namespace tera {

struct Fact {
    std::string what, value;
};

/// UsageError on every rank if one has another value than rank 0: that rank says what it has, the others name it. All
/// ranks bring the same facts in the same order.
void require_agreement(Comm& world, const Exec& exec, const std::vector<Fact>& facts);

/// The flags that all ranks must share. Of files and folders only whether they are given: each machine may have its
/// own.
std::vector<Fact> flags_to_share(const RunConfig& config);

/// What tells other data from the same, wherever it lies: datasets in their order, with weights and sizes, and the ids
/// of some samples.
std::vector<Fact> facts_of(const GptDatasets& all);

}  // namespace tera
