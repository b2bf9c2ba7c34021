// Samples drawn from several datasets in given proportions, interleaved so that at every point each dataset is as near
// to its share as it can be.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/sample_dataset.h"
#include "data/splits.h"
#include "io/npy.h"

namespace tera {

/// Entry i: sample `sample[i]` of dataset `dataset[i]`.
struct BlendIndex {
    NpyArray dataset;  // [size] int16
    NpyArray sample;   // [size] int64
};

constexpr std::int64_t max_blended_datasets = 32766;

/// Step i takes from the dataset d that is furthest behind: largest w_d · max(i, 1) - (taken from d so far), the first
/// of equals. Weights sum to 1.
BlendIndex build_blend_index(const std::vector<double>& weights, std::int64_t size);

/// The same with weights in proportion to the sizes, each dataset leaving when it is used up.
BlendIndex build_exhaustive_blend_index(const std::vector<std::int64_t>& sizes);

class BlendedDataset : public SampleDataset {
  public:
    struct Member {
        std::shared_ptr<const SampleDataset> data;
        std::int32_t source = 0;  // the number read() reports
    };

    /// UsageError, naming the split, if the index asks a dataset for more samples than it has.
    BlendedDataset(std::vector<Member> members, BlendIndex index, Split split);

    std::int64_t size() const override { return index_.dataset.size(); }
    std::int64_t sample_length() const override { return members_.front().data->sample_length(); }
    std::int32_t read(std::int64_t i, std::int32_t* out) const override;

    const BlendIndex& index() const { return index_; }
    const std::vector<Member>& members() const { return members_; }
    /// Samples that the first `count` entries take from each member.
    std::vector<std::int64_t> usage(std::int64_t count) const;

  private:
    std::vector<Member> members_;
    BlendIndex index_;
};

}  // namespace tera
