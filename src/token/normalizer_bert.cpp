// BertNormalizer. ASCII, which is most text, goes through a table; what is between goes through the steps one by one.
// That is the same: all of them work on single characters but the order of marks, and no ASCII character is a mark.
#include <array>

#include "token/normalizer_char_step.h"
#include "token/unicode.h"

namespace tera {

namespace {

bool is_chinese(std::uint32_t c) {
    const auto in = [c](std::uint32_t low, std::uint32_t high) { return c >= low && c <= high; };
    // 2B920 is a slip of the original's; the block begins at 2B820.
    return in(0x4E00, 0x9FFF) || in(0x3400, 0x4DBF) || in(0x20000, 0x2A6DF) || in(0x2A700, 0x2B73F) ||
           in(0x2B740, 0x2B81F) || in(0x2B920, 0x2CEAF) || in(0xF900, 0xFAFF) || in(0x2F800, 0x2FA1F);
}

std::unique_ptr<NormalizerStep> clean_step() {
    return char_step([&chars = hf_chars()](std::uint32_t c, std::string_view bytes, std::string& out) {
        if (c > ' ' && c < 0x7F) {
            out += static_cast<char>(c);
            return false;
        }
        if (c == 0 || c == 0xFFFD || chars(c).is_control()) return true;
        const bool is_space = is_white_space(c);
        out += is_space ? std::string_view(" ") : bytes;
        return is_space && c != ' ';
    });
}

std::unique_ptr<NormalizerStep> chinese_step() {
    return char_step([](std::uint32_t c, std::string_view bytes, std::string& out) {
        if (c < 0x3400 || !is_chinese(c)) {
            out += bytes;
            return false;
        }
        out.append(1, ' ').append(bytes).append(1, ' ');
        return true;
    });
}

std::unique_ptr<NormalizerStep> strip_marks_step() {
    return drop_step([&chars = hf_chars()](std::uint32_t c) { return c >= 0x80 && chars(c).is_nonspacing_mark(); });
}

class BertStep : public NormalizerStep {
  public:
    explicit BertStep(const BertNormalizerOptions& options) {
        if (options.clean_text) steps_.add(clean_step());
        if (options.handle_chinese_chars) steps_.add(chinese_step());
        if (options.strip_accents) {
            steps_.add(unicode_form_step(NormalForm::nfd));
            steps_.add(strip_marks_step());
        }
        if (options.lowercase) steps_.add(lowercase_step());
        Normalizer::Scratch scratch;
        for (std::size_t c = 0; c < ascii_.size(); ++c) {
            const char byte = static_cast<char>(c);
            const std::string_view now = steps_.apply({{&byte, 1}, 0}, scratch).text;
            ascii_[c] = now.empty() ? dropped : static_cast<unsigned char>(now[0]);
        }
    }

    bool apply(NormalView in, NormalText& out) const override {
        Normalizer::Scratch scratch;
        out.text.clear();
        if (in.head > 0) {
            const NormalView all = steps_.apply(in, scratch);
            out.text = all.text;
            out.head = all.head;
            return true;
        }
        out.head = 0;
        const auto is_ascii = [&](std::size_t at) { return static_cast<unsigned char>(in.text[at]) < 0x80; };
        for (std::size_t at = 0; at < in.text.size();) {
            for (; at < in.text.size() && is_ascii(at); ++at) {
                const std::uint16_t now = ascii_[static_cast<unsigned char>(in.text[at])];
                if (now != dropped) out.text += static_cast<char>(now);
            }
            const std::size_t begin = at;
            while (at < in.text.size() && !is_ascii(at)) ++at;
            if (at > begin) out.text += steps_.apply({in.text.substr(begin, at - begin), 0}, scratch).text;
        }
        return true;
    }

  private:
    static constexpr std::uint16_t dropped = 0x100;
    Normalizer steps_;
    std::array<std::uint16_t, 128> ascii_{};
};

}  // namespace

std::unique_ptr<NormalizerStep> bert_step(const BertNormalizerOptions& options) {
    return std::make_unique<BertStep>(options);
}

}  // namespace tera
