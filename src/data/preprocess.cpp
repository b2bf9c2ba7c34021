#include "data/preprocess.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "data/indexed_dataset_writer.h"
#include "data/preprocess_block.h"

namespace tera {

namespace {

/// Blocks go in by any worker and come out in the order of the input.
class BlockPipeline {
  public:
    BlockPipeline(const Tokenizer& tokenizer, const PreprocessOptions& options)
        : reader_(options.input, options.block_bytes), most_ahead_(static_cast<std::size_t>(options.workers) * 2 + 2) {
        try {
            for (int i = 0; i < options.workers; ++i)
                threads_.emplace_back([this, &tokenizer, &options] { work(tokenizer, options); });
        } catch (...) {
            stop();
            throw;
        }
    }
    ~BlockPipeline() { stop(); }

    std::int64_t input_bytes() const { return reader_.file_size(); }

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
            BlockTokenizer block_tokenizer(tokenizer, options.json_keys, options.append_eod);
            std::string text;
            while (const std::optional<std::size_t> number = take(text)) {
                TokenBlock block = block_tokenizer.tokenize(text);
                std::lock_guard lock(mutex_);
                if (block.problem) input_ended_ = true;  // what comes behind will not be written
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
    std::optional<std::size_t> take(std::string& text) {
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
            got = reader_.next(text);
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

    LineBlockReader reader_;
    std::size_t most_ahead_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::size_t, TokenBlock> done_;
    std::size_t taken_ = 0, written_ = 0;
    bool reading_ = false, input_ended_ = false, stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
};

/// Writes the documents of a block and reports each.
class BlockWriter {
  public:
    BlockWriter(const Tokenizer& tokenizer, const PreprocessOptions& options) {
        for (const std::string& key : options.json_keys)
            writers_.push_back(std::make_unique<IndexedDatasetWriter>(preprocess_output(options, key),
                                                                      token_type_for(tokenizer.vocab_size())));
    }

    void write(const TokenBlock& block, PreprocessProgress& progress,
               const std::function<void(const PreprocessProgress&)>& report) {
        std::vector<std::size_t> token_at(writers_.size()), sequence_at(writers_.size());
        for (std::size_t d = 0; d < block.characters.size(); ++d) {
            for (std::size_t k = 0; k < writers_.size(); ++k) {
                const KeyTokens& key = block.keys[k];
                const std::size_t tokens = key.document_tokens[d], sequences = key.document_sequences[d];
                writers_[k]->add_document(std::span(key.tokens).subspan(token_at[k], tokens),
                                          std::span(key.sequence_lengths).subspan(sequence_at[k], sequences));
                token_at[k] += tokens;
                sequence_at[k] += sequences;
                progress.tokens += static_cast<std::int64_t>(tokens);
            }
            ++progress.documents;
            progress.characters += static_cast<std::int64_t>(block.characters[d]);
            progress.bytes += static_cast<std::int64_t>(block.bytes[d]);
            if (report) report(progress);
        }
    }

    void finish() {
        for (const auto& writer : writers_) writer->finish();
    }

  private:
    std::vector<std::unique_ptr<IndexedDatasetWriter>> writers_;
};

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
    BlockPipeline pipeline(tokenizer, options);
    BlockWriter writer(tokenizer, options);
    PreprocessProgress progress;
    progress.total_bytes = pipeline.input_bytes();
    while (const std::optional<TokenBlock> block = pipeline.next()) {
        writer.write(*block, progress, report);
        if (block->problem) usage_error(options.input, ": line ", progress.documents + 1, ": ", *block->problem);
    }
    writer.finish();
    return progress;
}

}  // namespace tera
