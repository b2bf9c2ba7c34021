// The module that reads Parquet with Apache Arrow (io/parquet_rows.h says why it is one).
//
// Pages are read through a buffer rather than whole column chunks, and the memory for them is limited, so that neither
// a large row group nor a header that lies about sizes takes all memory.
#include <arrow/memory_pool.h>
#include <parquet/api/reader.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/parquet_rows.h"

namespace tera {
namespace {

constexpr std::int64_t memory_limit = std::int64_t{1} << 30;
constexpr std::int64_t buffer_size = std::int64_t{1} << 20;
constexpr std::int64_t batch_rows = 16;  // documents are long; more at a time would only take memory

class ArrowParquetRows : public ParquetRows {
  public:
    ArrowParquetRows(const std::string& path, const std::vector<std::string>& columns)
        : path_(path), pool_(arrow::default_memory_pool(), memory_limit) {
        guarded([&] {
            parquet::ReaderProperties properties(&pool_);
            properties.enable_buffered_stream();
            properties.set_buffer_size(buffer_size);
            properties.set_page_checksum_verification(true);
            file_ = parquet::ParquetFileReader::OpenFile(path, /*memory_map=*/false, properties);
            metadata_ = file_->metadata();
            for (const std::string& column : columns) fields_.push_back(find_column(column));
        });
        for (int g = 0; g < metadata_->num_row_groups(); ++g) {
            const std::int64_t rows = metadata_->RowGroup(g)->num_rows();
            if (rows < 0) usage_error(path_, ": damaged Parquet file: row group ", g, " has ", rows, " rows");
            group_ends_.push_back((g == 0 ? 0 : group_ends_.back()) + rows);
        }
    }

    std::int64_t rows() const override { return group_ends_.empty() ? 0 : group_ends_.back(); }
    std::int64_t row() const override { return row_; }

    void seek(std::int64_t row) override {
        if (row < 0 || row > rows())
            usage_error(path_, ": has no row ", row, " to go on from; it has changed since the run that stopped");
        row_ = row;
        readers_.clear();
    }

    bool next(TextColumns& out, std::size_t bytes) override {
        out.clear(fields_.size());
        guarded([&] {
            while (row_ < rows() && out.bytes() < bytes) {
                if (readers_.empty()) open_group();
                const std::int64_t count = std::min(batch_rows, group_ends_[group_] - row_);
                for (std::size_t c = 0; c < fields_.size(); ++c) read_column(c, count, out.columns[c]);
                row_ += count;
                if (row_ == group_ends_[group_]) readers_.clear();
            }
        });
        return out.rows() > 0;
    }

  private:
    using Reader = parquet::ByteArrayReader;

    /// What Arrow throws, as our own error with the file and the row.
    template <class F>
    void guarded(const F& work) {
        try {
            work();
        } catch (const UsageError&) {
            throw;
        } catch (const std::exception& error) {
            usage_error(path_, ": row ", row_, ": damaged Parquet file, or one that cannot be read: ", error.what());
        }
    }

    int find_column(const std::string& name) const {
        const parquet::SchemaDescriptor& schema = *metadata_->schema();
        std::string names;
        for (int i = 0; i < schema.num_columns(); ++i) {
            const parquet::ColumnDescriptor& column = *schema.Column(i);
            const std::string path = column.path()->ToDotString();
            if (i < 20) names += (i == 0 ? "" : ", ") + path;
            if (path != name) continue;
            if (column.physical_type() != parquet::Type::BYTE_ARRAY || column.max_repetition_level() > 0)
                usage_error(
                    path_, ": column \"", name, "\" does not hold one text per row but ",
                    column.max_repetition_level() > 0 ? "lists" : parquet::TypeToString(column.physical_type()));
            return i;
        }
        usage_error(path_, ": has no column \"", name, "\"; it has ", names);
    }

    /// Opens the columns of the row group that holds row_, which is below rows().
    void open_group() {
        group_ = static_cast<std::size_t>(std::upper_bound(group_ends_.begin(), group_ends_.end(), row_) -
                                          group_ends_.begin());
        const std::shared_ptr<parquet::RowGroupReader> group = file_->RowGroup(static_cast<int>(group_));
        const std::int64_t inside = row_ - (group_ == 0 ? 0 : group_ends_[group_ - 1]);
        for (const int field : fields_) {
            readers_.push_back(std::static_pointer_cast<Reader>(group->Column(field)));
            if (inside > 0 && readers_.back()->Skip(inside) != inside) fail_short();
        }
    }

    void read_column(std::size_t c, std::int64_t count, TextColumns::Column& out) {
        const std::int16_t full = metadata_->schema()->Column(fields_[c])->max_definition_level();
        std::array<std::int16_t, batch_rows> levels;
        std::array<parquet::ByteArray, batch_rows> values;
        while (count > 0) {
            std::int64_t value_count = 0;
            const std::int64_t got = readers_[c]->ReadBatch(count, levels.data(), nullptr, values.data(), &value_count);
            if (got <= 0 || got > count) fail_short();
            std::int64_t v = 0;
            for (std::int64_t i = 0; i < got; ++i) {
                if (full > 0 && levels[static_cast<std::size_t>(i)] != full) {
                    out.add_missing();
                    continue;
                }
                if (v == value_count) fail_short();
                const parquet::ByteArray& value = values[static_cast<std::size_t>(v++)];
                out.add({reinterpret_cast<const char*>(value.ptr), value.len});
            }
            count -= got;
        }
    }

    [[noreturn]] void fail_short() const {
        usage_error(path_, ": row ", row_, ": damaged Parquet file: row group ", group_,
                    " holds fewer values than its header says");
    }

    std::string path_;
    arrow::CappedMemoryPool pool_;  // before what allocates from it
    std::unique_ptr<parquet::ParquetFileReader> file_;
    std::shared_ptr<parquet::FileMetaData> metadata_;
    std::vector<int> fields_;
    std::vector<std::int64_t> group_ends_;  // rows up to the end of each row group
    std::int64_t row_ = 0;
    std::size_t group_ = 0;
    std::vector<std::shared_ptr<Reader>> readers_;  // of the current row group; empty: not open yet
};

}  // namespace
}  // namespace tera

extern "C" tera::ParquetRows* teratron_open_parquet_1(const std::string& path,
                                                      const std::vector<std::string>& columns) {
    return new tera::ArrowParquetRows(path, columns);
}
