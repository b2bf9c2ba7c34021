// For normalizer steps: rewriting text character by character.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "token/normalizer.h"
#include "token/utf8.h"

namespace tera {

inline CodePoint char_at(std::string_view text, std::size_t at) {
    return decode_utf8(text.data() + at, text.data() + text.size());
}

/// Writes `out` and finds where its head ends: where the first thing goes that came from behind the old head.
class HeadWriter {
  public:
    HeadWriter(NormalView in, NormalText& out) : in_(in), out_(out) {
        out.text.clear();
        out.head = 0;
    }
    /// What is appended from now on comes from here.
    void from(std::size_t at) {
        if (is_open_ && at >= in_.head) close();
    }
    void finish() {
        if (is_open_) close();
    }

  private:
    void close() {
        out_.head = out_.text.size();
        is_open_ = false;
    }
    NormalView in_;
    NormalText& out_;
    bool is_open_ = true;
};

/// rewrite(c, bytes, out) appends what becomes of one character and tells whether that is something else.
template <class Rewrite>
bool rewrite_chars(NormalView in, NormalText& out, Rewrite&& rewrite) {
    HeadWriter writer(in, out);
    bool changed = false;
    for (std::size_t at = 0; at < in.text.size();) {
        const CodePoint c = char_at(in.text, at);
        writer.from(at);
        changed |= rewrite(c.value, in.text.substr(at, c.bytes), out.text);
        at += c.bytes;
    }
    writer.finish();
    return changed;
}

template <class Rewrite>
class CharStep : public NormalizerStep {
  public:
    explicit CharStep(Rewrite rewrite) : rewrite_(std::move(rewrite)) {}
    bool apply(NormalView in, NormalText& out) const override { return rewrite_chars(in, out, rewrite_); }

  private:
    Rewrite rewrite_;
};

template <class Rewrite>
std::unique_ptr<NormalizerStep> char_step(Rewrite rewrite) {
    return std::make_unique<CharStep<Rewrite>>(std::move(rewrite));
}

template <class Drops>
std::unique_ptr<NormalizerStep> drop_step(Drops drops) {
    return char_step([drops](std::uint32_t c, std::string_view bytes, std::string& out) {
        if (drops(c)) return true;
        out += bytes;
        return false;
    });
}

}  // namespace tera
