// Text from a trained model: one token after the other, with a cache of keys and values.
//
// The same seed, prompt and flags give the same text on any number of threads: each draw is a function of (seed,
// sample, position).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "token/tokenizer.h"
#include "train/batch_upload.h"
#include "train/workspace.h"

namespace tera {

struct SamplingConfig {
    bool greedy = false;     ///< the most likely token, the lowest id among equals
    double temperature = 1;  ///< logits are divided by it; 0 is greedy
    std::int64_t top_k = 0;  ///< draw from the k most likely only; 0: all
    double top_p = 1;        ///< and from the fewest of them that reach this probability
    std::uint64_t seed = 1234;
};

/// UsageError if a value makes no sense.
void check_sampling(const SamplingConfig& config);

class Sampler {
  public:
    Sampler(const SamplingConfig& config, std::uint64_t sample) : config_(config), sample_(sample) {}

    /// The token at `position`, given the logits of all tokens. UsageError if they are not numbers.
    std::int32_t pick(std::span<const float> logits, std::uint64_t position);

  private:
    struct Candidate {
        double weight;  ///< logit, then probability times a constant
        std::int32_t id;
    };
    void keep_top_k();
    void keep_top_p();
    std::int32_t draw(std::uint64_t position) const;

    SamplingConfig config_;
    std::uint64_t sample_;
    std::vector<Candidate> candidates_;
};

/// Turns tokens into text as they come, holding back bytes that do not make a whole character yet.
class TextStream {
  public:
    TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> context);

    /// The text that this token completes; may be empty.
    std::string push(std::int32_t id);
    /// What is left at the end, U+FFFD for a character cut in two.
    std::string finish();

  private:
    const Tokenizer& tokenizer_;
    std::vector<std::int32_t> ids_;
    std::size_t printed_;  // bytes of the decoded text
};

/// Continues one prompt, as often as wanted; the prompt is read once.
class Generator {
  public:
    enum class End { length, stop_token, positions };

    /// ids at or beyond `vocab` are never drawn. UsageError if the prompt is empty, longer than the model's positions
    /// or has an id that the model lacks.
    Generator(const Decoder& model, Workspace& workspace, std::vector<std::int32_t> prompt, std::int64_t max_new_tokens,
              std::int64_t vocab);

    struct Stop {
        std::optional<std::int32_t> token;  ///< ends the text; not handed on
    };
    /// Calls on_token for every new token.
    End run(const SamplingConfig& sampling, std::uint64_t sample, const Stop& stop,
            const std::function<void(std::int32_t)>& on_token);

  private:
    std::vector<float> feed(std::span<const std::int32_t> tokens);

    const Decoder& model_;
    Workspace& workspace_;
    BatchUpload upload_;
    std::vector<std::int32_t> prompt_;
    std::int64_t max_new_, vocab_;
    Arena arena_;
    KvCache cache_;
    std::vector<float> first_;  // logits after the prompt
};

}  // namespace tera
