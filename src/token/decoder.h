// The "decoder" of a tokenizer.json: how tokens become text again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/json_file.h"

namespace tera {

class TokenDecoder {
  public:
    /// No decoder: tokens are joined by spaces.
    TokenDecoder() = default;
    /// UsageError for a type that is not known here.
    explicit TokenDecoder(const JsonObject& json);

    /// The text of the tokens. From ByteLevel it may hold bytes that are not valid UTF-8, where Hugging Face has
    /// U+FFFD.
    std::string decode(std::vector<std::string> tokens) const;
    /// Whether each token always gives the same text, whatever stands beside it: that of decode({token}).
    bool is_by_token() const { return is_by_token_; }

  private:
    using Step = std::function<void(std::vector<std::string>&)>;
    void add(const JsonObject& json, int depth);
    Step make_step(const JsonObject& json, const std::string& type) const;

    std::vector<Step> steps_;
    bool has_any_ = false;
    bool is_by_token_ = false;
};

}  // namespace tera
