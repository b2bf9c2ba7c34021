// The input as blocks of records, whatever it is stored in: lines of JSON, or rows of the text columns of CSV and
// Parquet files. One block is one worker's work at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/input_files.h"
#include "io/byte_source.h"
#include "io/text_columns.h"

namespace tera {

/// Where the next record begins. A later run goes on there.
struct InputPlace {
    std::int64_t file = 0;      // number of the input file
    RestartPoint restart;       // where to open it; nothing for Parquet
    std::int64_t position = 0;  // byte of its content
    std::int64_t line = 1;      // CSV: line of the file
    std::int64_t record = 0;    // records of the file before it
    std::int64_t stored = 0;    // bytes of all files read so far, for progress
};

struct InputBlock {
    InputFormat format = InputFormat::json_lines;
    std::string text;                   // whole lines of JSON
    TextColumns columns;                // or rows, a column for each key
    std::int64_t bad_records = 0;       // CSV: records that could not be read, behind the rows
    std::vector<std::string> problems;  // what is wrong with each, with file and line
    std::optional<std::string> fatal;   // the input cannot be read on: behind all of this
    double read_seconds = 0;            // of processor time
    InputPlace after;                   // `record` is that of CSV and Parquet; lines are counted by whoever cuts them
};

struct InputBlockOptions {
    std::vector<InputFile> files;
    std::vector<std::string> columns;  // CSV and Parquet: names of the columns, in order
    std::size_t block_bytes = std::size_t{1} << 20;
    bool skip_bad = false;  // go on behind CSV records that cannot be read
};

class InputReader;

class InputBlocks {
  public:
    explicit InputBlocks(InputBlockOptions options);
    ~InputBlocks();
    /// Goes on at a place that an earlier run stored.
    void seek(const InputPlace& place);

    /// The next block; false at the end of the last file. What is wrong with the input is in the block, so that it
    /// comes in order.
    bool next(InputBlock& block);
    /// Bytes of all files as stored; 0 if that is not known.
    std::int64_t total_bytes() const { return total_bytes_; }

  private:
    bool advance(InputBlock& block);

    InputBlockOptions options_;
    std::vector<std::int64_t> bytes_before_;  // stored bytes of the files before each
    std::int64_t total_bytes_ = 0;
    std::size_t file_ = 0;
    InputPlace start_;  // in file_
    std::unique_ptr<InputReader> reader_;
    bool ended_ = false;
};

}  // namespace tera
