// The "pre_tokenizer" of a tokenizer.json: steps that each cut the pieces of the step before into smaller ones. What
// comes out at the end goes to the model piece by piece; nothing is kept in between.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.h"
#include "token/normalizer.h"
#include "token/pretokenize.h"

namespace tera {

/// Turns one piece of text into ids. Has working memory: one per thread.
class HfPieceEncoder {
  public:
    virtual ~HfPieceEncoder() = default;
    /// Appends the ids of a piece, which is not empty.
    virtual void encode(std::string_view piece, std::vector<std::int32_t>& ids) = 0;
};

/// What becomes of the parts of a text that a pattern matches ("delimiters").
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct PretokenStep {
    enum class Kind {
        white_space,   // delimiters: each such character
        punctuation,   //
        numeric,       //
        words,         // runs of \w and runs of what is neither \w nor white space are kept, the rest is dropped
        literal,       // delimiters: `literal`
        pattern,       // delimiters: the pieces of `pattern`
        prefix_space,  // nothing is cut: a space is put in front unless there is one
        metaspace,     // spaces become `replacement`, one is put in front by `prepend`, cut before each if `split`
    };
    enum class Prepend { never, first, always };

    Kind kind;
    SplitBehavior behavior = SplitBehavior::isolated;
    bool invert = false;  // what the pattern does not match is the delimiter
    ReplacePattern literal = ReplacePattern::literal(" ");
    PretokenPattern pattern = PretokenPattern::gpt2;
    std::string replacement = "\u2581";
    Prepend prepend = Prepend::always;
    bool split = true;
};

class PreTokenizer {
  public:
    PreTokenizer() = default;
    /// UsageError for a type, a regular expression or an order of steps that is not known here.
    PreTokenizer(const JsonObject& json) { add(json, 0); }

    const std::vector<PretokenStep>& steps() const { return steps_; }
    /// The pieces are bytes, each to be written in the alphabet of token/byte_level.h for the model.
    bool is_byte_level() const { return is_byte_level_; }
    /// Whether a step asks where the document begins (NormalView::head).
    bool needs_head() const;
    /// The pattern, if cutting by it is all there is to do.
    std::optional<PretokenPattern> only_pattern() const;

  private:
    void add(const JsonObject& json, int depth);
    void add_split(const JsonObject& json);
    void add_metaspace(const JsonObject& json);
    void add_byte_level(const JsonObject& json);

    std::vector<PretokenStep> steps_;
    bool is_byte_level_ = false;
};

/// Cuts text and hands the pieces on; one per thread.
class PieceSplitter {
  public:
    PieceSplitter(const PreTokenizer& pre_tokenizer, HfPieceEncoder& model)
        : steps_(pre_tokenizer.steps()), model_(model), buffers_(steps_.size()), chars_(hf_chars()) {}

    /// Appends the ids of a stretch of text (valid UTF-8).
    void encode(NormalView text, std::vector<std::int32_t>& ids) { run(0, text, ids); }

  private:
    void run(std::size_t step, NormalView text, std::vector<std::int32_t>& ids);
    void run_metaspace(std::size_t step, NormalView text, std::vector<std::int32_t>& ids);
    template <class Emit>
    void find_matches(const PretokenStep& step, std::string_view text, Emit&& emit) const;

    const std::vector<PretokenStep>& steps_;
    HfPieceEncoder& model_;
    std::vector<std::string> buffers_;  // one for each step that rewrites
    const HfCharTable& chars_;
};

}  // namespace tera
