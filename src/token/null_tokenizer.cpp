#include "token/null_tokenizer.h"

#include <charconv>
#include <limits>

#include "core/error.h"

namespace tera {

namespace {

class NullEncoder : public Encoder {
  public:
    explicit NullEncoder(std::int64_t vocab_size) : vocab_size_(vocab_size) {}

    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        const std::size_t first = ids.size();
        try {
            encode_numbers(text, ids);
        } catch (...) {
            ids.resize(first);
            throw;
        }
    }

  private:
    void encode_numbers(std::string_view text, std::vector<std::int32_t>& ids) const {
        const char* p = text.data();
        const char* end = p + text.size();
        for (;;) {
            std::int64_t id = -1;
            const auto [stop, problem] = std::from_chars(p, end, id);
            if (problem != std::errc() || (stop != end && *stop != ' '))
                usage_error("NullTokenizer: text must be integers separated by single spaces; it is not at byte ",
                            p - text.data());
            if (id < 0 || id >= vocab_size_)
                usage_error("NullTokenizer: token ", id, " at byte ", p - text.data(), " is not in 0..",
                            vocab_size_ - 1, " (--vocab-size ", vocab_size_ - 1, ")");
            ids.push_back(static_cast<std::int32_t>(id));
            if (stop == end) return;
            p = stop + 1;
        }
    }

    std::int64_t vocab_size_;
};

}  // namespace

NullTokenizer::NullTokenizer(std::int64_t size) : size_(size) {
    if (size < 1 || size >= std::numeric_limits<std::int32_t>::max())
        usage_error("--vocab-size ", size, " is out of range for NullTokenizer; use 1 to 2147483646");
}

std::unique_ptr<Encoder> NullTokenizer::make_encoder() const { return std::make_unique<NullEncoder>(vocab_size()); }

std::string NullTokenizer::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= vocab_size())
            usage_error("token id ", id, " is outside the vocabulary of ", vocab_size(), " entries");
        if (!text.empty()) text += ' ';
        text += std::to_string(id);
    }
    return text;
}

}  // namespace tera
