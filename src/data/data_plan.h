// Which corpora the data flags name, and for which split.
#pragma once

#include <array>
#include <optional>

#include "data/blend_spec.h"
#include "data/dataset_builder.h"

namespace tera {

/// Neither for mock data.
struct DataPlan {
    std::optional<BlendSpec> shared;                    // one list, cut by --split
    std::array<std::optional<BlendSpec>, 3> per_split;  // a list for each split
};

/// UsageError if the flags contradict each other or name nothing.
DataPlan plan_data(const DataConfig& config);

}  // namespace tera
