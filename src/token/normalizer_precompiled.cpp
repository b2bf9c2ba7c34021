#include <algorithm>

#include "token/normalizer.h"
#include "token/utf8.h"

namespace tera {

namespace {

CodePoint char_at(std::string_view text, std::size_t at) {
    return decode_utf8(text.data() + at, text.data() + text.size());
}

/// What has to be known of the characters so far to tell whether the next one belongs to the same grapheme. The rules
/// are named as in Unicode annex 29.
class GraphemeState {
  public:
    explicit GraphemeState(HfChar first) { take(first); }

    bool joins(HfChar next) const {
        using B = GraphemeBreak;
        const B cur = next.grapheme_break();
        if (last_ == B::cr && cur == B::lf) return true;                                         // GB3
        if (is_control(last_) || is_control(cur)) return false;                                  // GB4, GB5
        if (cur == B::extend || cur == B::zwj || cur == B::spacing_mark) return true;            // GB9, GB9a
        if (last_ == B::prepend) return true;                                                    // GB9b
        if (after_linker_ && next.conjunct() == IndicConjunct::consonant) return true;           // GB9c
        if (after_pictographic_zwj_ && next.is_pictographic()) return true;                      // GB11
        if (cur == B::regional_indicator) return last_ == cur && regional_indicators_ % 2 == 1;  // GB12, GB13
        const bool is_vowel = last_ == B::hangul_lv || last_ == B::hangul_v;
        if (last_ == B::hangul_l) return cur >= B::hangul_l && cur != B::hangul_t;                  // GB6
        if (is_vowel && cur == B::hangul_v) return true;                                            // GB7
        return cur == B::hangul_t && (is_vowel || last_ == B::hangul_lvt || last_ == B::hangul_t);  // GB7, GB8
    }

    void take(HfChar c) {
        last_ = c.grapheme_break();
        regional_indicators_ = last_ == GraphemeBreak::regional_indicator ? regional_indicators_ + 1 : 0;
        after_pictographic_zwj_ = after_pictographic_ && last_ == GraphemeBreak::zwj;
        after_pictographic_ = c.is_pictographic() || (after_pictographic_ && last_ == GraphemeBreak::extend);
        const IndicConjunct conjunct = c.conjunct();
        const bool goes_on = conjunct == IndicConjunct::linker || conjunct == IndicConjunct::extend;
        after_linker_ = after_consonant_ && goes_on && (after_linker_ || conjunct == IndicConjunct::linker);
        after_consonant_ = conjunct == IndicConjunct::consonant || (after_consonant_ && goes_on);
    }

  private:
    static bool is_control(GraphemeBreak b) { return b >= GraphemeBreak::cr && b <= GraphemeBreak::control; }

    GraphemeBreak last_ = GraphemeBreak::other;
    std::size_t regional_indicators_ = 0;
    bool after_pictographic_ = false, after_pictographic_zwj_ = false;
    bool after_consonant_ = false, after_linker_ = false;
};

class PrecompiledStep : public NormalizerStep {
  public:
    explicit PrecompiledStep(CharsMap map) : map_(std::move(map)) {
        for (int c = 0; c < 128; ++c) {
            const char byte = static_cast<char>(c);
            ascii_stays_[static_cast<std::size_t>(c)] = !find({&byte, 1});
        }
    }

    bool apply(NormalView in, NormalText& out) const override {
        constexpr std::size_t longest_ruled = 5;  // bytes of a grapheme that a rule replaces as a whole
        const std::string_view text = in.text;
        out.text.clear();
        bool changed = false, head_open = true;
        for (std::size_t at = 0; at < text.size();) {
            // Characters that vanish at the very beginning leave their place to the next (as in the original).
            if (head_open && at >= in.head && (in.head == 0 || !out.text.empty())) {
                out.head = out.text.size();
                head_open = false;
            }
            if (stands_alone(text, at)) {
                out.text += text[at++];
                continue;
            }
            const std::size_t length = grapheme_length(text.substr(at));
            const std::string_view grapheme = text.substr(at, length);
            at += length;
            if (length <= longest_ruled && add_ruled(grapheme, out.text)) {
                changed = true;
                continue;
            }
            for (std::size_t i = 0; i < length;) {
                const std::string_view c = grapheme.substr(i, char_at(grapheme, i).bytes);
                if (add_ruled(c, out.text))
                    changed = true;
                else
                    out.text += c;
                i += c.size();
            }
        }
        if (head_open) out.head = out.text.size();
        return changed;
    }

  private:
    /// Whether an ASCII character without a rule is a grapheme of its own, as nearly all are.
    bool stands_alone(std::string_view text, std::size_t at) const {
        const auto c = static_cast<unsigned char>(text[at]);
        if (c >= 0x80 || !ascii_stays_[c]) return false;
        return at + 1 == text.size() || (static_cast<unsigned char>(text[at + 1]) < 0x80 && c != '\r');
    }
    /// Replacement of the shortest prefix that has a rule.
    std::optional<std::string_view> find(std::string_view text) const {
        text = text.substr(0, text.find('\0'));  // strings in the rules end there
        const std::size_t most = map_.longest(text).length;
        for (std::size_t length = 1; length <= most; ++length) {
            const CharsMap::Match match = map_.longest(text.substr(0, length));
            if (match.length == length) return match.replacement;
        }
        return std::nullopt;
    }
    bool add_ruled(std::string_view text, std::string& out) const {
        const auto found = find(text);
        if (!found) return false;
        if (find_invalid_utf8(*found) == std::string_view::npos)
            out += *found;
        else
            out += replace_invalid_utf8(*found);  // a damaged file; what follows counts on valid text
        return true;
    }

    CharsMap map_;
    std::array<bool, 128> ascii_stays_{};
};

}  // namespace

std::size_t grapheme_length(std::string_view text) {
    const HfCharTable& chars = hf_chars();
    CodePoint c = char_at(text, 0);
    GraphemeState state(chars(c.value));
    std::size_t at = c.bytes;
    for (; at < text.size(); at += c.bytes) {
        c = char_at(text, at);
        if (!state.joins(chars(c.value))) break;
        state.take(chars(c.value));
    }
    return at;
}

std::unique_ptr<NormalizerStep> precompiled_step(CharsMap map) {
    return std::make_unique<PrecompiledStep>(std::move(map));
}

}  // namespace tera
