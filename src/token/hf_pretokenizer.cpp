#include "token/hf_pretokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "token/unicode.h"
#include "token/utf8.h"

namespace tera {

namespace {

SplitBehavior behavior_of(const JsonObject& json) {
    const std::string name = json.text("behavior", "Isolated");
    if (name == "Removed") return SplitBehavior::removed;
    if (name == "Isolated") return SplitBehavior::isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
    if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
    if (name == "Contiguous") return SplitBehavior::contiguous;
    usage_error(json.where(), ": behavior \"", name, "\" is unknown");
}

/// Receives a text's parts in order, each a match or not, and hands on what the behaviour makes of them.
template <class Emit>
class BehaviorFilter {
  public:
    BehaviorFilter(SplitBehavior behavior, Emit& emit) : behavior_(behavior), emit_(emit) {}

    void add(std::size_t begin, std::size_t end, bool is_match) {
        switch (behavior_) {
            case SplitBehavior::removed:
                if (!is_match) emit_(begin, end);
                break;
            case SplitBehavior::isolated:
                emit_(begin, end);
                break;
            case SplitBehavior::contiguous:
                push(begin, end, is_match == was_match_);
                break;
            case SplitBehavior::merged_with_previous:
                push(begin, end, is_match && !was_match_);
                break;
            case SplitBehavior::merged_with_next:
                push(begin, end, !is_match && was_match_);
                break;
        }
        was_match_ = is_match;
    }
    void finish() {
        if (is_held_) emit_(begin_, end_);
    }

  private:
    void push(std::size_t begin, std::size_t end, bool joins) {
        if (is_held_ && joins) {
            end_ = end;
            return;
        }
        finish();
        begin_ = begin;
        end_ = end;
        is_held_ = true;
    }

