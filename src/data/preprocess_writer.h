// Puts tokenised blocks on disk: documents to the outputs of their keys, and of their partition where there are
// several.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/indexed_dataset_writer.h"
#include "data/preprocess.h"
#include "data/preprocess_block.h"
#include "data/preprocess_journal.h"

namespace tera {

class PreprocessWriter {
  public:
    /// `partition_records`: so many records in a row go to one partition; 0: the partitions take turns. `earlier`, if
    /// there, is where a stopped run had come to.
    PreprocessWriter(const Tokenizer& tokenizer, const PreprocessOptions& options, const std::vector<InputFile>& files,
                     std::int64_t partition_records, const std::optional<JournalEntry>& earlier);

    /// The blocks in the order of the input. UsageError at the first record that is bad, unless those are left out, and
    /// where the input cannot be read on.
    void write(const TokenBlock& block, const std::function<void(const PreprocessProgress&)>& report);
    /// Syncs the outputs and says how far all has come.
    JournalEntry checkpoint();
    /// Gives the outputs their names, and joins partitions in order.
    void finish();
    /// What is on disk stays there, for a later run to go on with.
    void keep_unfinished();

    PreprocessProgress& progress() { return progress_; }

  private:
    void write_document(const TokenBlock& block, std::size_t d);
    void leave_out(const std::string& why);
    std::size_t partition() const;

    const PreprocessOptions& options_;
    const std::vector<InputFile>& files_;
    TokenType type_;
    std::int64_t partition_records_;
    std::vector<std::unique_ptr<IndexedDatasetWriter>>
        writers_;                                      // of each partition, of each key; null where it is finished
    std::vector<std::size_t> token_at_, sequence_at_;  // of each key, in the block being written
    InputPlace place_;                                 // behind the last block written
    PreprocessProgress progress_;
};

}  // namespace tera
