#include "data/preprocess.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "data/indexed_dataset_writer.h"
#include "data/preprocess_block.h"
#include "data/preprocess_journal.h"

namespace tera {

namespace {

/// Blocks go in by any worker and come out in the order of the input.
class BlockPipeline {
  public:
    BlockPipeline(const Tokenizer& tokenizer, const PreprocessOptions& options, InputBlocks& input)
        : input_(input), most_ahead_(static_cast<std::size_t>(options.workers) * 2 + 2) {
        try {
            for (int i = 0; i < options.workers; ++i)
                threads_.emplace_back([this, &tokenizer, &options] { work(tokenizer, options); });
        } catch (...) {
            stop();
            throw;
        }
    }
    ~BlockPipeline() { stop(); }

    /// The next block of the input; nothing at its end. Rethrows what a worker failed with.
    std::optional<TokenBlock> next() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return failure_ || done_.count(written_) || (input_ended_ && written_ == taken_); });
        if (failure_) std::rethrow_exception(failure_);
        const auto found = done_.find(written_);
        if (found == done_.end()) return std::nullopt;
        TokenBlock block = std::move(found->second);
        done_.erase(found);
        ++written_;
        changed_.notify_all();
        return block;
    }

  private:
    void work(const Tokenizer& tokenizer, const PreprocessOptions& options) {
        try {
            BlockTokenizer block_tokenizer(tokenizer, options.json_keys, options.append_eod, options.skip_invalid);
            InputBlock records;
            while (const std::optional<std::size_t> number = take(records)) {
                TokenBlock block = block_tokenizer.tokenize(records);
                std::lock_guard lock(mutex_);
                if (!block.bad.empty() && !options.skip_invalid) input_ended_ = true;  // the rest will not be written
                done_.emplace(*number, std::move(block));
                changed_.notify_all();
            }
        } catch (...) {
            std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            changed_.notify_all();
        }
    }

    /// Reads the next block once the writer is not too far behind; returns its number.
    std::optional<std::size_t> take(InputBlock& records) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
            return stopping_ || failure_ || input_ended_ || (!reading_ && taken_ < written_ + most_ahead_);
        });
        if (stopping_ || failure_ || input_ended_) return std::nullopt;
        reading_ = true;
        lock.unlock();
        bool got = false;
        std::exception_ptr problem;
        try {
            got = input_.next(records);
        } catch (...) {
            problem = std::current_exception();
        }
        lock.lock();
        reading_ = false;
        changed_.notify_all();
        if (problem) std::rethrow_exception(problem);
        if (!got) input_ended_ = true;
        return got ? std::optional(taken_++) : std::nullopt;
    }

    void stop() {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
            changed_.notify_all();
        }
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

    InputBlocks& input_;
    std::size_t most_ahead_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::size_t, TokenBlock> done_;
    std::size_t taken_ = 0, written_ = 0;
    bool reading_ = false, input_ended_ = false, stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
};

/// Writes the documents of the blocks and reports each; keeps count of records for messages.
class BlockWriter {
  public:
    BlockWriter(const Tokenizer& tokenizer, const PreprocessOptions& options, const std::vector<InputFile>& files,
                const std::optional<JournalEntry>& earlier)
        : options_(options), files_(files) {
        const TokenType type = token_type_for(tokenizer.vocab_size());
        for (std::size_t k = 0; k < options.json_keys.size(); ++k) {
            const std::string prefix = preprocess_output(options, options.json_keys[k]);
            writers_.push_back(earlier ? std::make_unique<IndexedDatasetWriter>(prefix, type, earlier->keys[k])
                                       : std::make_unique<IndexedDatasetWriter>(prefix, type));
        }
        if (earlier) {
            place_ = earlier->place;
            progress_ = earlier->progress;
        }
    }

    /// UsageError at the first record that is bad, unless those are left out, and where the input cannot be read on.
    void write(const TokenBlock& block, const std::function<void(const PreprocessProgress&)>& report) {
        const std::int64_t before = block.after.file == place_.file ? place_.record : 0;
        std::vector<std::size_t> token_at(writers_.size()), sequence_at(writers_.size());
        for (std::size_t d = 0; d < block.characters.size(); ++d) {
            write_document(block, d, token_at, sequence_at);
            if (report) report(progress_);
        }
        const std::string& path = files_[static_cast<std::size_t>(block.after.file)].path;
        const char* const what = block.format == InputFormat::json_lines ? "line " : "row ";
        for (const BadRecord& bad : block.bad) leave_out(cat(path, ": ", what, before + bad.number + 1, ": ", bad.why));
        for (const std::string& problem : block.problems) leave_out(problem);
        if (block.fatal) usage_error(*block.fatal);
        place_ = block.after;
        if (block.format == InputFormat::json_lines) place_.record = before + block.records;
        progress_.stored_bytes = place_.stored;
    }

