// What a run of preprocess leaves on disk so that after a kill the next one goes on where it was.
//
// From time to time the temporary files are synced and PREFIX.resume.json says how far they and the input have come. A
// run that finds one made from the same input by the same flags cuts the files to those sizes and reads on from that
// place; it writes the same bytes that the first would have written. A run with other flags is refused as long as there
// is something to go on with: what was done is lost only by the user's own hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/indexed_dataset_writer.h"
#include "data/input_blocks.h"
#include "data/preprocess.h"

namespace tera {

struct JournalEntry {
    InputPlace place;
    PreprocessProgress progress;
    std::vector<std::string> prefixes;                 // preprocess_written()
    std::vector<IndexedDatasetWriter::State> outputs;  // of each
    bool all_written = false;  // outputs have only to be finished, where they are not, and joined
};

class PreprocessJournal {
  public:
    /// No journal is kept for inputs that cannot be read twice. Tokenizer and options must outlive it.
    PreprocessJournal(const Tokenizer& tokenizer, const PreprocessOptions& options,
                      const std::vector<InputFile>& files);
    PreprocessJournal(const PreprocessJournal&) = delete;
    PreprocessJournal& operator=(const PreprocessJournal&) = delete;

    const std::string& path() const { return path_; }
    bool is_kept() const { return is_kept_; }
    /// Where to go on; nothing if there is no journal, or none whose files are there. UsageError if it is another
    /// run's. Changes nothing on disk.
    std::optional<JournalEntry> find();
    void store(const JournalEntry& entry);
    void remove();

  private:
    std::string unfinished() const { return path_ + ".tmp"; }
    const std::string& identity();

    const Tokenizer& tokenizer_;
    const PreprocessOptions& options_;
    std::string path_;
    std::string inputs_;    // as they were when the run began
    std::string identity_;  // of input, flags and tokenizer; worked out when it is asked for, as a run seldom does
    bool is_kept_ = true;
};

}  // namespace tera
