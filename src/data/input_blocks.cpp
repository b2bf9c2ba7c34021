#include "data/input_blocks.h"

#include "core/error.h"
#include "data/preprocess_lines.h"
#include "data/stage_seconds.h"
#include "io/csv_reader.h"
#include "io/parquet_rows.h"

namespace tera {

/// One input file of some format.
class InputReader {
  public:
    virtual ~InputReader() = default;
    /// Fills in the records and `after`, except for the number of the file; false at the end of the file.
    virtual bool next(InputBlock& block) = 0;
};

namespace {

class JsonLinesInput : public InputReader {
  public:
    JsonLinesInput(const InputFile& file, std::size_t block_bytes, const InputPlace& place)
        : lines_(file.path, block_bytes, place.restart, place.position) {}

    bool next(InputBlock& block) override {
        if (!lines_.next(block.text)) return false;
        block.after.restart = lines_.restart_point();
        block.after.position = lines_.position();
        block.after.stored = lines_.stored_position();
        return true;
    }

  private:
    LineBlockReader lines_;
};

class CsvInput : public InputReader {
  public:
    CsvInput(const InputFile& file, const InputBlockOptions& options, const InputPlace& place)
        : csv_(file.path, options.columns, csv_delimiter(file)),
          block_bytes_(options.block_bytes),
          skip_bad_(options.skip_bad) {
        if (place.position > 0) csv_.seek({place.restart, place.position, place.line, place.record});
    }

    bool next(InputBlock& block) override {
        bool got = false;
        try {
            got = csv_.next(block.columns, block_bytes_);
        } catch (const UsageError& error) {
            block.columns.clear(0);
            block.problems.emplace_back(error.what());
            block.bad_records = 1;
            if (skip_bad_) csv_.skip_record();
            got = true;
        }
        const CsvPlace place = csv_.place();
        block.after.restart = place.restart;
        block.after.position = place.position;
        block.after.line = place.line;
        block.after.record = place.row;
        block.after.stored = csv_.source().stored_position();
        return got;
    }

  private:
    CsvReader csv_;
    std::size_t block_bytes_;
    bool skip_bad_;
};

class ParquetInput : public InputReader {
  public:
    ParquetInput(const InputFile& file, const InputBlockOptions& options, const InputPlace& place)
        : rows_(open_parquet(file.path, options.columns)), block_bytes_(options.block_bytes), size_(file.size) {
        rows_->seek(place.record);
    }

    bool next(InputBlock& block) override {
        const bool got = rows_->next(block.columns, block_bytes_);
        block.after.record = rows_->row();
        const double part =
            rows_->rows() == 0 ? 1.0 : static_cast<double>(rows_->row()) / static_cast<double>(rows_->rows());
        block.after.stored = static_cast<std::int64_t>(part * static_cast<double>(size_));
        return got;
    }

  private:
    std::unique_ptr<ParquetRows> rows_;
    std::size_t block_bytes_;
    std::int64_t size_;
};

std::unique_ptr<InputReader> open_input(const InputFile& file, const InputBlockOptions& options,
                                        const InputPlace& place) {
    switch (file.format) {
        case InputFormat::json_lines:
            return std::make_unique<JsonLinesInput>(file, options.block_bytes, place);
        case InputFormat::csv:
            return std::make_unique<CsvInput>(file, options, place);
        case InputFormat::parquet:
            return std::make_unique<ParquetInput>(file, options, place);
    }
    return nullptr;
}

}  // namespace

InputBlocks::InputBlocks(InputBlockOptions options) : options_(std::move(options)) {
    bool is_known = true;
    for (const InputFile& file : options_.files) {
        bytes_before_.push_back(total_bytes_);
        total_bytes_ += file.size;
        is_known = is_known && file.path != "-";
    }
    if (!is_known) total_bytes_ = 0;
}

InputBlocks::~InputBlocks() = default;

void InputBlocks::seek(const InputPlace& place) {
    TERA_CHECK(place.file >= 0 && place.file <= static_cast<std::int64_t>(options_.files.size()), place.file);
    file_ = static_cast<std::size_t>(place.file);
    start_ = place;
    reader_.reset();
    ended_ = false;
}

/// The next block of the file at hand, or of the one after it.
bool InputBlocks::advance(InputBlock& block) {
    for (; file_ < options_.files.size(); ++file_, start_ = {}) {
        if (!reader_) reader_ = open_input(options_.files[file_], options_, start_);
        block.format = options_.files[file_].format;
        block.after = {};
        if (reader_->next(block)) {
            block.after.file = static_cast<std::int64_t>(file_);
            block.after.stored += bytes_before_[file_];
            return true;
        }
        reader_.reset();
    }
    return false;
}

bool InputBlocks::next(InputBlock& block) {
    block.text.clear();
    block.columns.clear(0);
    block.bad_records = 0;
    block.problems.clear();
    block.fatal.reset();
    block.read_seconds = 0;
    if (ended_) return false;
    const double start = thread_seconds();
    try {
        if (advance(block)) {
            block.read_seconds = thread_seconds() - start;
            if (!block.problems.empty() && !options_.skip_bad) ended_ = true;
            return true;
        }
        ended_ = true;
        return false;
    } catch (const UsageError& error) {
        block.text.clear();
        block.columns.clear(0);
        block.fatal = error.what();
        block.after.file = static_cast<std::int64_t>(file_);
        ended_ = true;
        return true;
    }
}

}  // namespace tera
