// Memory of a run, known before anything is allocated: a dry run of one micro-batch (forward, backward, evaluation)
// over arenas that only count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "comm/mesh.h"
#include "config/run_config.h"
#include "train/workspace.h"

namespace tera {

/// Bytes on the device of one rank.
struct MemoryPlan {
    std::size_t weights = 0;       ///< weights and gradients
    std::size_t gradients = 0;     ///< of these the gradients
    std::size_t optimizer = 0;     ///< main weights and the rule's state
    std::size_t main_weights = 0;  ///< of these the main weights
    std::size_t activations = 0;   ///< kept until backward, or rebuilt there
    std::size_t scratch = 0;       ///< of single layers
    std::size_t tables = 0;        ///< rotary angles
    std::size_t batches = 0;       ///< micro-batches on their way
    std::size_t messages = 0;      ///< to other stages on their way
    std::size_t libraries = 0;     ///< workspace of the product library
    std::size_t rounding = 0;      ///< memory is taken in whole pages

    std::map<std::string, Traffic> sent;  ///< in one step, by what it is for (Mesh::traffic)

    std::size_t buffers() const { return tables + batches + messages + libraries + rounding; }
    std::size_t total() const { return weights + optimizer + activations + scratch + buffers(); }
    /// "weights and gradients 9.90 GiB, optimizer 19.80 GiB, ...".
    std::string text() const;
};

/// `config` is validated and knows its padded vocabulary. `dry` is a counting workspace on the run's device; it is left
/// with the peaks to be reserved. `mesh`: the rank's place; what one step of `micro_batches` sends is noted there.
MemoryPlan plan_memory(const RunConfig& config, std::int64_t true_vocab, Workspace& dry, const Mesh& mesh,
                       std::int64_t micro_batches);
/// One rank.
MemoryPlan plan_memory(const RunConfig& config, std::int64_t true_vocab, Workspace& dry);

/// On a GPU: plans, and takes all memory of the workspace at once; UsageError, with the plan and what would fit, if
/// there is not enough. On the CPU memory is taken as it is needed, and the plan is empty.
MemoryPlan reserve_memory(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace, const Mesh& mesh);

/// Of one micro-batch on its way to a device.
std::size_t batch_bytes(const RunConfig& config);

/// What to change so that the run fits into `room` bytes, cheapest first: no MLP activations kept, the largest smaller
/// micro-batch, recomputing layers, both. "with --micro-batch-size 4, without --keep-mlp-activations": every flag it
/// names goes together with the others given. Nothing if none of it is enough.
std::optional<std::string> advice_to_fit(const RunConfig& config, std::int64_t true_vocab, const Workspace& like,
                                         const Mesh& mesh, std::size_t room);

}  // namespace tera
