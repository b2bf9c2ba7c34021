// The "normalizer" of a tokenizer.json: steps that rewrite the text before it is cut into pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "token/hf_unicode.h"
#include "token/sentencepiece_normalizer.h"

namespace tera {

/// A stretch of text. The first `head` bytes come from the very first character of the document (Metaspace with
/// prepend_scheme "first" asks); 0 if the stretch begins elsewhere or that character was dropped.
struct NormalText {
    std::string text;
    std::size_t head = 0;
};
struct NormalView {
    std::string_view text;
    std::size_t head = 0;
};

class NormalizerStep {
  public:
    virtual ~NormalizerStep() = default;
    /// Writes what becomes of valid UTF-8 to `out`, whatever that held. False: it stays as it is, `out` is of no use.
    virtual bool apply(NormalView in, NormalText& out) const = 0;
};

class Normalizer {
  public:
    void add(std::unique_ptr<NormalizerStep> step) { steps_.push_back(std::move(step)); }
    bool empty() const { return steps_.empty(); }

    /// One per thread.
    struct Scratch {
        NormalText a, b;
    };
    /// The result is `in` itself or lives in the scratch memory until its next use.
    NormalView apply(NormalView in, Scratch& scratch) const;

  private:
    std::vector<std::unique_ptr<NormalizerStep>> steps_;
};

std::unique_ptr<NormalizerStep> unicode_form_step(NormalForm form);
std::unique_ptr<NormalizerStep> lowercase_step();
/// Drops combining marks.
std::unique_ptr<NormalizerStep> strip_accents_step();
/// Drops white space at the ends.
std::unique_ptr<NormalizerStep> strip_step(bool left, bool right);
/// Puts text in front of text that is not empty.
std::unique_ptr<NormalizerStep> prepend_step(std::string prefix);

/// What Replace looks for: a literal, or the few regular expressions that tokenizers use.
class ReplacePattern {
  public:
    static ReplacePattern literal(std::string text);
    /// `x`, `x+`, `x{n,}` where x is one character, perhaps escaped, or \s. Nothing for any other.
    static std::optional<ReplacePattern> regex(std::string_view regex);

    struct Match {
        std::size_t begin, end;  // npos, npos: none
    };
    Match find(std::string_view text, std::size_t from) const;

  private:
    bool is_run_ = false;  // of at least min_count_ times text_, or of white space
    bool is_space_ = false;
    std::size_t min_count_ = 1;
    std::string text_;
};
std::unique_ptr<NormalizerStep> replace_step(ReplacePattern pattern, std::string content);
std::string replace_all(std::string_view text, const ReplacePattern& pattern, std::string_view content);

struct BertNormalizerOptions {
    bool clean_text = true;            // drop control characters, make all white space a space
    bool handle_chinese_chars = true;  // put spaces around them
    bool strip_accents = true;         // NFD without nonspacing marks
    bool lowercase = true;
};
std::unique_ptr<NormalizerStep> bert_step(const BertNormalizerOptions& options);

/// Precompiled: SentencePiece's rules, applied as Hugging Face does: to each grapheme of fewer than 6 bytes the rule of
/// its shortest prefix, replacing the whole grapheme; else to each character.
std::unique_ptr<NormalizerStep> precompiled_step(CharsMap map);

/// Length of the grapheme that the text begins with.
std::size_t grapheme_length(std::string_view text);

}  // namespace tera
