#include "data/preprocess_writer.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

PreprocessWriter::PreprocessWriter(const Tokenizer& tokenizer, const PreprocessOptions& options,
                                   const std::vector<InputFile>& files, std::int64_t partition_records,
                                   const std::optional<JournalEntry>& earlier)
    : options_(options),
      files_(files),
      type_(options.token_type.value_or(token_type_for(tokenizer.vocab_size()))),
      partition_records_(partition_records) {
    for (const std::string& prefix : preprocess_written(options)) {
        const std::size_t i = writers_.size();
        if (!earlier)
            writers_.push_back(std::make_unique<IndexedDatasetWriter>(prefix, type_));
        else if (IndexedDatasetWriter::can_resume(prefix, earlier->outputs[i]))
            writers_.push_back(std::make_unique<IndexedDatasetWriter>(prefix, type_, earlier->outputs[i]));
        else
            writers_.push_back(nullptr);  // finished, as the journal has made sure
    }
    if (earlier) {
        place_ = earlier->place;
        progress_ = earlier->progress;
    }
}

/// Of the record that comes next.
std::size_t PreprocessWriter::partition() const {
    const std::int64_t record = progress_.documents + progress_.invalid;
    if (partition_records_ == 0) return static_cast<std::size_t>(record % options_.partitions);
    return static_cast<std::size_t>(std::min<std::int64_t>(record / partition_records_, options_.partitions - 1));
}

void PreprocessWriter::write(const TokenBlock& block, const std::function<void(const PreprocessProgress&)>& report) {
    const double start = thread_seconds();
    const std::int64_t before = block.after.file == place_.file ? place_.record : 0;
    const std::string& path = files_[static_cast<std::size_t>(block.after.file)].path;
    const char* const what = block.format == InputFormat::json_lines ? "line " : "row ";
    token_at_.assign(options_.json_keys.size(), 0);
    sequence_at_.assign(options_.json_keys.size(), 0);
    auto bad = block.bad.begin();
    std::size_t d = 0;
    for (std::int64_t record = 0; record < block.records; ++record) {
        if (bad != block.bad.end() && bad->number == record) {
            leave_out(bad->line > 0 ? cat(path, ": line ", bad->line, ": ", bad->why)
                                    : cat(path, ": ", what, before + record + 1, ": ", bad->why));
            ++bad;
            continue;
        }
        write_document(block, d++);
        if (report) report(progress_);
    }
    for (const std::string& problem : block.problems) leave_out(problem);
    if (block.fatal) usage_error(*block.fatal);
    place_ = block.after;
    if (block.format == InputFormat::json_lines) place_.record = before + block.records;
    progress_.stored_bytes = place_.stored;
    progress_.seconds += block.seconds;
    progress_.seconds.writing += thread_seconds() - start;
}

void PreprocessWriter::write_document(const TokenBlock& block, std::size_t d) {
    const std::size_t keys = options_.json_keys.size(), first = partition() * keys;
    for (std::size_t k = 0; k < keys; ++k) {
        const KeyTokens& key = block.keys[k];
        const std::size_t tokens = key.document_tokens[d], sequences = key.document_sequences[d];
        writers_[first + k]->add_document(std::span(key.tokens).subspan(token_at_[k], tokens),
                                          std::span(key.sequence_lengths).subspan(sequence_at_[k], sequences));
        token_at_[k] += tokens;
        sequence_at_[k] += sequences;
        progress_.tokens += static_cast<std::int64_t>(tokens);
    }
    ++progress_.documents;
    progress_.characters += static_cast<std::int64_t>(block.characters[d]);
    progress_.bytes += static_cast<std::int64_t>(block.bytes[d]);
}

void PreprocessWriter::leave_out(const std::string& why) {
    if (!options_.skip_invalid) usage_error(why);
    ++progress_.invalid;
    if (options_.note) options_.note(why + " (left out)");
}

JournalEntry PreprocessWriter::checkpoint() {
    JournalEntry entry{place_, progress_, preprocess_written(options_), {}};
    for (const auto& writer : writers_) entry.outputs.push_back(writer->checkpoint());
    return entry;
}

void PreprocessWriter::finish() {
    const double start = thread_seconds();
    for (const auto& writer : writers_)
        if (writer) writer->finish();
    progress_.seconds.writing += thread_seconds() - start;
    if (options_.partitions == 1) return;
    const std::vector<std::string> parts = preprocess_written(options_);
    for (std::size_t k = 0; k < options_.json_keys.size(); ++k) {
        IndexedDatasetWriter whole(preprocess_output(options_, options_.json_keys[k]), type_);
        for (std::size_t i = k; i < parts.size(); i += options_.json_keys.size()) whole.add_dataset(parts[i]);
        whole.finish();
    }
}

void PreprocessWriter::keep_unfinished() {
    for (const auto& writer : writers_)
        if (writer) writer->keep_unfinished();
}

}  // namespace tera
