#include "data/preprocess.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "data/preprocess_block.h"
#include "data/preprocess_journal.h"
#include "data/preprocess_writer.h"

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
    /// Takes a block back that is written: the next one uses its memory, which is there and paged in.
    void give_back(TokenBlock block) {
        std::lock_guard lock(mutex_);
        spare_.push_back(std::move(block));
    }

  private:
    void work(const Tokenizer& tokenizer, const PreprocessOptions& options) {
        try {
            BlockTokenizer block_tokenizer(tokenizer, options);
            InputBlock records;
            while (const std::optional<std::size_t> number = take(records)) {
                TokenBlock block = take_spare();
                block_tokenizer.tokenize(records, block);
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

    TokenBlock take_spare() {
        std::lock_guard lock(mutex_);
        if (spare_.empty()) return {};
        TokenBlock block = std::move(spare_.back());
        spare_.pop_back();
        return block;
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
    std::vector<TokenBlock> spare_;
    std::size_t taken_ = 0, written_ = 0;
    bool reading_ = false, input_ended_ = false, stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
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
    if (options.partitions < 1 || options.partitions > 1000)
        usage_error("--partitions ", options.partitions, " is out of range; give 1 to 1000");
    if (options.split_sentences) (void)abbreviations_of(options.sentences.language);  // refused here if it is not known
    if (options.json_keys.empty()) usage_error("--json-keys is empty; name at least one key");
    if (options.bare_names && options.json_keys.size() > 1)
        usage_error("several --json-keys would write the same files; give one");
    auto keys = options.json_keys;
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) usage_error("--json-keys names \"", *twice, "\" twice; both would write the same files");
}

/// Records in a row for each partition, so that all get the same number but the last; 0 where they take turns.
std::int64_t records_per_partition(const PreprocessOptions& options, const InputBlockOptions& input) {
    if (options.partitions == 1 || !options.keep_sequential_samples) return 0;
    for (const InputFile& file : input.files)
        if (!can_be_read_again(file))
            usage_error("--keep-sequential-samples reads the input twice; give a file instead of ", file.path);
    InputBlocks blocks(input);
    InputBlock block;
    std::int64_t records = 0;
    while (blocks.next(block)) {
        if (block.fatal) usage_error(*block.fatal);
        records += static_cast<std::int64_t>(block.columns.rows()) + block.bad_records;
        for (std::string_view rest = block.text; !rest.empty(); ++records) take_line(rest);
    }
    return std::max<std::int64_t>(1, (records + options.partitions - 1) / options.partitions);
}

}  // namespace

std::string preprocess_output(const PreprocessOptions& options, const std::string& key) {
    if (options.bare_names) return options.output_prefix;
    return options.output_prefix + "_" + key + (options.split_sentences ? "_sentence" : "_document");
}

std::vector<std::string> preprocess_written(const PreprocessOptions& options) {
    std::vector<std::string> prefixes;
    for (int p = 0; p < options.partitions; ++p) {
        PreprocessOptions part = options;
        if (options.partitions > 1) part.output_prefix += "_" + std::to_string(p);
        for (const std::string& key : options.json_keys) prefixes.push_back(preprocess_output(part, key));
    }
    return prefixes;
}

namespace {

/// How far the journal of a run says it has come; nothing if it says nothing.
class Noted {
  public:
    Noted(PreprocessJournal& journal, PreprocessWriter& writer, const std::optional<JournalEntry>& earlier)
        : journal_(journal), writer_(writer) {
        if (earlier) documents_ = earlier->progress.documents;
    }
    void now_and_then(double seconds) {
        if (journal_.is_kept() && std::chrono::duration<double>(Clock::now() - last_).count() >= seconds) now(false);
    }
    void now(bool all_written) {
        JournalEntry entry = writer_.checkpoint();
        entry.all_written = all_written;
        journal_.store(entry);
        documents_ = entry.progress.documents;
        last_ = Clock::now();
    }
    const std::optional<std::int64_t>& documents() const { return documents_; }

  private:
    using Clock = std::chrono::steady_clock;
    PreprocessJournal& journal_;
    PreprocessWriter& writer_;
    Clock::time_point last_ = Clock::now();
    std::optional<std::int64_t> documents_;
};

}  // namespace

PreprocessProgress preprocess(const Tokenizer& tokenizer, const PreprocessOptions& options,
                              const std::function<void(const PreprocessProgress&)>& report) {
    check_options(options);
    const FoundInputs found = find_inputs(options.inputs, options.input_format);
    note_inputs(found, options);
    const InputBlockOptions how{found.files, options.json_keys, options.block_bytes, options.skip_invalid};
    PreprocessJournal journal(tokenizer, options, found.files);
    const std::optional<JournalEntry> earlier = journal.find();
    const bool all_written = earlier && earlier->all_written;
    const std::int64_t partition_records = all_written ? 0 : records_per_partition(options, how);
    PreprocessWriter writer(tokenizer, options, found.files, partition_records, earlier);
    if (!earlier) journal.remove();  // one without files
    if (earlier && options.note)
        options.note(cat("Going on after ", earlier->progress.documents, " documents of a run that was stopped"));
    Noted noted(journal, writer, earlier);
    try {
        if (!all_written) {
            InputBlocks input(how);
            if (earlier) input.seek(earlier->place);
            writer.progress().total_bytes = input.total_bytes();
            BlockPipeline pipeline(tokenizer, options, input);
            while (std::optional<TokenBlock> block = pipeline.next()) {
                writer.write(*block, report);
                pipeline.give_back(*std::move(block));
                noted.now_and_then(options.journal_seconds);
            }
            const PreprocessProgress& done = writer.progress();
            if (done.documents == 0 && done.invalid > 0)
                usage_error("none of ", done.invalid, " records is valid; nothing is written");
            if (journal.is_kept() && options.partitions > 1) noted.now(true);  // before they are joined
        }
        writer.finish();
    } catch (const UsageError& e) {
        if (!noted.documents()) throw;
        writer.keep_unfinished();
        usage_error(e.what(), "; ", journal.path(), " keeps the first ", *noted.documents(),
                    " documents: the same command goes on after them");
    } catch (...) {
        if (noted.documents()) writer.keep_unfinished();
        throw;
    }
    journal.remove();
    return writer.progress();
}

PreprocessProgress measure_preprocess(const Tokenizer& tokenizer, const PreprocessOptions& options,
                                      std::int64_t most_documents) {
    PreprocessOptions lenient = options;
    lenient.skip_invalid = true;
    check_options(lenient);
    const FoundInputs found = find_inputs(lenient.inputs, lenient.input_format);
    InputBlocks input({found.files, lenient.json_keys, lenient.block_bytes, true});
    BlockPipeline pipeline(tokenizer, lenient, input);
    PreprocessProgress progress;
    while (const std::optional<TokenBlock> block = pipeline.next()) {
        if (block->fatal) usage_error(*block->fatal);
        for (const std::size_t characters : block->characters)
            progress.characters += static_cast<std::int64_t>(characters);
        for (const std::size_t bytes : block->bytes) progress.bytes += static_cast<std::int64_t>(bytes);
        progress.documents += static_cast<std::int64_t>(block->bytes.size());
        if (progress.documents >= most_documents) break;
    }
    return progress;
}

}  // namespace tera
