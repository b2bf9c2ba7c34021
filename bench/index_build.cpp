// The index arrays of a GPT dataset of ten million samples, built from nothing as at every start of a run: a corpus of
// many documents of uneven length, gone through once and ten times.
//
//   index_build [samples, default 10000000] [sequence length, default 1024]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "data/gpt_index.h"

namespace {

/// Documents of 1 to 4000 tokens, 1000 on average (lengths fall off exponentially); they have no content.
class Lengths final : public tera::SequenceSource {
  public:
    explicit Lengths(std::int64_t tokens) {
        std::mt19937_64 random(5);
        std::exponential_distribution<double> length(1 / 1000.0);
        for (std::int64_t sum = 0; sum < tokens; sum += lengths_.back())
            lengths_.push_back(1 + static_cast<std::int32_t>(std::min(length(random), 3999.0)));
    }
    const std::string& path() const override { return path_; }
    std::int64_t size() const override { return static_cast<std::int64_t>(lengths_.size()); }
    const std::byte* lengths() const override { return reinterpret_cast<const std::byte*>(lengths_.data()); }
    void get(std::int64_t, std::int64_t, std::int64_t, std::int32_t*) const override {}

  private:
    std::string path_;
    std::vector<std::int32_t> lengths_;
};

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t samples = argc > 1 ? std::atoll(argv[1]) : 10'000'000;
    const std::int64_t sequence = argc > 2 ? std::atoll(argv[2]) : 1024;
    for (const std::int64_t epochs : {1, 10}) {
        const Lengths source(samples * sequence / epochs + sequence);
        double best = 1e9;
        for (int round = 0; round < 3; ++round) {
            const auto began = std::chrono::steady_clock::now();
            const tera::GptIndex index = tera::build_gpt_index(source, {0, source.size()},
                                                               {.sequence_length = sequence, .num_samples = samples});
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
            best = std::min(best, seconds.count());
            if (index.plan.samples < samples) return 1;
        }
        std::printf("%lld samples of %lld tokens from %lld documents, %lld epoch%s: %.2f s\n",
                    static_cast<long long>(samples), static_cast<long long>(sequence),
                    static_cast<long long>(source.size()), static_cast<long long>(epochs), epochs == 1 ? "" : "s",
                    best);
    }
    return 0;
}
