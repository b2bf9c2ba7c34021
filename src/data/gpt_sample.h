// From the S + 1 token ids of a sample to what a training step needs of it.
//
//   tokens     ids 0 .. S-1                labels     ids 1 .. S (what each position must predict)
//   loss_mask  1; 0 where the label is the pad id, with eod_mask_loss where the token is eod, with goldfish where
//   dropped positions  0 .. S-1; with reset_position_ids again from 0 after each eod doc_start  the position at which
//   the document of each token begins (an eod belongs to the document it ends); with
//              reset_attention_mask a token sees positions doc_start .. itself, otherwise doc_start is 0
// Pad ids become 0 in tokens and labels once the masks are made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tera {

struct GptSampleOptions {
    std::int64_t sequence_length = 0;  // S
    std::int64_t extra_tokens = 1;     // x: 0 if samples have S ids; then labels are the tokens moved by one, last pad
    std::int32_t eod_id = -1;
    std::int32_t pad_id = -1;  // -1: the tokenizer has none
    bool reset_position_ids = false;
    bool reset_attention_mask = false;
    bool eod_mask_loss = false;
    bool goldfish_loss = false;
    std::int64_t goldfish_k = 50;  // one label in k is dropped from the loss ...
    std::int64_t goldfish_h = 50;  // ... chosen by a hash of the last h labels
};

struct GptSample {
    std::vector<std::int32_t> tokens, labels, positions, doc_start;  // [S]
    std::vector<float> loss_mask;                                    // [S]
};

/// `ids` holds S + x ids. The vectors of `out` are resized as needed.
void make_gpt_sample(const GptSampleOptions& options, std::span<const std::int32_t> ids, GptSample& out);

/// Sets the mask to 0 where the hash of the labels i-h+1 .. i (their product, wrapped to 64 bits, modulo 1 000 003)
/// picks an entry below 1/k from a fixed table of uniform numbers.
void apply_goldfish(std::span<const std::int32_t> labels, std::int64_t k, std::int64_t h, std::span<float> loss_mask);

}  // namespace tera
