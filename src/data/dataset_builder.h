// From the data flags of a run to its training, validation and test samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/gpt_sample.h"
#include "data/index_cache.h"
#include "data/sample_dataset.h"
#include "data/splits.h"

namespace tera {

/// Names are those of the flags, or within `sample`.
struct DataConfig {
    std::vector<std::string> data_path, train_data_path, valid_data_path, test_data_path;
    std::string data_args_path, per_split_data_args_path;
    std::string split;  // empty: "969, 30, 1", for mock data "1,1,1"
    bool mock_data = false;
    std::int64_t seed = 1234;
    GptSampleOptions sample;
    std::string data_cache_path;   // empty: no cache
    bool write_data_cache = true;  // false on all ranks but one
    bool mmap_bin_files = true;
    std::int64_t num_dataset_builder_threads = 0;  // 0: as many as the machine has

    // Of the tokenizer.
    std::int64_t vocab_size = 0;  // ids in the data must be below; 0: not checked
    TokenizerIdentity tokenizer;  // for the names of cache files

    // Samples asked for. 0: the split is not needed. None: one pass over its data.
    std::optional<std::int64_t> train_samples = 0, valid_samples = 0, test_samples = 0;
};

/// What a run takes from one corpus.
struct SourceReport {
    std::string path;               // prefix
    double weight = 1.0;            // share of the samples, normalised
    std::int64_t sequences = 0;     // of this split
    std::int64_t tokens = 0;        // of this split
    std::int64_t samples = 0;       // built
    std::int64_t used_samples = 0;  // taken by the run, as far as samples were asked for
    double epochs = 0.0;            // how often the run goes through the tokens: used samples · S / tokens
};

struct GptData {
    Split split = Split::train;
    std::shared_ptr<const SampleDataset> samples;
    std::optional<std::int64_t> requested;
    std::vector<SourceReport> sources;  // a sample's source number is its place here
    bool from_cache = false;
};

struct GptDatasets {
    std::optional<GptData> train, valid, test;
    GptSampleOptions sample_options;
    std::vector<std::string> notes;  // things the user should read: absent splits, sources left out, cache trouble

    /// Per source: tokens, epochs, repeats; several lines, for the start of the log.
    std::string report() const;
};

/// UsageError on missing or damaged files, contradictory flags, a training or validation split that is asked for but
/// has no data.
GptDatasets build_gpt_datasets(const DataConfig& config);

}  // namespace tera
