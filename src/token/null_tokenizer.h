// For text that is already token ids: decimal integers separated by single spaces.
#pragma once

#include "token/tokenizer.h"

namespace tera {

/// --vocab-size N: ids 0..N-1 for the text, N for the end of a document; vocab_size() = N + 1.
class NullTokenizer : public Tokenizer {
  public:
    explicit NullTokenizer(std::int64_t size);
    std::unique_ptr<Encoder> make_encoder() const override;
    std::string decode(std::span<const std::int32_t> ids) const override;
    std::int64_t vocab_size() const override { return size_ + 1; }
    std::int32_t eod() const override { return static_cast<std::int32_t>(size_); }
    std::string name() const override { return "NullTokenizer"; }

  private:
    std::int64_t size_;
};

}  // namespace tera
