// The normal forms of Unicode. Most characters stay as they are and do not touch their neighbours ("plain"); only a
// plain character and the others that follow it up to the next plain one are taken apart, ordered and put together.
#include <algorithm>
#include <cstring>

#include "token/normalizer.h"
#include "token/utf8.h"

namespace tera {

namespace {

struct Mark {
    std::uint32_t code;
    int combining;
    bool in_head = false;
};

void decompose(std::uint32_t c, bool compatible, std::vector<Mark>& out) {
    using namespace hangul;
    if (c - s < ss) {
        const std::uint32_t index = c - s;
        out.push_back({l + index / (vs * ts), 0});
        out.push_back({v + index % (vs * ts) / ts, 0});
        if (index % ts != 0) out.push_back({t + index % ts, 0});
        return;
    }
    const auto parts = decomposition(c, compatible);
    if (parts.empty()) out.push_back({c, combining_class(c)});
    for (const std::uint32_t part : parts) out.push_back({part, combining_class(part)});
}

/// Runs of marks in the order of their classes.
void reorder(std::vector<Mark>& marks) {
    const auto is_starter = [](const Mark& m) { return m.combining == 0; };
    for (auto from = marks.begin(); from != marks.end();) {
        from = std::find_if_not(from, marks.end(), is_starter);
        const auto to = std::find_if(from, marks.end(), is_starter);
        std::stable_sort(from, to, [](const Mark& a, const Mark& b) { return a.combining < b.combining; });
        from = to;
    }
}

/// Each mark joins the starter before it if the two make a character and no mark of the same or a higher class is
/// between them.
void compose(std::vector<Mark>& marks) {
    constexpr std::size_t none = ~std::size_t{0};
    std::size_t kept = 0, starter = none;
    int last_class = -1;  // of what is kept behind the starter; -1: nothing
    for (const Mark& mark : marks) {
        if (starter != none && last_class < mark.combining) {
            if (const auto whole = composition(marks[starter].code, mark.code)) {
                marks[starter].code = *whole;
                continue;
            }
        }
        if (mark.combining == 0) {
            starter = kept;
            last_class = -1;
        } else {
            last_class = mark.combining;
        }
        marks[kept++] = mark;
    }
    marks.resize(kept);
}

class UnicodeFormStep : public NormalizerStep {
  public:
    explicit UnicodeFormStep(NormalForm form) : form_(form), chars_(hf_chars()) {}

    bool apply(NormalView in, NormalText& out) const override {
        constexpr std::size_t none = ~std::size_t{0};
        const std::string_view text = in.text;
        std::size_t copied = 0, plain = none;
        bool changed = false;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t ascii = ascii_end(text, at);
            if (ascii > at) {
                plain = ascii - 1;
                at = ascii;
                continue;
            }
            const std::size_t bytes = plain_bytes(text, at);
            if (bytes > 0) {
                plain = at;
                at += bytes;
                continue;
            }
            if (!changed) {
                out.text.clear();
                out.head = open;
                changed = true;
            }
            const std::size_t begin = plain != none && plain >= copied ? plain : at;
            while (at < text.size() && plain_bytes(text, at) == 0) at += char_at(text, at).bytes;
            copy(in, copied, begin, out);
            rewrite(in, begin, at, out);
            copied = at;
        }
        if (!changed) return false;
        copy(in, copied, text.size(), out);
        if (out.head == open) out.head = out.text.size();
        return true;
    }

  private:
    static CodePoint char_at(std::string_view text, std::size_t at) {
        return decode_utf8(text.data() + at, text.data() + text.size());
    }
    static std::size_t ascii_end(std::string_view text, std::size_t at) {
        for (std::uint64_t word = 0; text.size() - at >= 8; at += 8) {
            std::memcpy(&word, text.data() + at, 8);
            if (word & 0x8080808080808080) break;
        }
        while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
        return at;
    }
    /// Length of the character if it is plain, else 0.
    std::size_t plain_bytes(std::string_view text, std::size_t at) const {
        if (static_cast<unsigned char>(text[at]) < 0x80) return 1;
        const CodePoint c = char_at(text, at);
        return chars_(c.value).changes(form_) ? 0 : c.bytes;
    }
    static void copy(NormalView in, std::size_t begin, std::size_t end, NormalText& out) {
        if (out.head == open && in.head <= end) out.head = out.text.size() + std::max(in.head, begin) - begin;
        out.text += in.text.substr(begin, end - begin);
    }
    void rewrite(NormalView in, std::size_t begin, std::size_t end, NormalText& out) const {
        std::vector<Mark> marks;
        for (std::size_t at = begin; at < end;) {
            const CodePoint c = char_at(in.text, at);
            const std::size_t before = marks.size();
            decompose(c.value, is_compatible(form_), marks);
            for (std::size_t i = before; i < marks.size(); ++i) marks[i].in_head = at < in.head;
            at += c.bytes;
        }
        reorder(marks);
        if (composes(form_)) compose(marks);
        for (const Mark& mark : marks) {
            if (out.head == open && !mark.in_head) out.head = out.text.size();
            append_utf8(out.text, mark.code);
        }
    }

    static constexpr std::size_t open = ~std::size_t{0};  // a head that goes on
    NormalForm form_;
    const HfCharTable& chars_;
};

}  // namespace

std::unique_ptr<NormalizerStep> unicode_form_step(NormalForm form) { return std::make_unique<UnicodeFormStep>(form); }

}  // namespace tera
