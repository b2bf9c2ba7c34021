#include "token/normalizer.h"

#include <algorithm>

#include "token/normalizer_char_step.h"
#include "token/unicode.h"

namespace tera {

namespace {

bool is_ascii_punctuation(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

class StripStep : public NormalizerStep {
  public:
    StripStep(bool left, bool right) : left_(left), right_(right) {}

    bool apply(NormalView in, NormalText& out) const override {
        std::size_t begin = 0, end = in.text.size();
        while (left_ && begin < end) {
            const CodePoint c = char_at(in.text, begin);
            if (!is_white_space(c.value)) break;
            begin += c.bytes;
        }
        while (right_ && begin < end) {
            std::size_t last = end - 1;
            while ((in.text[last] & 0xC0) == 0x80) --last;
            if (!is_white_space(char_at(in.text, last).value)) break;
            end = last;
        }
        if (begin == 0 && end == in.text.size()) return false;
        out.text.assign(in.text.substr(begin, end - begin));
        out.head = in.head > begin ? std::min(in.head, end) - begin : 0;
        return true;
    }

  private:
    bool left_, right_;
};

class PrependStep : public NormalizerStep {
  public:
    explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}

    bool apply(NormalView in, NormalText& out) const override {
        if (in.text.empty()) return false;
        out.text.assign(prefix_).append(in.text);
        out.head = in.head > 0 ? in.head + prefix_.size() : 0;
        return true;
    }

  private:
    std::string prefix_;
};

class ReplaceStep : public NormalizerStep {
  public:
    ReplaceStep(ReplacePattern pattern, std::string content)
        : pattern_(std::move(pattern)), content_(std::move(content)) {}

    bool apply(NormalView in, NormalText& out) const override {
        auto match = pattern_.find(in.text, 0);
        if (match.begin == std::string_view::npos) return false;
        HeadWriter writer(in, out);
        std::size_t copied = 0;
        const auto copy_to = [&](std::size_t end) {
            const std::size_t middle = std::clamp(in.head, copied, end);
            out.text += in.text.substr(copied, middle - copied);
            writer.from(middle);
            out.text += in.text.substr(middle, end - middle);
        };
        for (; match.begin != std::string_view::npos; match = pattern_.find(in.text, copied)) {
            copy_to(match.begin);
            writer.from(match.end - 1);
            out.text += content_;
            copied = match.end;
        }
        copy_to(in.text.size());
        writer.finish();
        return true;
    }

  private:
    ReplacePattern pattern_;
    std::string content_;
};

}  // namespace

NormalView Normalizer::apply(NormalView in, Scratch& scratch) const {
    NormalText* out = &scratch.a;
    NormalText* other = &scratch.b;
    for (const auto& step : steps_) {
        if (!step->apply(in, *out)) continue;
        in = {out->text, out->head};
        std::swap(out, other);
    }
    return in;
}

std::unique_ptr<NormalizerStep> lowercase_step() {
    return char_step([&chars = hf_chars()](std::uint32_t c, std::string_view bytes, std::string& out) {
        if (c < 0x80) {
            const bool is_upper = c >= 'A' && c <= 'Z';
            out += static_cast<char>(is_upper ? c | 0x20 : c);
            return is_upper;
        }
        if (!chars(c).is_upper()) {
            out += bytes;
            return false;
        }
        for (const std::uint32_t lower : lower_case(c)) append_utf8(out, lower);
        return true;
    });
}

std::unique_ptr<NormalizerStep> strip_accents_step() {
    return drop_step([&chars = hf_chars()](std::uint32_t c) { return c >= 0x80 && chars(c).is_combining_mark(); });
}

std::unique_ptr<NormalizerStep> strip_step(bool left, bool right) { return std::make_unique<StripStep>(left, right); }

std::unique_ptr<NormalizerStep> prepend_step(std::string prefix) {
    return std::make_unique<PrependStep>(std::move(prefix));
}

std::unique_ptr<NormalizerStep> replace_step(ReplacePattern pattern, std::string content) {
    return std::make_unique<ReplaceStep>(std::move(pattern), std::move(content));
}

std::string replace_all(std::string_view text, const ReplacePattern& pattern, std::string_view content) {
    std::string out;
    std::size_t copied = 0;
    for (auto match = pattern.find(text, 0); match.begin != std::string_view::npos;
         match = pattern.find(text, copied)) {
        out.append(text.substr(copied, match.begin - copied)).append(content);
        copied = match.end;
    }
    return out.append(text.substr(copied));
}

ReplacePattern ReplacePattern::literal(std::string text) {
    ReplacePattern pattern;
    pattern.text_ = std::move(text);
    return pattern;
}

std::optional<ReplacePattern> ReplacePattern::regex(std::string_view regex) {
    constexpr std::string_view special = R"(.^$*+?()[]{}|\)";
    ReplacePattern pattern;
    std::size_t atoms = 0;
    while (!regex.empty() && (special.find(regex[0]) == std::string_view::npos || regex[0] == '\\')) {
        if (regex.starts_with("\\s")) {
            pattern.is_space_ = pattern.is_run_ = true;
            regex.remove_prefix(2);
        } else {
            const bool is_escaped = regex[0] == '\\';
            if (is_escaped) regex.remove_prefix(1);
            // Letters and digits mean something else behind a backslash.
            if (regex.empty() || (is_escaped && !is_ascii_punctuation(regex[0]))) return std::nullopt;
            const std::size_t bytes = char_at(regex, 0).bytes;
            pattern.text_ += regex.substr(0, bytes);
            regex.remove_prefix(bytes);
        }
        ++atoms;
    }
    if (atoms == 0 || (pattern.is_space_ && atoms > 1)) return std::nullopt;
    if (regex.empty()) {
        if (pattern.is_space_) return std::nullopt;  // one by one, not runs: nobody uses it
        return pattern;
    }
    if (atoms > 1) return std::nullopt;
    pattern.is_run_ = true;
    if (regex == "+") return pattern;
    if (regex.size() < 4 || regex.size() > 6 || regex[0] != '{' || !regex.ends_with(",}")) return std::nullopt;
    pattern.min_count_ = 0;
    for (const char digit : regex.substr(1, regex.size() - 3)) {
        if (digit < '0' || digit > '9') return std::nullopt;
        pattern.min_count_ = pattern.min_count_ * 10 + static_cast<std::size_t>(digit - '0');
    }
    if (pattern.min_count_ == 0) return std::nullopt;
    return pattern;
}

ReplacePattern::Match ReplacePattern::find(std::string_view text, std::size_t from) const {
    constexpr std::size_t npos = std::string_view::npos;
    if (!is_run_) {
        const std::size_t at = text.find(text_, from);
        return at == npos ? Match{npos, npos} : Match{at, at + text_.size()};
    }
    for (std::size_t at = from; at < text.size();) {
        if (!is_space_) {
            at = text.find(text_, at);
            if (at == npos) break;
        }
        std::size_t end = at, count = 0;
        while (end < text.size()) {
            if (is_space_) {
                const CodePoint c = char_at(text, end);
                if (!is_white_space(c.value)) break;
                end += c.bytes;
            } else {
                if (text.compare(end, text_.size(), text_) != 0) break;
                end += text_.size();
            }
            ++count;
        }
        if (count > 0 && count >= min_count_) return {at, end};
        at = count > 0 ? end : end + char_at(text, end).bytes;
    }
    return {npos, npos};
}

}  // namespace tera
