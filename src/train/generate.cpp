#include "train/generate.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/rng.h"
#include "token/utf8.h"
#include "train/host_rows.h"

namespace tera {
namespace {

constexpr std::int64_t prompt_piece = 512;  // tokens per pass over a long prompt; bounds the memory of activations

/// A number in [0, 1) that depends on nothing but its arguments.
double uniform(std::uint64_t seed, std::uint64_t sample, std::uint64_t position) {
    const U32x4 r = philox(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                           {{static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                             static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)}});
    const std::uint64_t bits = (static_cast<std::uint64_t>(r.v[0]) << 32 | r.v[1]) >> 11;
    return static_cast<double>(bits) * 0x1p-53;
}

/// Bytes at the end of the text that may be the beginning of a character.
std::size_t unfinished_bytes(std::string_view text) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xC0) == 0x80) continue;
        const std::size_t length = byte > 0xF4 || byte < 0xC2 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
        return length > back ? back : 0;
    }
    return 0;
}

}  // namespace

void check_sampling(const SamplingConfig& c) {
    if (!(c.temperature >= 0) || !std::isfinite(c.temperature)) {
        usage_error("--temperature ", c.temperature, ": must be 0 (greedy) or positive");
    }
    if (c.top_k < 0) usage_error("--top-k ", c.top_k, ": must be 0 (all tokens) or positive");
    if (!(c.top_p > 0 && c.top_p <= 1)) usage_error("--top-p ", c.top_p, ": must be above 0 and at most 1");
}

std::int32_t Sampler::pick(std::span<const float> logits, std::uint64_t position) {
    const auto most_likely = std::max_element(logits.begin(), logits.end());
    const bool numbers = std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); });
    if (!numbers || !std::isfinite(*most_likely)) {
        usage_error("the model's output at position ", position,
                    " is not a number: its weights are damaged or diverged");
    }
    if (config_.greedy || config_.temperature == 0) return static_cast<std::int32_t>(most_likely - logits.begin());

    candidates_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i) candidates_.push_back({logits[i], static_cast<std::int32_t>(i)});
    keep_top_k();
    for (Candidate& c : candidates_) c.weight = std::exp((c.weight - *most_likely) / config_.temperature);
    keep_top_p();
    return draw(position);
}

void Sampler::keep_top_k() {
    const auto k = static_cast<std::size_t>(config_.top_k);
    if (k == 0 || k >= candidates_.size()) return;
    const auto end = candidates_.begin() + config_.top_k;
    std::partial_sort(candidates_.begin(), end, candidates_.end(), [](const Candidate& a, const Candidate& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    candidates_.erase(end, candidates_.end());
}

void Sampler::keep_top_p() {
    if (config_.top_p >= 1 || candidates_.size() < 2) return;
    double total = 0;
    for (const Candidate& c : candidates_) total += c.weight;
    // All tokens below this together are less than what top_p leaves out, so none of them is needed; there is much less
    // to sort without them.
    const double negligible = total * (1 - config_.top_p) / static_cast<double>(candidates_.size());
    std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < negligible; });
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    double sum = 0;
    std::size_t count = 0;
    while (count < candidates_.size() && sum < config_.top_p * total) sum += candidates_[count++].weight;
    candidates_.resize(std::max<std::size_t>(count, 1));
}

std::int32_t Sampler::draw(std::uint64_t position) const {
    double total = 0;
    for (const Candidate& c : candidates_) total += c.weight;
    double left = uniform(config_.seed, sample_, position) * total;
    for (const Candidate& c : candidates_) {
        if (left < c.weight) return c.id;
        left -= c.weight;
    }
    // Rounding can leave a last crumb; it belongs to the last token that can be drawn at all.
    const auto last =
        std::find_if(candidates_.rbegin(), candidates_.rend(), [](const Candidate& c) { return c.weight > 0; });
    return last->id;
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> context)
    : tokenizer_(tokenizer), ids_(context.begin(), context.end()), printed_(tokenizer.decode(ids_).size()) {}

