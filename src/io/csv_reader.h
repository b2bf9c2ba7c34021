// Comma-separated values as RFC 4180 has them, read from front to back: fields in quotes may hold commas, line ends and
// doubled quotes; records end at \n, \r\n or a lone \r; the first record names the columns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/byte_source.h"
#include "io/text_columns.h"

namespace tera {

/// Where the next record begins, for going on later.
struct CsvPlace {
    RestartPoint restart;
    std::int64_t position = 0;  ///< byte of the content
    std::int64_t line = 1;      ///< counted from 1, of the file: line ends inside quotes count
    std::int64_t row = 0;       ///< records before it, without the header
};

class CsvReader {
  public:
    /// `columns` are names in the header. UsageError if the file is empty, if a column is not there or there twice.
    CsvReader(const std::string& path, std::vector<std::string> columns, char delimiter = ',');
    /// Goes on at a place that another reader of the same file gave.
    void seek(const CsvPlace& place);

    /// Replaces `out` by the next records, until they hold about `bytes` bytes; false if there are none left.
    /// UsageError naming the line for a quote that is not closed, text behind a closing quote and a record with another
    /// number of fields than the header. What came before it has been handed out by then, and skip_record() goes on
    /// behind it.
    bool next(TextColumns& out, std::size_t bytes);
    /// After an error: passes over the rest of the line on which the bad record begins.
    void skip_record();

    /// Of the next record.
    CsvPlace place() const;
    const ByteSource& source() const { return *source_; }

  private:
    enum class Parse { whole, more_needed, bad };

    bool fill();
    Parse parse_record();
    bool parse_quoted(std::size_t& at, std::string& field, Parse& outcome);
    Parse bad(std::string why);
    bool read_record();
    void take_record();
    void read_header(const std::vector<std::string>& columns);

    std::string path_;
    char delimiter_;
    std::unique_ptr<ByteSource> source_;
    std::string buffer_;  // content from buffer_position_ on
    std::int64_t buffer_position_ = 0;
    std::size_t at_ = 0;  // the next record in the buffer
    bool source_ended_ = false;
    std::vector<RestartPoint> restarts_;  // where the content of the buffer can be read again, rising
    std::int64_t line_ = 1, row_ = 0;
    std::size_t header_fields_ = 0;    // 0 until the header is read
    std::vector<std::size_t> wanted_;  // field of each column asked for

    // The record at at_, once parsed.
    std::vector<std::string> fields_;
    std::size_t field_count_ = 0;
    std::size_t record_end_ = 0;     // behind it; 0 if that is not known
    std::int64_t record_lines_ = 0;  // line ends in it
    std::string problem_;
};

}  // namespace tera
