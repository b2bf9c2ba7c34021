#include "data/gpt_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "data/random.h"

namespace tera {
namespace {

constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product))
        usage_error("too many samples asked for: ", a, " times ", b, " tokens; lower --train-samples or --train-iters");
    return product;
}

void fill_epochs(std::span<std::int32_t> out, SequenceRange range) {
    const auto per_epoch = static_cast<std::size_t>(range.size());
    for (std::size_t begin = 0; begin < out.size(); begin += per_epoch)
        std::iota(out.begin() + static_cast<std::ptrdiff_t>(begin),
                  out.begin() + static_cast<std::ptrdiff_t>(begin + per_epoch), static_cast<std::int32_t>(range.begin));
}

NpyArray build_documents(SequenceRange range, const GptIndexLayout& layout, const EpochPlan& plan,
                         NumpyRandom& random) {
    NpyArray array(NpyType::i32, {layout.documents});
    const std::span<std::int32_t> all(array.mutable_data<std::int32_t>(), static_cast<std::size_t>(array.size()));
    fill_epochs(all, range);
    const std::size_t last = plan.separate_last_epoch ? static_cast<std::size_t>(range.size()) : 0;
    random.shuffle(all.first(all.size() - last));
    if (last > 0) random.shuffle(all.last(last));
    return array;
}

/// One pass over the documents, writing a row whenever the next boundary falls inside the current one.
/// With x = 1 row k is the place of token k·S. With x = 0 it is the place just behind token k·S - 1, which may be the
/// end of a document.
template <class Row>
void fill_samples(const SequenceSource& source, std::span<const std::int32_t> documents, const GptIndexSpec& spec,
                  std::span<Row> rows) {
    constexpr std::size_t lookahead = 16;
    const std::byte* const lengths = source.lengths();
    const std::int64_t behind = 1 - spec.extra_tokens;
    Row* out = rows.data();
    Row* const end = rows.data() + rows.size();
    *out++ = 0;
    *out++ = 0;
    std::int64_t start = 0;                                 // of the document in the stream
    std::int64_t boundary = spec.sequence_length - behind;  // token whose place is the next row
    std::int64_t length = 0;
    for (std::size_t d = 0; d < documents.size() && out != end; ++d) {
        if (d + lookahead < documents.size()) __builtin_prefetch(lengths + std::int64_t{documents[d + lookahead]} * 4);
        length = load_length(lengths, documents[d]);
        const std::int64_t stop = start + length;
        for (; boundary < stop && out != end; boundary += spec.sequence_length) {
            *out++ = static_cast<Row>(d);
            *out++ = static_cast<Row>(boundary - start + behind);
        }
        start = stop;
    }
    while (out != end) {  // a last sample that is not full ends with the last document
        *out++ = static_cast<Row>(documents.size() - 1);
        *out++ = static_cast<Row>(length - spec.extra_tokens);
    }
}

NpyArray build_samples(const SequenceSource& source, const GptIndexSpec& spec, const EpochPlan& plan,
                       const GptIndexLayout& layout, const NpyArray& documents) {
    NpyArray array(layout.sample_type, {plan.samples + 1, 2});
    const auto size = static_cast<std::size_t>(array.size());
    const auto ids = documents.as<std::int32_t>();
    if (layout.sample_type == NpyType::i64) {
        fill_samples<std::int64_t>(source, ids, spec, {array.mutable_data<std::int64_t>(), size});
    } else {
        fill_samples<std::int32_t>(source, ids, spec, {array.mutable_data<std::int32_t>(), size});
    }
    return array;
}

template <class T>
void fill_shuffle(std::span<T> out, std::int64_t first_part, NumpyRandom& random) {
    std::iota(out.begin(), out.end(), T{0});
    const auto first = static_cast<std::size_t>(first_part);
    random.shuffle(out.first(first));
    if (first < out.size()) random.shuffle(out.subspan(first));
}

