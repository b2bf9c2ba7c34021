// Which samples make up each micro-batch of a data-parallel rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tera {

/// The samples of one micro-batch on one rank.
struct SampleNumbers {
    std::vector<std::int64_t> index;     // [B] which sample of the dataset
    std::vector<std::int64_t> consumed;  // [B] how many samples all ranks together consumed before this one
};

struct SamplerConfig {
    std::string dataloader_type = "single";  // or "cyclic"
    std::int64_t total_samples = 0;          // size of the dataset
    std::int64_t consumed_samples = 0;       // where to begin: samples all ranks have had
    std::int64_t micro_batch_size = 1;
    std::int64_t data_parallel_rank = 0;
    std::int64_t data_parallel_size = 1;
    bool data_sharding = true;   // cyclic: each rank keeps to its own part of the dataset
    std::string what = "train";  // names the dataset in messages
};

/// Hands out micro-batches in order. One user at a time.
class Sampler {
  public:
    virtual ~Sampler() = default;
    /// Nothing when the dataset has no full micro-batch left for every rank.
    virtual std::optional<SampleNumbers> next() = 0;
    /// Samples that all ranks have had, those handed out here included.
    virtual std::int64_t consumed_samples() const = 0;
};

/// single: the dataset in order; with M = micro-batch × ranks, rank r has samples r·B .. r·B + B - 1 of every M.
/// cyclic: again and again in a new order each time round, torch.randperm seeded with the number of the round. A round
/// is total - total % M samples, for every rank alike. Sharded, the order is one of each rank's own part and depends on
/// the number of ranks; else it is one of all samples, dealt out in turn.
/// UsageError if there is nothing (left) to hand out, or the consumed samples do not fall on a micro-batch.
std::unique_ptr<Sampler> make_sampler(const SamplerConfig& config);

}  // namespace tera
