// Which layers live on which pipeline stage. Explicit, printable, and always adding up to the number asked for.
//
//   even          L / P layers per stage, in order
//   interleaved   V chunks per stage: chunk v of stage p follows chunk v of stage p-1, and chunk 0 of stage 0 follows
//   all
//                 of chunk v-1; every chunk of a stage has the same number of layers
//   first, last   so many layers on the first and the last stage, the rest evenly on the stages between
//   accounting    the embedding (loss) counts as one layer of the first (last) stage, which then builds one layer less
// The place of the embedding and that of the loss may have no layers; any other has some.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tera {

struct LayerRange {
    std::int64_t first = 0, count = 0;  // layers first .. first + count - 1, counted from 0 over the whole model
};

struct LayerPlanRequest {
    std::int64_t layers = 0, stages = 1, chunks = 1;
    std::optional<std::int64_t> first_stage, last_stage;
    bool count_embedding = false, count_loss = false;
};

struct LayerPlan {
    std::vector<std::vector<LayerRange>> stages;  // [stage][chunk]

    std::int64_t layers_of_stage(std::size_t stage) const;
    std::vector<std::int64_t> layers_per_stage() const;
};

/// UsageError, naming the flags, if the request cannot be met exactly.
LayerPlan plan_layers(const LayerPlanRequest& request);

}  // namespace tera
