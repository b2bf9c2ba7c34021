// Index arrays kept in files under --data-cache-path, in Megatron's own format, so that either program reads what the
// other wrote. Nothing needs it: building the arrays takes about a second.
//
//   {md5 of the description}-{class}-{split}-description.txt, and beside it
//   ...-document_index.npy, ...-sample_index.npy, ...-shuffle_index.npy      (GPTDataset)
//   ...-dataset_index.npy, ...-dataset_sample_index.npy                      (BlendedDataset)
// Files appear by renaming, so several processes may write the same ones at once. A file that is cut short, or not what
// the description promises, is rebuilt with a note.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/splits.h"
#include "io/npy.h"

namespace tera {

/// How Megatron describes a tokenizer in a cache key.
struct TokenizerIdentity {
    std::string class_name;                                    // "_GPT2BPETokenizer"
    std::vector<std::string> paths;                            // an empty one stands for None
    std::vector<std::pair<std::string, std::string>> options;  // each option as text
};

/// All that a GPT index depends on.
struct GptIdentity {
    std::string class_name = "GPTDataset";
    std::string dataset_path;  // empty: none (mock data)
    std::optional<std::int64_t> num_samples;
    Split index_split = Split::train;
    std::int64_t random_seed = 1234;
    std::int64_t sequence_length = 0;
    std::optional<SplitPlan> split;  // none: the split has paths of its own
    TokenizerIdentity tokenizer;
};

/// The text of description.txt: JSON as Python writes it with an indent of 4.
std::string describe(const GptIdentity& identity);
/// `datasets`: the members' descriptions. Without a size the weights are numbers of samples.
std::string describe_blend(const std::vector<std::string>& datasets, Split split, const std::vector<double>& weights,
                           std::optional<std::int64_t> size);

class IndexCache {
  public:
    /// One array of an index: the end of its file's name, and what it must be.
    struct Part {
        const char* name;  // "document_index"
        NpyType type;
        std::vector<std::int64_t> shape;
    };

    /// An empty folder name: no cache. `writable` false: only read.
    IndexCache(std::string folder, bool writable) : folder_(std::move(folder)), writable_(writable) {}

    bool enabled() const { return !folder_.empty(); }
    /// The arrays of this description, mapped, if all are there and as they should be.
    std::optional<std::vector<NpyArray>> load(const std::string& description, const std::string& class_and_split,
                                              const std::vector<Part>& parts, std::vector<std::string>& notes) const;
    /// Never fails: what cannot be written is noted.
    void store(const std::string& description, const std::string& class_and_split, const std::vector<Part>& parts,
               const std::vector<NpyArray>& arrays, std::vector<std::string>& notes) const;

  private:
    std::string stem(const std::string& description, const std::string& class_and_split) const;

    std::string folder_;
    bool writable_;
};

}  // namespace tera