    SplitBehavior behavior_;
    Emit& emit_;
    bool was_match_ = false, is_held_ = false;
    std::size_t begin_ = 0, end_ = 0;
};

}  // namespace

void PreTokenizer::add(const JsonObject& json, int depth) {
    using Kind = PretokenStep::Kind;
    const std::string type = json.text("type");
    if (is_byte_level_) usage_error(json.where(), ": a pre-tokenizer behind ByteLevel is not supported");
    if (type == "Sequence") {
        if (depth > 8) usage_error(json.where(), ": pre-tokenizers nested more than 8 deep");
        const auto& parts = json.value("pretokenizers");
        if (!parts.is_array()) json.fail("pretokenizers", "must be a list");
        for (const auto& part : parts) add(JsonObject(part, json.where()), depth + 1);
    } else if (type == "ByteLevel") {
        add_byte_level(json);
    } else if (type == "Split") {
        add_split(json);
    } else if (type == "Metaspace") {
        add_metaspace(json);
    } else if (type == "Whitespace") {
        steps_.push_back({Kind::words, SplitBehavior::removed, true});
    } else if (type == "WhitespaceSplit") {
        steps_.push_back({Kind::white_space, SplitBehavior::removed});
    } else if (type == "BertPreTokenizer") {
        steps_.push_back({Kind::white_space, SplitBehavior::removed});
        steps_.push_back({Kind::punctuation, SplitBehavior::isolated});
    } else if (type == "Punctuation") {
        steps_.push_back({Kind::punctuation, behavior_of(json)});
    } else if (type == "Digits") {
        const bool one_by_one = json.boolean("individual_digits", false);
        steps_.push_back({Kind::numeric, one_by_one ? SplitBehavior::isolated : SplitBehavior::contiguous});
    } else {
        usage_error(json.where(), ": pre-tokenizer \"", type,
                    "\" is not supported; known are Sequence, ByteLevel, Split, Metaspace, Whitespace, "
                    "WhitespaceSplit, BertPreTokenizer, Punctuation and Digits");
    }
}

void PreTokenizer::add_byte_level(const JsonObject& json) {
    if (json.boolean("add_prefix_space", true)) steps_.push_back({PretokenStep::Kind::prefix_space});
    if (json.boolean("use_regex", true)) steps_.push_back({PretokenStep::Kind::pattern});
    is_byte_level_ = true;
}

void PreTokenizer::add_split(const JsonObject& json) {
    PretokenStep step{PretokenStep::Kind::literal, behavior_of(json), json.boolean("invert", false)};
    const JsonObject pattern = json.object("pattern");
    if (pattern.has("String")) {
        step.literal = ReplacePattern::literal(pattern.text("String"));
        if (pattern.text("String").empty()) usage_error(json.where(), ": Split on the empty string");
    } else {
        const std::string regex = pattern.text("Regex");
        if (const auto known = pretoken_pattern_of(regex)) {
            step.kind = PretokenStep::Kind::pattern;
            step.pattern = *known;
        } else if (const auto simple = ReplacePattern::regex(regex)) {
            step.literal = *simple;
        } else {
            usage_error(json.where(), ": Split by the regular expression \"", regex,
                        "\" is not supported; known are those of GPT-2, Llama 3, Qwen, Mistral Nemo and tiktoken");
        }
    }
    steps_.push_back(std::move(step));
}

void PreTokenizer::add_metaspace(const JsonObject& json) {
    PretokenStep step{PretokenStep::Kind::metaspace};
    step.replacement = json.text("replacement");
    if (count_utf8(step.replacement) != 1) json.fail("replacement", "must be one character");
    const std::string scheme = json.text("prepend_scheme", json.boolean("add_prefix_space", true) ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never")
        usage_error(json.where(), ": prepend_scheme \"", scheme, "\" is unknown; use always, first or never");
    step.prepend = scheme == "always"  ? PretokenStep::Prepend::always
                   : scheme == "first" ? PretokenStep::Prepend::first
                                       : PretokenStep::Prepend::never;
    step.split = json.boolean("split", true);
    steps_.push_back(std::move(step));
}

bool PreTokenizer::needs_head() const {
    return std::any_of(steps_.begin(), steps_.end(), [](const PretokenStep& step) {
        return step.kind == PretokenStep::Kind::metaspace && step.prepend == PretokenStep::Prepend::first;
    });
}

std::optional<PretokenPattern> PreTokenizer::only_pattern() const {
    if (steps_.size() != 1 || steps_[0].kind != PretokenStep::Kind::pattern) return std::nullopt;
    // Every character belongs to a match, so that with "invert" nothing is a delimiter.
    const PretokenStep& step = steps_[0];
    const bool keeps_pieces =
        step.behavior == SplitBehavior::isolated || (step.behavior == SplitBehavior::removed && step.invert);
    return keeps_pieces ? std::optional(step.pattern) : std::nullopt;
}

/// Calls emit(begin, end, is_match) for consecutive parts that make up the text.
template <class Emit>
void PieceSplitter::find_matches(const PretokenStep& step, std::string_view text, Emit&& emit) const {
    using Kind = PretokenStep::Kind;
    const char* end = text.data() + text.size();
    if (step.kind == Kind::pattern) {
        for (const char* p = text.data(); p < end;) {
            const char* stop = piece_end(step.pattern, p, end);
            emit(static_cast<std::size_t>(p - text.data()), static_cast<std::size_t>(stop - text.data()), true);
            p = stop;
        }
        return;
    }
    std::size_t done = 0;
    const auto add_match = [&](std::size_t begin, std::size_t match_end) {
        if (done < begin) emit(done, begin, false);
        emit(begin, match_end, true);
        done = match_end;
    };
    if (step.kind == Kind::literal) {
        for (auto match = step.literal.find(text, 0); match.begin != std::string_view::npos;
             match = step.literal.find(text, match.end))
            add_match(match.begin, match.end);
    } else {
        std::size_t run = 0;  // of words: where the run of one class began
        int run_class = 0;    // 0: white space
        for (std::size_t at = 0; at < text.size();) {
            const CodePoint c = decode_utf8(text.data() + at, end);
            if (step.kind == Kind::words) {
                const int its_class = chars_(c.value).is_word() ? 1 : is_white_space(c.value) ? 0 : 2;
                if (its_class != run_class) {
                    if (run_class != 0) add_match(run, at);
                    run = at;
                    run_class = its_class;
                }
            } else {
                const bool matches = step.kind == Kind::white_space   ? is_white_space(c.value)
                                     : step.kind == Kind::punctuation ? chars_(c.value).is_punctuation()
                                                                      : chars_(c.value).is_numeric();
                if (matches) add_match(at, at + c.bytes);
            }
            at += c.bytes;
        }
        if (run_class != 0) add_match(run, text.size());
    }
    if (done < text.size()) emit(done, text.size(), false);
}

void PieceSplitter::run(std::size_t at, NormalView text, std::vector<std::int32_t>& ids) {
    if (text.text.empty()) return;
    if (at == steps_.size()) {
        model_.encode(text.text, ids);
        return;
    }
    const PretokenStep& step = steps_[at];
    if (step.kind == PretokenStep::Kind::metaspace) return run_metaspace(at, text, ids);
    if (step.kind == PretokenStep::Kind::prefix_space) {
        if (text.text[0] == ' ') return run(at + 1, text, ids);
        buffers_[at].assign(1, ' ').append(text.text);
        return run(at + 1, {buffers_[at], text.head > 0 ? text.head + 1 : 0}, ids);
    }
    const auto emit = [&](std::size_t begin, std::size_t end) {
        run(at + 1, {text.text.substr(begin, end - begin), text.head > begin ? text.head - begin : 0}, ids);
    };
    BehaviorFilter filter(step.behavior, emit);
    find_matches(step, text.text, [&](std::size_t begin, std::size_t end, bool is_match) {
        filter.add(begin, end, is_match != step.invert);
    });
    filter.finish();
}

void PieceSplitter::run_metaspace(std::size_t at, NormalView text, std::vector<std::int32_t>& ids) {
    const PretokenStep& step = steps_[at];
    const std::string& mark = step.replacement;
    std::string& out = buffers_[at];
    out.clear();
    const bool begins_with_mark = text.text[0] == ' ' || text.text.starts_with(mark);
    std::size_t head = text.head > 0 && text.text[0] == ' ' ? mark.size() : text.head;
    if (!begins_with_mark && (step.prepend == PretokenStep::Prepend::always ||
                              (step.prepend == PretokenStep::Prepend::first && text.head > 0))) {
        out += mark;
        if (head > 0) head += mark.size();
    }
    for (std::string_view rest = text.text; !rest.empty();) {
        const std::size_t space = rest.find(' ');
        out += rest.substr(0, space);
        if (space == std::string_view::npos) break;
        out += mark;
        rest.remove_prefix(space + 1);
    }
    // The steps behind this one have buffers of their own.
    const std::string_view all = out;
    std::size_t begin = 0;
    while (step.split) {
        const std::size_t next = all.find(mark, begin + 1);
        if (next == std::string_view::npos) break;
        run(at + 1, {all.substr(begin, next - begin), head > begin ? head - begin : 0}, ids);
        begin = next;
    }
    run(at + 1, {all.substr(begin), head > begin ? head - begin : 0}, ids);
}

}  // namespace tera
