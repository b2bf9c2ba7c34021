#include "data/sampler.h"

#include "core/error.h"
#include "data/random.h"

namespace tera {
namespace {

class SamplerBase : public Sampler {
  public:
    explicit SamplerBase(const SamplerConfig& config)
        : c_(config), consumed_(config.consumed_samples), stride_(c_.micro_batch_size * c_.data_parallel_size) {
        TERA_CHECK(c_.micro_batch_size > 0 && c_.data_parallel_size > 0 && c_.consumed_samples >= 0, c_.what);
        TERA_CHECK(c_.data_parallel_rank >= 0 && c_.data_parallel_rank < c_.data_parallel_size, c_.data_parallel_rank);
        if (c_.total_samples <= 0) usage_error("the ", c_.what, " dataset has no samples");
    }
    std::int64_t consumed_samples() const override { return consumed_; }

  protected:
    /// Numbers of the micro-batch, without the indices; moves on to the next.
    SampleNumbers advance() {
        SampleNumbers numbers;
        const std::int64_t first = consumed_ + c_.data_parallel_rank * c_.micro_batch_size;
        for (std::int64_t b = 0; b < c_.micro_batch_size; ++b) numbers.consumed.push_back(first + b);
        consumed_ += stride_;
        return numbers;
    }

    SamplerConfig c_;
    std::int64_t consumed_, stride_;
};

class SingleSampler : public SamplerBase {
  public:
    explicit SingleSampler(const SamplerConfig& config) : SamplerBase(config) {
        if (consumed_ >= c_.total_samples)
            usage_error("no samples left in the ", c_.what, " dataset: ", consumed_, " consumed of ", c_.total_samples);
    }
    std::optional<SampleNumbers> next() override {
        if (c_.total_samples - consumed_ < stride_) return std::nullopt;
        SampleNumbers numbers = advance();
        numbers.index = numbers.consumed;
        return numbers;
    }
};

class CyclicSampler : public SamplerBase {
  public:
    explicit CyclicSampler(const SamplerConfig& config)
        : SamplerBase(config), active_(c_.total_samples - c_.total_samples % stride_) {
        if (active_ == 0)
            usage_error("the ", c_.what, " dataset has ", c_.total_samples, " samples, fewer than one micro-batch of ",
                        stride_, " over all data-parallel ranks");
        if (consumed_ % active_ % stride_ != 0)
            usage_error("cannot go on after ", consumed_, " ", c_.what, " samples with micro-batches of ", stride_,
                        " over all data-parallel ranks: not a multiple; keep the micro-batch size and ranks of before");
    }
    std::optional<SampleNumbers> next() override {
        if (consumed_ / active_ != epoch_) begin_epoch();
        const std::int64_t before = consumed_;
        SampleNumbers numbers = advance();
        for (std::int64_t b = 0; b < c_.micro_batch_size; ++b) {
            numbers.index.push_back(order_[static_cast<std::size_t>(position_)]);
            position_ += step_;
            // Dealt out in turn, a sample has the number that it has on one rank.
            if (!c_.data_sharding)
                numbers.consumed[static_cast<std::size_t>(b)] = before + c_.data_parallel_rank + b * step_;
        }
        return numbers;
    }

  private:
    void begin_epoch() {
        epoch_ = consumed_ / active_;
        const std::int64_t in_epoch = consumed_ % active_;
        TorchRandom random(static_cast<std::uint64_t>(epoch_));
        if (c_.data_sharding) {
            const std::int64_t bucket = c_.total_samples / stride_ * c_.micro_batch_size;
            order_ = random.randperm(bucket);
            for (std::int64_t& i : order_) i += c_.data_parallel_rank * bucket;
            position_ = in_epoch / c_.data_parallel_size;
            step_ = 1;
        } else {
            order_ = random.randperm(c_.total_samples / c_.micro_batch_size * c_.micro_batch_size);
            position_ = in_epoch + c_.data_parallel_rank;
            step_ = c_.data_parallel_size;
        }
    }

    std::int64_t active_;
    std::int64_t epoch_ = -1, position_ = 0, step_ = 1;
    std::vector<std::int64_t> order_;
};

}  // namespace

std::unique_ptr<Sampler> make_sampler(const SamplerConfig& config) {
    if (config.dataloader_type == "single") return std::make_unique<SingleSampler>(config);
    if (config.dataloader_type == "cyclic") return std::make_unique<CyclicSampler>(config);
    usage_error("--dataloader-type ", config.dataloader_type, " is not supported here; use single or cyclic");
}

}  // namespace tera
