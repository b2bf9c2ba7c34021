// Which tokens make up which sample: the three index arrays of Megatron's GPT dataset.
//
//   document index  the sequences of a split, repeated for E epochs and shuffled: one long stream of tokens
//   sample index    where each sample begins in that stream: rows (position in the document index, token offset).
//                   Sample k holds the tokens k·S .. k·S + S of the stream, so neighbours share one token
//   shuffle index   the order in which samples are taken
// Dataset item i is row shuffle[i] of the sample index. All three depend on nothing but lengths, S, the number of
// samples asked for and the seed.
#pragma once

#include <cstdint>
#include <optional>

#include "data/sequence_source.h"
#include "data/splits.h"
#include "io/npy.h"

namespace tera {

struct GptIndexSpec {
    std::int64_t sequence_length = 0;         // S
    std::optional<std::int64_t> num_samples;  // n; none: exactly one epoch
    std::uint32_t seed = 1234;
    bool drop_last_partial = true;  // false: a last sample that is shorter than S + x is kept
    std::int64_t extra_tokens = 1;  // x: 1, or 0 for samples of S tokens that share none
};

/// How often the tokens T of a split must be gone through for n samples.
struct EpochPlan {
    std::int64_t tokens_per_epoch = 0;  // T
    std::int64_t epochs = 1;            // E: smallest with E·T >= n·S + x
    std::int64_t samples = 0;           // N: samples in E epochs, at least n
    std::int64_t samples_before_last = 0;
    bool separate_last_epoch = false;  // the last epoch, needed for less than 80 %, is shuffled by itself
};

/// T must be at least 1.
EpochPlan plan_epochs(std::int64_t tokens_per_epoch, const GptIndexSpec& spec);

struct GptIndex {
    EpochPlan plan;
    NpyArray documents;  // [E · sequences] int32
    NpyArray samples;    // [N + 1, 2] int32, or int64 where positions need it
    NpyArray shuffle;    // [N] uint32, or int64 from 2^32 - 2 samples on
};

/// Sizes and types of the arrays, known without building them.
struct GptIndexLayout {
    std::int64_t documents = 0;
    NpyType sample_type = NpyType::i32, shuffle_type = NpyType::u32;
};
GptIndexLayout gpt_index_layout(const SequenceSource& source, SequenceRange range, const EpochPlan& plan);

std::int64_t count_tokens(const SequenceSource& source, SequenceRange range);

/// UsageError if the range holds no token.
GptIndex build_gpt_index(const SequenceSource& source, SequenceRange range, const GptIndexSpec& spec);

}  // namespace tera