std::string TextStream::push(std::int32_t id) {
    ids_.push_back(id);
    const std::string text = tokenizer_.decode(ids_);
    const std::size_t end = text.size() - unfinished_bytes(text);
    if (end <= printed_) return "";
    const std::string piece = text.substr(printed_, end - printed_);
    printed_ = end;
    return replace_invalid_utf8(piece);
}

std::string TextStream::finish() {
    const std::string text = tokenizer_.decode(ids_);
    const std::string piece = text.substr(std::min(printed_, text.size()));
    printed_ = text.size();
    return replace_invalid_utf8(piece);
}

Generator::Generator(const Decoder& model, Workspace& workspace, std::vector<std::int32_t> prompt,
                     std::int64_t max_new_tokens, std::int64_t vocab)
    : model_(model),
      workspace_(workspace),
      upload_(workspace.engine()),
      prompt_(std::move(prompt)),
      max_new_(max_new_tokens),
      vocab_(vocab),
      arena_(Arena::Kind::real, workspace.engine().memory()) {
    const std::int64_t positions = model.config().max_positions, length = static_cast<std::int64_t>(prompt_.size());
    if (prompt_.empty()) usage_error("the prompt is empty");
    if (length > positions) {
        usage_error("the prompt has ", length, " tokens, but the model has ", positions,
                    " positions; shorten the prompt");
    }
    for (const std::int32_t id : prompt_) {
        if (id < 0 || id >= vocab_) {
            usage_error("the prompt has token ", id, ", but the model's vocabulary ends at ", vocab_ - 1,
                        "; use the tokenizer that it was trained with");
        }
    }
    cache_ = model.make_cache(arena_, 1, std::min(positions, length + max_new_));
    for (std::int64_t at = 0; at < length; at += prompt_piece) {
        first_ = feed(std::span(prompt_).subspan(static_cast<std::size_t>(at),
                                                 static_cast<std::size_t>(std::min(prompt_piece, length - at))));
    }
}

/// Appends the tokens to the cache; the logits after the last of them.
std::vector<float> Generator::feed(std::span<const std::int32_t> tokens) {
    std::vector<std::int32_t> positions(tokens.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
        positions[i] = static_cast<std::int32_t>(cache_.length + static_cast<std::int64_t>(i));
    }
    MicroBatch batch;
    batch.S = static_cast<std::int64_t>(tokens.size());
    batch.B = 1;
    batch.tokens = tokens.data();
    batch.positions = positions.data();
    Ctx ctx = workspace_.ctx();
    const HostView host(ctx.keep, model_.next_logits(ctx, upload_.put(batch), cache_));
    const ConstTensor logits = host.tensor();
    std::vector<float> out(static_cast<std::size_t>(std::min(vocab_, logits.numel())));
    dispatch_float(logits.dtype, [&](auto zero) {
        const auto* from = logits.ptr<decltype(zero)>();
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(from[i]);
    });
    workspace_.reset();
    return out;
}

Generator::End Generator::run(const SamplingConfig& sampling, std::uint64_t sample, const Stop& stop,
                              const std::function<void(std::int32_t)>& on_token) {
    cache_.length = static_cast<std::int64_t>(prompt_.size());
    Sampler sampler(sampling, sample);
    std::vector<float> logits = first_;
    for (std::int64_t n = 0; n < max_new_; ++n) {
        const std::int64_t position = static_cast<std::int64_t>(prompt_.size()) + n;
        const std::int32_t id = sampler.pick(logits, static_cast<std::uint64_t>(position));
        if (stop.token == id) return End::stop_token;
        on_token(id);
        if (n + 1 == max_new_) break;
        if (cache_.length == cache_.max_length) return End::positions;
        logits = feed(std::span(&id, 1));
    }
    return End::length;
}

}  // namespace tera