    JournalEntry checkpoint() {
        JournalEntry entry{place_, progress_, {}};
        for (const auto& writer : writers_) entry.keys.push_back(writer->checkpoint());
        return entry;
    }

    void finish() {
        for (const auto& writer : writers_) writer->finish();
    }

    PreprocessProgress& progress() { return progress_; }

  private:
    void write_document(const TokenBlock& block, std::size_t d, std::vector<std::size_t>& token_at,
                        std::vector<std::size_t>& sequence_at) {
        for (std::size_t k = 0; k < writers_.size(); ++k) {
            const KeyTokens& key = block.keys[k];
            const std::size_t tokens = key.document_tokens[d], sequences = key.document_sequences[d];
            writers_[k]->add_document(std::span(key.tokens).subspan(token_at[k], tokens),
                                      std::span(key.sequence_lengths).subspan(sequence_at[k], sequences));
            token_at[k] += tokens;
            sequence_at[k] += sequences;
            progress_.tokens += static_cast<std::int64_t>(tokens);
        }
        ++progress_.documents;
        progress_.characters += static_cast<std::int64_t>(block.characters[d]);
        progress_.bytes += static_cast<std::int64_t>(block.bytes[d]);
    }

    void leave_out(const std::string& why) {
        if (!options_.skip_invalid) usage_error(why);
        ++progress_.invalid;
        if (options_.note) options_.note(why + " (left out)");
    }

    const PreprocessOptions& options_;
    const std::vector<InputFile>& files_;
    std::vector<std::unique_ptr<IndexedDatasetWriter>> writers_;
    InputPlace place_;  // behind the last block written
    PreprocessProgress progress_;
};

void note_inputs(const FoundInputs& found, const PreprocessOptions& options) {
    if (!options.note || found.passed_over.empty()) return;
    options.note(cat("Passed over ", found.passed_over.size(),
                     " files that are not named .jsonl, .json, .csv, .tsv or ", ".parquet, the first ",
                     found.passed_over.front()));
}

void check_options(const PreprocessOptions& options) {
    if (options.workers < 1 || options.workers > 4096)
        usage_error("--workers ", options.workers, " is out of range; give 1 to 4096");
    if (options.json_keys.empty()) usage_error("--json-keys is empty; name at least one key");
    auto keys = options.json_keys;
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) usage_error("--json-keys names \"", *twice, "\" twice; both would write the same files");
}

}  // namespace

std::string preprocess_output(const PreprocessOptions& options, const std::string& key) {
    return options.output_prefix + "_" + key + "_document";
}

PreprocessProgress preprocess(const Tokenizer& tokenizer, const PreprocessOptions& options,
                              const std::function<void(const PreprocessProgress&)>& report) {
    check_options(options);
    const FoundInputs found = find_inputs(options.inputs, options.input_format);
    note_inputs(found, options);
    InputBlocks input({found.files, options.json_keys, options.block_bytes, options.skip_invalid});
    PreprocessJournal journal(tokenizer, options, found.files);
    const std::optional<JournalEntry> earlier = journal.find();
    BlockWriter writer(tokenizer, options, found.files, earlier);
    if (earlier) {
        input.seek(earlier->place);
        if (options.note)
            options.note(cat("Going on after ", earlier->progress.documents, " documents of a run that was stopped"));
    }
    writer.progress().total_bytes = input.total_bytes();
    BlockPipeline pipeline(tokenizer, options, input);
    using Clock = std::chrono::steady_clock;
    Clock::time_point noted = Clock::now();
    while (const std::optional<TokenBlock> block = pipeline.next()) {
        writer.write(*block, report);
        if (journal.is_kept() &&
            std::chrono::duration<double>(Clock::now() - noted).count() >= options.journal_seconds) {
            journal.store(writer.checkpoint());
            noted = Clock::now();
        }
    }
    writer.finish();
    return writer.progress();
}

}  // namespace tera
