#include "data/mock_source.h"

#include "core/error.h"
#include "data/random.h"

namespace tera {

MockSource::MockSource(std::int32_t eod_id, std::int64_t vocab_size) : eod_id_(eod_id), vocab_size_(vocab_size) {
    constexpr std::size_t documents = 100'000;
    constexpr std::int32_t length_limit = 4096;
    Pcg64 random;
    lengths_.resize(documents);
    for (std::int32_t& length : lengths_) length = random.integer(1, length_limit);
}

void MockSource::get(std::int64_t i, std::int64_t offset, std::int64_t count, std::int32_t* out) const {
    const std::int64_t length = sequence_length(i);
    TERA_CHECK(offset >= 0 && count >= 0 && offset + count <= length, "mock document ", i);
    for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t value = offset + k + 1;
        out[k] = static_cast<std::int32_t>(vocab_size_ > 0 ? value % vocab_size_ : value);
    }
    if (count > 0 && offset + count == length) out[count - 1] = eod_id_;
}

}  // namespace tera
