// Tokenises JSON lines, CSV or Parquet into .bin/.idx pairs, one per key or column, as Megatron's
// tools/preprocess_data.py does with JSON lines.
//
// Workers take blocks of records in turn and tokenise them; the calling thread writes their results in the order of the
// input. So the bytes written do not depend on the number of workers, and memory not on the size of the input. A run
// that was killed goes on where it was when it is started again (data/preprocess_journal.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/indexed_dataset.h"
#include "data/stage_seconds.h"
#include "token/sentence_splitter.h"
#include "token/tokenizer.h"

namespace tera {

struct PreprocessOptions {
    std::vector<std::string> inputs;                // files, patterns, folders, "-" (data/input_files.h)
    std::string input_format = "auto";              // or jsonl, csv, parquet
    std::string output_prefix;                      // files PREFIX_KEY_document.bin and .idx, or _sentence
    bool bare_names = false;                        // PREFIX.bin and .idx instead; with one key
    std::vector<std::string> json_keys = {"text"};  // of CSV and Parquet: the columns
    bool append_eod = false;                        // after the last sequence of each document that has tokens
    std::optional<std::int32_t> end_token;          // this one instead of the tokenizer's end of document
    std::optional<TokenType> token_type;            // instead of what Megatron takes for the vocabulary
    /// Cut texts into sentences (token/sentence_splitter.h): each is a sequence of its own.
    bool split_sentences = false;
    SentenceSplitter::Options sentences;
    bool skip_invalid = false;  // leave out records that give no document, and count them; else the first ends the run
    int workers = 1;
    /// Above 1, documents go to so many pairs PREFIX_{i}_KEY_document in turns, or in equal blocks in a row with
    /// keep_sequential_samples; in the end these are joined in order. All stay on disk.
    int partitions = 1;
    bool keep_sequential_samples = false;
    std::size_t block_bytes = std::size_t{1} << 20;
    double journal_seconds = 10;  // between two notes of how far it has come; below 0: none
    /// Told of each record left out, of files passed over, and of going on with an earlier run.
    std::function<void(const std::string&)> note;
};

struct PreprocessProgress {
    std::int64_t documents = 0;
    std::int64_t tokens = 0;        // of all keys
    std::int64_t characters = 0;    // code points of the lines read, with their ends
    std::int64_t bytes = 0;         // of those lines, or of the text in columns
    std::int64_t invalid = 0;       // records left out
    std::int64_t stored_bytes = 0;  // of the input files, read so far
    std::int64_t total_bytes = 0;   // of the input files; 0 if not known
    StageSeconds seconds;           // of this run
};

/// The prefix under which the documents of a key are written.
std::string preprocess_output(const PreprocessOptions& options, const std::string& key);

/// The prefixes that documents are written to: of each partition, of each key.
std::vector<std::string> preprocess_written(const PreprocessOptions& options);

/// Writes all outputs, and nothing under their final names unless all records were good or left out. `report`, if
/// given, is called after each document, in order. UsageError for anything wrong with the input, naming file and line
/// (or row); the same one whatever the number of workers.
PreprocessProgress preprocess(const Tokenizer& tokenizer, const PreprocessOptions& options,
                              const std::function<void(const PreprocessProgress&)>& report = {});

/// Reads and tokenises the first so many documents with options.workers, and writes nothing: how fast it is. Records
/// that give no document are passed over.
PreprocessProgress measure_preprocess(const Tokenizer& tokenizer, const PreprocessOptions& options,
                                      std::int64_t most_documents);

}  // namespace tera
