// Samples of S + 1 tokens from one corpus: the tokens that the GPT index says, gathered from the sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/gpt_index.h"
#include "data/sample_dataset.h"
#include "data/sequence_source.h"

namespace tera {

class GptDataset : public SampleDataset {
  public:
    struct Options {
        std::int64_t sequence_length = 0;  // S
        std::int64_t extra_tokens = 1;     // x
        std::int64_t vocab_size = 0;       // ids must be below; 0: not checked
        std::int32_t pad_id = -1;          // fills a sample that is short
    };

    GptDataset(std::shared_ptr<const SequenceSource> source, SequenceRange range, GptIndex index, Options options);

    std::int64_t size() const override { return index_.plan.samples; }
    std::int64_t sample_length() const override { return options_.sequence_length + options_.extra_tokens; }
    /// UsageError on a token id outside the vocabulary, naming the file, sequence and offset.
    std::int32_t read(std::int64_t i, std::int32_t* out) const override;

    const GptIndex& index() const { return index_; }
    const SequenceSource& source() const { return *source_; }
    SequenceRange range() const { return range_; }

  private:
    void check_tokens(std::int64_t sequence, std::int64_t offset, std::int64_t count, const std::int32_t* ids) const;

    std::shared_ptr<const SequenceSource> source_;
    SequenceRange range_;
    GptIndex index_;
    Options options_;
};

}  // namespace tera
