#include "data/gpt_sample.h"

#include <algorithm>

#include "core/error.h"
#include "data/random.h"

namespace tera {
namespace {

constexpr std::int64_t goldfish_table_size = 1'000'003;

const std::vector<float>& goldfish_table() {
    static const std::vector<float> table = [] {
        TorchRandom random(2971215073u);
        std::vector<float> values(goldfish_table_size);
        for (float& v : values) v = random.uniform();
        return values;
    }();
    return table;
}

void fill_positions(const GptSampleOptions& options, GptSample& out) {
    std::int32_t document = 0;
    const auto length = static_cast<std::int32_t>(options.sequence_length);
    for (std::int32_t s = 0; s < length; ++s) {
        const auto i = static_cast<std::size_t>(s);
        out.positions[i] = options.reset_position_ids ? s - document : s;
        out.doc_start[i] = options.reset_attention_mask ? document : 0;
        if (out.tokens[i] == options.eod_id && options.eod_id >= 0) document = s + 1;
    }
}

}  // namespace

void apply_goldfish(std::span<const std::int32_t> labels, std::int64_t k, std::int64_t h, std::span<float> loss_mask) {
    TERA_CHECK(k > 0 && h > 0 && labels.size() == loss_mask.size(), "goldfish k ", k, ", h ", h);
    const std::vector<float>& table = goldfish_table();
    const float limit = static_cast<float>(1.0 / static_cast<double>(k));
    const auto width = static_cast<std::size_t>(h);
    for (std::size_t end = width; end <= labels.size(); ++end) {
        std::uint64_t product = 1;  // unsigned: wraps as torch's int64 does
        for (std::size_t i = end - width; i < end; ++i)
            product *= static_cast<std::uint64_t>(static_cast<std::int64_t>(labels[i]));
        std::int64_t key = static_cast<std::int64_t>(product) % goldfish_table_size;
        if (key < 0) key += goldfish_table_size;
        if (table[static_cast<std::size_t>(key)] < limit) loss_mask[end - 1] = 0.0f;
    }
}

void make_gpt_sample(const GptSampleOptions& options, std::span<const std::int32_t> ids, GptSample& out) {
    const auto length = static_cast<std::size_t>(options.sequence_length);
    TERA_CHECK(ids.size() == length + static_cast<std::size_t>(options.extra_tokens), "ids ", ids.size());
    out.tokens.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length));
    out.labels.assign(ids.begin() + 1, ids.end());
    if (options.extra_tokens == 0) out.labels.push_back(options.pad_id);
    out.positions.resize(length);
    out.doc_start.resize(length);
    out.loss_mask.assign(length, 1.0f);
    fill_positions(options, out);
    for (std::size_t i = 0; i < length; ++i) {
        if (options.eod_mask_loss && out.tokens[i] == options.eod_id && options.eod_id >= 0) out.loss_mask[i] = 0.0f;
        if (out.labels[i] == options.pad_id) out.loss_mask[i] = 0.0f;
    }
    std::replace(out.tokens.begin(), out.tokens.end(), options.pad_id, 0);
    std::replace(out.labels.begin(), out.labels.end(), options.pad_id, 0);
    if (options.goldfish_loss) apply_goldfish(out.labels, options.goldfish_k, options.goldfish_h, out.loss_mask);
}

}  // namespace tera
