#include "token/bert_text.h"

#include <algorithm>
#include <array>

#include "token/hf_unicode.h"
#include "token/unicode.h"

namespace tera {

namespace {

bool is_chinese(std::uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// The Unicode property Case_Ignorable: marks, modifiers, and punctuation that stands inside words.
bool is_case_ignorable(std::uint32_t c, Category category) {
    constexpr std::array<std::uint32_t, 17> inside_words = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,
                                                            0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                                            0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    return category == Category::mn || category == Category::me || category == Category::cf ||
           category == Category::lm || category == Category::sk ||
           std::find(inside_words.begin(), inside_words.end(), c) != inside_words.end();
}

/// The property Cased, for characters that are not case-ignorable.
bool is_cased(std::uint32_t c, Category category) {
    return category == Category::lu || category == Category::ll || category == Category::lt || c == 0xAA || c == 0xBA ||
           (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

/// Whether what is nearest to a sigma, on one side, is a letter with case.
template <class Iterator>
bool cased_first(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) {
        const Category category = general_category(*begin);
        if (!is_case_ignorable(*begin, category)) return is_cased(*begin, category);
    }
    return false;
}

bool is_final_sigma(const std::vector<std::uint32_t>& word, std::size_t at) {
    const auto here = word.begin() + static_cast<std::ptrdiff_t>(at);
    return cased_first(std::make_reverse_iterator(here), word.rend()) && !cased_first(here + 1, word.end());
}

void append_decomposed(std::uint32_t c, std::vector<std::uint32_t>& out) {
    using namespace hangul;
    if (c - s < ss) {
        const std::uint32_t index = c - s;
        out.push_back(l + index / (vs * ts));
        out.push_back(v + index % (vs * ts) / ts);
        if (index % ts != 0) out.push_back(t + index % ts);
        return;
    }
    const auto parts = decomposition(c, false);
    if (parts.empty())
        out.push_back(c);
    else
        out.insert(out.end(), parts.begin(), parts.end());
}

/// Runs of characters with a combining class, in its order.
void reorder(std::vector<std::uint32_t>& text) {
    const auto is_starter = [](std::uint32_t c) { return combining_class(c) == 0; };
    for (auto from = text.begin(); from != text.end();) {
        from = std::find_if_not(from, text.end(), is_starter);
        const auto to = std::find_if(from, text.end(), is_starter);
        std::stable_sort(from, to, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
        from = to;
    }
}

}  // namespace

BertChar bert_char(std::uint32_t c) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029) return BertChar::blank;
    if (c == 0 || c == 0xFFFD) return BertChar::dropped;
    if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126))
        return BertChar::punct;
    if (is_chinese(c)) return BertChar::chinese;
    const Category category = general_category(c);
    if (category == Category::cc || category == Category::cf) return BertChar::dropped;
    if (category == Category::zs) return BertChar::blank;
    if (category >= Category::pc && category <= Category::po) return BertChar::punct;
    return BertChar::part;
}

void bert_lower(const std::vector<std::uint32_t>& word, std::vector<std::uint32_t>& out) {
    constexpr std::uint32_t sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2;
    out.clear();
    for (std::size_t i = 0; i < word.size(); ++i) {
        const auto lower = lower_case(word[i]);
        if (word[i] == sigma) {
            out.push_back(is_final_sigma(word, i) ? final_sigma : small_sigma);
        } else if (lower.empty()) {
            append_decomposed(word[i], out);
        } else {
            for (const std::uint32_t c : lower) append_decomposed(c, out);
        }
    }
    reorder(out);
    std::erase_if(out, [](std::uint32_t c) { return general_category(c) == Category::mn; });
}

}  // namespace tera
