// The "model" of a tokenizer.json: what turns pieces of text into ids.
#pragma once

#include <memory>

#include "token/hf_pretokenizer.h"
#include "token/tokenizer.h"
#include "token/tokenizer_json.h"

namespace tera {

/// Immutable; encoders must not outlive it.
class HfTokenModel {
  public:
    virtual ~HfTokenModel() = default;
    virtual std::unique_ptr<HfPieceEncoder> make_encoder() const = 0;
    /// Cuts the text by the pattern as well; null if there is no such quick way.
    virtual std::unique_ptr<Encoder> make_text_encoder(PretokenPattern) const { return nullptr; }
};

/// `is_byte_level`: pieces come as bytes, which the vocabulary writes in the alphabet of token/byte_level.h. UsageError
/// for what is not known here or contradicts itself. Takes vocabulary and merges where it can.
std::unique_ptr<HfTokenModel> make_hf_model(const TokenizerJson& json, bool is_byte_level);

}  // namespace tera
