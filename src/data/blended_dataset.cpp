#include "data/blended_dataset.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace tera {
namespace {

/// The datasets' shares and what was taken. Padded to whole vectors with entries that are never picked.
class Shares {
  public:
    explicit Shares(const std::vector<double>& weights)
        : size_(weights.size()),
          weight_((weights.size() + lanes - 1) / lanes * lanes, 0.0),
          taken_(weight_.size(), std::numeric_limits<double>::infinity()),
          due_(weight_.size()) {
        TERA_CHECK(size_ > 0 && size_ <= static_cast<std::size_t>(max_blended_datasets), size_, " datasets");
        std::copy(weights.begin(), weights.end(), weight_.begin());
        std::fill_n(taken_.begin(), size_, 0.0);
    }

    /// The dataset furthest behind at step `step`.
    std::size_t pick(std::int64_t step) {
        const double x = std::max(static_cast<double>(step), 1.0);
        const std::size_t n = weight_.size();
        for (std::size_t d = 0; d < n; ++d) due_[d] = weight_[d] * x;
        // The product must be rounded before the difference is taken: a fused multiply-add breaks ties differently.
        asm volatile("" : : "r"(due_.data()) : "memory");
        double largest[lanes];
        std::fill_n(largest, lanes, std::numeric_limits<double>::lowest());
        for (std::size_t d = 0; d < n; d += lanes)
            for (std::size_t j = 0; j < lanes; ++j) {
                const double behind = due_[d + j] - taken_[d + j];
                due_[d + j] = behind;
                largest[j] = behind > largest[j] ? behind : largest[j];
            }
        const double most = *std::max_element(largest, largest + lanes);
        std::size_t d = 0;
        while (due_[d] != most) ++d;
        return d;
    }
    /// Returns how many were taken before.
    std::int64_t take(std::size_t d) { return static_cast<std::int64_t>(taken_[d]++); }
    void leave(std::size_t d) { taken_[d] = std::numeric_limits<double>::infinity(); }

  private:
    static constexpr std::size_t lanes = 8;
    std::size_t size_;
    std::vector<double> weight_, taken_, due_;
};

BlendIndex empty_index(std::int64_t size) { return {NpyArray(NpyType::i16, {size}), NpyArray(NpyType::i64, {size})}; }

}  // namespace

BlendIndex build_blend_index(const std::vector<double>& weights, std::int64_t size) {
    Shares shares(weights);
    BlendIndex index = empty_index(size);
    auto* dataset = index.dataset.mutable_data<std::int16_t>();
    auto* sample = index.sample.mutable_data<std::int64_t>();
    for (std::int64_t i = 0; i < size; ++i) {
        const std::size_t d = shares.pick(i);
        dataset[i] = static_cast<std::int16_t>(d);
        sample[i] = shares.take(d);
    }
    return index;
}

BlendIndex build_exhaustive_blend_index(const std::vector<std::int64_t>& sizes) {
    const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    std::vector<double> weights;
    for (const std::int64_t s : sizes) {
        TERA_CHECK(s > 0, "empty dataset in a blend");
        weights.push_back(static_cast<double>(s) / static_cast<double>(total));
    }
    Shares shares(weights);
    BlendIndex index = empty_index(total);
    auto* dataset = index.dataset.mutable_data<std::int16_t>();
    auto* sample = index.sample.mutable_data<std::int64_t>();
    for (std::int64_t i = 0; i < total; ++i) {
        const std::size_t d = shares.pick(i);
        dataset[i] = static_cast<std::int16_t>(d);
        sample[i] = shares.take(d);
        if (sample[i] + 1 == sizes[d]) shares.leave(d);
    }
    return index;
}

BlendedDataset::BlendedDataset(std::vector<Member> members, BlendIndex index, Split split)
    : members_(std::move(members)), index_(std::move(index)) {
    TERA_CHECK(!members_.empty(), "blend of nothing");
    const auto dataset = index_.dataset.as<std::int16_t>();
    const auto sample = index_.sample.as<std::int64_t>();
    TERA_CHECK(dataset.size() == sample.size(), "blend index");
    std::vector<std::int64_t> needed(members_.size(), 0);
    for (std::size_t i = 0; i < dataset.size(); ++i) {
        const auto d = static_cast<std::size_t>(dataset[i]);
        if (dataset[i] < 0 || d >= members_.size() || sample[i] < 0)
            usage_error("the ", split_name(split), " blend's cached index is damaged at sample ", i,
                        "; delete its files in --data-cache-path");
        needed[d] = std::max(needed[d], sample[i] + 1);
    }
    for (std::size_t d = 0; d < members_.size(); ++d)
        if (needed[d] > members_[d].data->size())
            usage_error("The ", split_name(split), " blend oversamples the contributing datasets and, e.g., requests ",
                        needed[d], " samples from GPTDataset ", d, " with size ", members_[d].data->size(),
                        "; ask for more samples, or make the smallest weights larger");
}

std::int32_t BlendedDataset::read(std::int64_t i, std::int32_t* out) const {
    TERA_CHECK(i >= 0 && i < size(), "blend: sample ", i, " of ", size());
    const Member& member = members_[static_cast<std::size_t>(index_.dataset[i])];
    member.data->read(index_.sample[i], out);
    return member.source;
}

std::vector<std::int64_t> BlendedDataset::usage(std::int64_t count) const {
    std::vector<std::int64_t> taken(members_.size(), 0);
    const auto dataset = index_.dataset.as<std::int16_t>();
    for (std::int64_t i = 0; i < std::min(count, size()); ++i)
        ++taken[static_cast<std::size_t>(dataset[static_cast<std::size_t>(i)])];
    return taken;
}

}  // namespace tera
