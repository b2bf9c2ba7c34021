// Micro-batches as the model takes them, made ahead of time by worker threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/gpt_sample.h"
#include "data/sample_dataset.h"
#include "data/sampler.h"

namespace tera {

/// One micro-batch. Per-token arrays are [S, B]: the entry of position s in sample b is at s·B + b.
struct Batch {
    std::int64_t sequence_length = 0;  // S
    std::int64_t batch_size = 0;       // B
    std::vector<std::int32_t> tokens, labels, positions;
    std::vector<std::int32_t> doc_start;  // first position that each token may attend to; 0 without document isolation
    std::vector<float> loss_mask;
    std::vector<std::int64_t> sample_ids;  // [B] samples consumed by all ranks before this one: unique in a run
    std::vector<std::int64_t> indices;     // [B] number of the sample in its dataset
    std::vector<std::int32_t> sources;     // [B] which source of a blend it came from
    bool isolate_documents = false;        // --reset-attention-mask: doc_start is to be obeyed
};

/// Reads the samples and lays them out.
Batch make_batch(const SampleDataset& data, const GptSampleOptions& options, const SampleNumbers& numbers);

/// Gives out the sampler's micro-batches in order. With workers, up to two per worker are prepared in the background;
/// the batches are the same for any number of workers.
class BatchLoader {
  public:
    /// num_workers 0: each batch is made when it is asked for.
    BatchLoader(std::shared_ptr<const SampleDataset> data, const GptSampleOptions& options,
                const SamplerConfig& sampler, std::int64_t num_workers);
    ~BatchLoader();
    BatchLoader(const BatchLoader&) = delete;
    BatchLoader& operator=(const BatchLoader&) = delete;

    /// The next micro-batch. UsageError when the samples are used up; whatever went wrong while making the batch is
    /// thrown here, and again at every later call.
    Batch next();
    /// Samples that all ranks have had once the batches given out so far are done.
    std::int64_t consumed_samples() const { return consumed_; }

  private:
    struct Slot {
        bool ready = false;
        std::optional<Batch> batch;  // none: used up
        std::exception_ptr failure;
    };
    void work();
    Slot make(const std::optional<SampleNumbers>& numbers) const;
    Batch deliver(Slot slot);

    std::shared_ptr<const SampleDataset> data_;
    GptSampleOptions options_;
    SamplerConfig config_;
    std::unique_ptr<Sampler> sampler_;
    std::int64_t consumed_;
    std::exception_ptr failure_;

    std::mutex mutex_;
    std::condition_variable room_, ready_;
    std::vector<Slot> slots_;     // a ring: batch n is in slot n % size
    std::int64_t taken_ = 0;      // batches that workers have begun
    std::int64_t delivered_ = 0;  // batches given out
    bool ended_ = false, stop_ = false;
    std::vector<std::thread> workers_;
};

}  // namespace tera
