#include "data/gpt_dataset.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

GptDataset::GptDataset(std::shared_ptr<const SequenceSource> source, SequenceRange range, GptIndex index,
                       Options options)
    : source_(std::move(source)), range_(range), index_(std::move(index)), options_(options) {
    TERA_CHECK(index_.samples.size() == 2 * (size() + 1) && index_.shuffle.size() == size(), source_->path());
}

std::int32_t GptDataset::read(std::int64_t i, std::int32_t* out) const {
    TERA_CHECK(i >= 0 && i < size(), source_->path(), ": sample ", i, " of ", size());
    const std::int64_t row = index_.shuffle[i];
    const bool row_good = row >= 0 && row < size();
    const std::int64_t at = row_good ? 2 * row : 0;
    const std::int64_t first = index_.samples[at], first_offset = index_.samples[at + 1];
    const std::int64_t last = index_.samples[at + 2], last_offset = index_.samples[at + 3];
    std::int64_t filled = 0;
    // The arrays may come from a cache file, so nothing in them is trusted.
    bool good = row_good && first >= 0 && first <= last && last < index_.documents.size();
    for (std::int64_t d = first; good && d <= last; ++d) {
        const std::int64_t sequence = index_.documents[d];
        good = sequence >= range_.begin && sequence < range_.end;
        if (!good) break;
        const std::int64_t length = source_->sequence_length(sequence);
        const std::int64_t begin = d == first ? first_offset : 0;
        const std::int64_t end = d == last ? last_offset + options_.extra_tokens : length;
        good = begin >= 0 && begin <= end && end <= length && end - begin <= sample_length() - filled;
        if (!good) break;
        source_->get(sequence, begin, end - begin, out + filled);
        check_tokens(sequence, begin, end - begin, out + filled);
        filled += end - begin;
    }
    if (!good)
        usage_error(source_->path(), ": the index cache is damaged at sample ", i,
                    "; delete its files in --data-cache-path");
    std::fill(out + filled, out + sample_length(), options_.pad_id);
    return 0;
}

void GptDataset::check_tokens(std::int64_t sequence, std::int64_t offset, std::int64_t count,
                              const std::int32_t* ids) const {
    if (options_.vocab_size <= 0) return;
    const auto limit = static_cast<std::uint32_t>(std::min<std::int64_t>(options_.vocab_size, 0x7FFFFFFF));
    std::uint32_t largest = 0;  // a negative id is a large one
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<std::uint32_t>(ids[i]));
    if (count == 0 || largest < limit) return;
    std::int64_t i = 0;
    while (static_cast<std::uint32_t>(ids[i]) < limit) ++i;
    usage_error(source_->path(), ".bin: sequence ", sequence, ", token ", offset + i, ": id ", ids[i],
                " is outside the vocabulary of ", options_.vocab_size, "; was the data made with another tokenizer?");
}

}  // namespace tera
