// The data of a run: its datasets built from the flags, and one stream of micro-batches per split.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "config/run_config.h"
#include "data/batch.h"
#include "data/dataset_builder.h"
#include "model/decoder.h"
#include "token/tokenizer.h"
#include "train/log_lines.h"

namespace tera {

/// What the flags say of samples; the tokenizer's ids are not among them.
GptSampleOptions sample_options_from(const RunConfig& config);

/// Samples a run will ask for: train iterations · batch, validation (iterations / eval interval + 1) · eval iterations
/// · batch, test eval iterations · batch. 0 where a split is not used.
TargetSizes target_sizes(const RunConfig& config, std::int64_t train_iters, std::int64_t train_samples);

/// As a model takes it; the batch must outlive it.
MicroBatch view_of(const Batch& batch);

class DataFeed {
  public:
    /// dp_rank: which of the data-parallel ranks' samples are wanted. UsageError for missing or damaged data, or a
    /// split that is asked for but empty.
    DataFeed(const RunConfig& config, const Tokenizer& tokenizer, const TargetSizes& sizes, std::int64_t dp_rank);

    const GptDatasets& datasets() const { return datasets_; }
    bool has(Split split) const { return data(split).has_value(); }

    /// Where the stream of a split begins: samples consumed before. Before the first next() of that split.
    void start_at(Split split, std::int64_t consumed);
    /// The next micro-batch, valid until the next call. UsageError when the samples are used up.
    const MicroBatch& next(Split split);

  private:
    const std::optional<GptData>& data(Split split) const;
    void open(Split split);

    struct Stream {
        std::unique_ptr<BatchLoader> loader;
        std::int64_t consumed = 0;
        Batch batch;
        MicroBatch view;
    };
    GptDatasets datasets_;
    std::string dataloader_type_;
    bool data_sharding_;
    std::int64_t micro_batch_size_, workers_, dp_rank_, dp_size_;
    std::array<Stream, 3> streams_;
};

}  // namespace tera
