// The text columns of a Parquet file, read row group by row group and page by page.
//
// Reading needs Apache Arrow, which is large and not in Debian. So it lives in a module of its own,
// teratron_parquet.so beside the binary, built where Arrow is at hand and loaded when a Parquet file is met; the binary
// itself depends on nothing of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/text_columns.h"

namespace tera {

class ParquetRows {
  public:
    virtual ~ParquetRows() = default;
    ParquetRows(const ParquetRows&) = delete;
    ParquetRows& operator=(const ParquetRows&) = delete;

    virtual std::int64_t rows() const = 0;
    /// The next row, counted from 0.
    virtual std::int64_t row() const = 0;
    virtual void seek(std::int64_t row) = 0;
    /// Replaces `out` by the next rows, until they hold about `bytes` bytes; false at the end. UsageError naming the
    /// file and the row for damage.
    virtual bool next(TextColumns& out, std::size_t bytes) = 0;

  protected:
    ParquetRows() = default;
};

/// True for the first bytes of a Parquet file.
bool is_parquet(std::string_view beginning);

/// The columns by name (a.b for a field of a struct). UsageError if the file is damaged, if a column is not there or
/// holds no text, or if this installation has no module to read Parquet.
std::unique_ptr<ParquetRows> open_parquet(const std::string& path, const std::vector<std::string>& columns);

/// Why Parquet cannot be read here; empty if it can.
std::string parquet_missing();

/// What the module defines; a null result never happens, problems are thrown.
using OpenParquetFunction = ParquetRows* (*)(const std::string& path, const std::vector<std::string>& columns);
constexpr const char* open_parquet_symbol = "teratron_open_parquet_1";  // the number changes with this header

}  // namespace tera
