#include "data/inspect.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "io/crc32c.h"

namespace tera {
namespace {

constexpr std::int64_t chunk = 1 << 16;  // tokens read at a time

LengthStatistics document_lengths(const SequenceIndex& index) {
    LengthCounter counter;
    for (std::int64_t d = 0; d < index.documents(); ++d) {
        std::int64_t length = 0;
        for (std::int64_t i = index.document_index(d); i < index.document_index(d + 1); ++i) length += index.length(i);
        counter.add(length);
    }
    return counter.statistics();
}

/// Reads every token once, front to back.
class TokenReader {
  public:
    TokenReader(const IndexedDataset& data, const InspectOptions& options) : data_(data), options_(options) {}

    TokenCheck run() {
        const SequenceIndex& index = data_.index();
        const bool has_range = options_.vocab_size > 0;
        seen_.resize(static_cast<std::size_t>(has_range ? options_.vocab_size : std::int64_t{1} << 16));
        for (std::int64_t d = 0; d < index.documents(); ++d) {
            std::optional<std::int32_t> last;
            for (std::int64_t i = index.document_index(d); i < index.document_index(d + 1); ++i) {
                if (index.has_modes() && index.mode(i) != 0) continue;  // an image's bytes are no ids
                read_sequence(i, last);
            }
            if (options_.eod && last == options_.eod) ++result_.documents_ending_in_eod;
        }
        if (!any_) result_.max_id = -1;
        result_.different_ids = std::count(seen_.begin(), seen_.end(), true);
        return result_;
    }

  private:
    void read_sequence(std::int64_t i, std::optional<std::int32_t>& last) {
        const std::int64_t length = data_.index().length(i);
        for (std::int64_t at = 0; at < length; at += chunk) {
            const std::int64_t count = std::min(chunk, length - at);
            ids_.resize(static_cast<std::size_t>(count));
            data_.get(i, at, count, ids_.data());
            for (std::int64_t j = 0; j < count; ++j) note(ids_[static_cast<std::size_t>(j)], i, at + j);
            last = ids_.back();
        }
    }

    void note(std::int32_t id, std::int64_t sequence, std::int64_t token) {
        if (id < 0) usage_error(data_.bin_path(), ": sequence ", sequence, ", token ", token, ": negative id ", id);
        if (options_.vocab_size > 0 && id >= options_.vocab_size)
            usage_error(data_.bin_path(), ": sequence ", sequence, ", token ", token, ": id ", id,
                        " is outside the vocabulary of ", options_.vocab_size,
                        "; the file was made with another tokenizer or is damaged");
        const auto place = static_cast<std::size_t>(id);
        if (place >= seen_.size()) seen_.resize(std::bit_ceil(place + 1));
        seen_[place] = true;
        result_.min_id = any_ ? std::min<std::int64_t>(result_.min_id, id) : id;
        result_.max_id = any_ ? std::max<std::int64_t>(result_.max_id, id) : id;
        any_ = true;
    }

    const IndexedDataset& data_;
    const InspectOptions& options_;
    TokenCheck result_;
    std::vector<bool> seen_;
    std::vector<std::int32_t> ids_;
    bool any_ = false;
};

std::string checksum(const std::string& path) {
    const MappedFile file(path, MappedFile::Access::sequential);
    return crc32c_text(crc32c(0, file.bytes()));
}

}  // namespace

void LengthCounter::add(std::int64_t length) {
    const auto place = static_cast<std::size_t>(length);
    ++(place < short_.size() ? short_[place] : long_[length]);
}

LengthStatistics LengthCounter::statistics() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> counts;  // rising length, how often
    for (std::size_t i = 0; i < short_.size(); ++i)
        if (short_[i] > 0) counts.emplace_back(static_cast<std::int64_t>(i), short_[i]);
    counts.insert(counts.end(), long_.begin(), long_.end());
    LengthStatistics out;
    if (counts.empty()) return out;
    double sum = 0;
    for (const auto& [length, count] : counts) {
        out.count += count;
        sum += static_cast<double>(length) * static_cast<double>(count);
        const auto bin = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
        if (out.histogram.size() <= bin) out.histogram.resize(bin + 1);
        out.histogram[bin] += count;
    }
    const auto up_to = [&](std::int64_t percent) {
        std::int64_t passed = 0;
        std::size_t i = 0;
        while ((passed += counts[i].second) < (out.count * percent + 99) / 100) ++i;
        return counts[i].first;
    };
    out.min = counts.front().first;
    out.max = counts.back().first;
    out.zeros = out.histogram[0];
    out.mean = sum / static_cast<double>(out.count);
    out.median = up_to(50);
    out.p90 = up_to(90);
    out.p99 = up_to(99);
    return out;
}

Inspection inspect_dataset(const std::string& prefix, const InspectOptions& options) {
    const IndexedDataset data(prefix);
    const SequenceIndex& index = data.index();
    Inspection out;
    out.prefix = prefix;
    out.type = index.type();
    out.sequences = index.sequences();
    out.documents = index.documents();
    out.tokens = index.tokens();
    out.bin_bytes = regular_file_size(data.bin_path());
    out.idx_bytes = regular_file_size(data.idx_path());
    out.is_multimodal = index.has_modes();
    LengthCounter lengths;
    for (std::int64_t i = 0; i < index.sequences(); ++i) {
        lengths.add(index.length(i));
        if (index.has_modes() && index.mode(i) != 0) ++out.image_sequences;
    }
    out.sequence_lengths = lengths.statistics();
    out.document_lengths = document_lengths(index);
    if (!options.check) return out;
    if (out.bin_bytes != index.bin_size())
        usage_error(data.bin_path(), ": ", out.bin_bytes, " bytes, but ", data.idx_path(), " describes ",
                    index.bin_size(), "; the rest belongs to no sequence");
    out.check = TokenReader(data, options).run();
    out.check->bin_crc32c = checksum(data.bin_path());
    out.check->idx_crc32c = checksum(data.idx_path());
    return out;
}

}  // namespace tera