NpyArray build_shuffle(const EpochPlan& plan, const GptIndexLayout& layout, NumpyRandom& random) {
    NpyArray array(layout.shuffle_type, {plan.samples});
    const auto size = static_cast<std::size_t>(array.size());
    const std::int64_t first = plan.separate_last_epoch ? plan.samples_before_last : plan.samples;
    if (layout.shuffle_type == NpyType::i64) {
        fill_shuffle<std::int64_t>({array.mutable_data<std::int64_t>(), size}, first, random);
    } else {
        fill_shuffle<std::uint32_t>({array.mutable_data<std::uint32_t>(), size}, first, random);
    }
    return array;
}

}  // namespace

EpochPlan plan_epochs(std::int64_t tokens_per_epoch, const GptIndexSpec& spec) {
    const std::int64_t length = spec.sequence_length, extra = spec.extra_tokens;
    TERA_CHECK(tokens_per_epoch > 0 && length > 0 && (extra == 0 || extra == 1), "T ", tokens_per_epoch, ", S ",
               length);
    EpochPlan plan;
    plan.tokens_per_epoch = tokens_per_epoch;
    if (spec.num_samples.has_value()) {
        const std::int64_t needed = checked_product(*spec.num_samples, length) + extra;
        plan.epochs = std::max<std::int64_t>(1, (needed - 1) / tokens_per_epoch + 1);
    }
    const std::int64_t tokens = checked_product(plan.epochs, tokens_per_epoch) - extra;
    plan.samples = spec.drop_last_partial
                       ? tokens / length
                       : static_cast<std::int64_t>(std::ceil(static_cast<float>(tokens) / static_cast<float>(length)));
    if (plan.epochs > 1) {
        plan.samples_before_last = ((plan.epochs - 1) * tokens_per_epoch - extra) / length;
        const std::int64_t from_last = *spec.num_samples - plan.samples_before_last;
        const std::int64_t per_epoch = (tokens_per_epoch - extra) / length;
        plan.separate_last_epoch = from_last < static_cast<std::int64_t>(0.80 * static_cast<double>(per_epoch));
    }
    return plan;
}

std::int64_t count_tokens(const SequenceSource& source, SequenceRange range) {
    const std::byte* const lengths = source.lengths();
    std::int64_t tokens = 0;
    for (std::int64_t i = range.begin; i < range.end; ++i) tokens += load_length(lengths, i);
    return tokens;
}

GptIndexLayout gpt_index_layout(const SequenceSource& source, SequenceRange range, const EpochPlan& plan) {
    if (range.end > int32_max)
        usage_error(source.path(), ": ", range.end, " sequences; at most ", int32_max, " fit one dataset, split it");
    std::int64_t longest = 0;
    const std::byte* const lengths = source.lengths();
    for (std::int64_t i = range.begin; i < range.end; ++i)
        longest = std::max<std::int64_t>(longest, load_length(lengths, i));
    GptIndexLayout layout;
    layout.documents = checked_product(plan.epochs, range.size());
    if (std::max(layout.documents, longest) > int32_max) layout.sample_type = NpyType::i64;
    if (plan.samples >= std::int64_t{0xFFFFFFFE}) layout.shuffle_type = NpyType::i64;
    return layout;
}

GptIndex build_gpt_index(const SequenceSource& source, SequenceRange range, const GptIndexSpec& spec) {
    const std::int64_t tokens = count_tokens(source, range);
    if (tokens == 0) usage_error(source.path(), ": no tokens among ", range.size(), " sequences");
    GptIndex index;
    index.plan = plan_epochs(tokens, spec);
    const GptIndexLayout layout = gpt_index_layout(source, range, index.plan);
    NumpyRandom random(spec.seed);
    index.documents = build_documents(range, layout, index.plan, random);
    index.samples = build_samples(source, spec, index.plan, layout, index.documents);
    index.shuffle = build_shuffle(index.plan, layout, random);
    return index;
}

}  // namespace tera
