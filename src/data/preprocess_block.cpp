#include "data/preprocess_block.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.h"
#include "token/utf8.h"

namespace tera {
namespace {

/// Takes back what a key has of documents beyond the first `documents`.
void cut_to(std::size_t documents, KeyTokens& key) {
    if (key.document_tokens.size() > documents) {
        key.tokens.resize(key.tokens.size() - key.document_tokens.back());
        key.sequence_lengths.resize(key.sequence_lengths.size() - key.document_sequences.back());
        key.document_tokens.pop_back();
        key.document_sequences.pop_back();
    }
}

}  // namespace

void TokenBlock::clear(std::size_t key_count) {
    keys.resize(key_count);
    for (KeyTokens& key : keys) {
        key.tokens.clear();
        key.sequence_lengths.clear();
        key.document_tokens.clear();
        key.document_sequences.clear();
    }
    characters.clear();
    bytes.clear();
    bad.clear();
    records = 0;
}

BlockTokenizer::BlockTokenizer(const Tokenizer& tokenizer, const PreprocessOptions& options)
    : encoder_(tokenizer.make_encoder()), line_(options.json_keys), skip_bad_(options.skip_invalid) {
    if (options.end_token)
        eod_ = options.end_token;
    else if (options.append_eod)
        eod_ = tokenizer.eod();
    if (options.split_sentences) splitter_.emplace(options.sentences);
}

void BlockTokenizer::tokenize(const InputBlock& block, TokenBlock& out) {
    out.clear(line_.keys().size());
    out.format = block.format;
    out.problems = block.problems;
    out.fatal = block.fatal;
    out.after = block.after;
    using Clock = std::chrono::steady_clock;
    encoding_ = {};
    const double cpu_start = thread_seconds();
    const Clock::time_point start = Clock::now();
    if (block.format == InputFormat::json_lines)
        tokenize_lines(block.text, out);
    else
        tokenize_rows(block.columns, out);
    // Time of the processor is slow to ask for, so it is asked for once and shared out by the clock.
    const double cpu = thread_seconds() - cpu_start;
    const auto whole = std::chrono::duration<double>(Clock::now() - start).count();
    const double part = whole > 0 ? std::min(1.0, std::chrono::duration<double>(encoding_).count() / whole) : 0;
    out.seconds = {block.read_seconds, cpu * (1 - part), cpu * part, 0};
}

/// Notes a bad record and takes back what its first keys gave. False if nothing behind it is wanted.
bool BlockTokenizer::add_bad(const std::string& why, std::size_t good, TokenBlock& out) const {
    for (KeyTokens& key : out.keys) cut_to(good, key);
    out.bad.push_back({out.records++, why});
    return skip_bad_;
}

void BlockTokenizer::tokenize_lines(std::string_view text, TokenBlock& out) {
    while (!text.empty()) {
        const Line line = take_line(text);
        try {
            line_.parse(line.text);
            const auto start = std::chrono::steady_clock::now();
            for (std::size_t k = 0; k < out.keys.size(); ++k) add_document(line_.strings(k), out.keys[k]);
            encoding_ += std::chrono::steady_clock::now() - start;
        } catch (const UsageError& error) {
            if (!add_bad(error.what(), out.characters.size(), out)) return;
            continue;
        }
        // Python reads \r\n as one character.
        out.characters.push_back(count_utf8(line.text) + (line.raw.size() > line.text.size() ? 1 : 0));
        out.bytes.push_back(line.raw.size());
        ++out.records;
    }
}

void BlockTokenizer::tokenize_rows(const TextColumns& rows, TokenBlock& out) {
    for (std::size_t row = 0; row < rows.rows(); ++row) {
        std::size_t bytes = 0, characters = 0;
        try {
            for (std::size_t k = 0; k < out.keys.size(); ++k) {
                const std::string_view text = rows.columns[k].value(row);
                if (rows.columns[k].missing[row]) usage_error("column \"", line_.keys()[k], "\" is null");
                const std::size_t bad = find_invalid_utf8(text);
                if (bad != std::string_view::npos)
                    usage_error("column \"", line_.keys()[k], "\": byte ", bad, " is not valid UTF-8");
                const auto start = std::chrono::steady_clock::now();
                add_document(std::array{text}, out.keys[k]);
                encoding_ += std::chrono::steady_clock::now() - start;
                bytes += text.size();
                characters += count_utf8(text);
            }
        } catch (const UsageError& error) {
            const bool go_on = add_bad(error.what(), out.characters.size(), out);
            if (!rows.lines.empty()) out.bad.back().line = rows.lines[row];
            if (!go_on) return;
            continue;
        }
        out.characters.push_back(characters);
        out.bytes.push_back(bytes);
        ++out.records;
    }
}

void BlockTokenizer::add_sequence(std::string_view text, KeyTokens& out) {
    const std::size_t before = out.tokens.size();
    encoder_->encode(text, out.tokens);
    const std::size_t length = out.tokens.size() - before;
    if (length >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        usage_error("gives ", length, " tokens, more than a sequence can hold");
    if (length > 0) out.sequence_lengths.push_back(static_cast<std::int32_t>(length));
}

template <class Texts>
void BlockTokenizer::add_document(const Texts& texts, KeyTokens& out) {
    const std::size_t first_token = out.tokens.size(), first_sequence = out.sequence_lengths.size();
    const auto end_document = [&] {
        out.document_tokens.push_back(out.tokens.size() - first_token);
        out.document_sequences.push_back(out.sequence_lengths.size() - first_sequence);
    };
    try {
        for (const auto& text : texts) {
            if (!splitter_) {
                add_sequence(text, out);
                continue;
            }
            sentences_.clear();
            splitter_->split(text, sentences_);
            for (const std::string_view sentence : sentences_) add_sequence(sentence, out);
        }
    } catch (const UsageError&) {
        end_document();  // so that add_bad() can take it back
        throw;
    }
    if (eod_ && out.tokens.size() > first_token) {
        out.tokens.push_back(*eod_);
        ++out.sequence_lengths.back();
    }
    end_document();
}

}  // namespace tera
