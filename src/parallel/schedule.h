// The order of work on one pipeline stage, as a pure function.
//
// P stages with V chunks each make a pipeline of V·P places: chunk c of stage p is place c·P + p. Micro-batches enter
// in groups of G (P of them, unless said otherwise; the last may be short). Every stage runs its forwards in the same
// order
//   for each group: for chunk 0 .. V-1: each micro-batch of the group
// and its backwards in the same order with chunk V-1-c for c. First come w forwards, then one forward and one backward
// in turn, then the backwards that are left:
//   V = 1   w = min(P-1-p, M)
//   V > 1   w = min(2(P-1-p) + (V-1)G, M·V)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct PipelineShape {
    int stages = 1, chunks = 1;
    std::int64_t micro_batches = 1;
    std::int64_t group = 0;  ///< 0: as many as there are stages
};

struct PipelineStep {
    enum class Kind : std::uint8_t { forward, backward };
    Kind kind;
    std::int64_t micro_batch;
    int chunk;
    bool operator==(const PipelineStep&) const = default;
    std::string text() const;  ///< "F3", "B0", with several chunks "F3.1"
};

/// UsageError if the micro-batches cannot be shared out: with several chunks the last group is as long as the others or
/// has at least as many micro-batches as there are stages.
std::vector<PipelineStep> schedule_1f1b(const PipelineShape& shape, int stage);

/// The steps, of a schedule, in which forwards and backwards take turns: before them it warms up, behind them it is
/// flushed.
struct Turns {
    std::size_t begin = 0, end = 0;
    bool has(std::size_t step) const { return begin <= step && step < end; }
};
Turns turns_of(const std::vector<PipelineStep>& steps);

/// The forwards alone, for evaluation.
std::vector<PipelineStep> forward_schedule(const PipelineShape& shape);

/// The most forwards whose backward is still to come at any time.
std::int64_t most_in_flight(const std::vector<PipelineStep>& steps);
/// The most micro-batches between their first forward and their last backward on a stage.
std::int64_t most_micro_batches(const std::vector<PipelineStep>& steps);

/// The most messages from one stage to a neighbour that are sent and not yet received, when every step takes as long as
/// the others: with room for so many no stage ever waits for ever, however long steps really take (a network of
/// processes that block on full and on empty channels either always comes to its end or never does).
std::int64_t most_on_their_way(const PipelineShape& shape);

}  // namespace tera
