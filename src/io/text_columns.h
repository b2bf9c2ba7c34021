// Some rows of the text columns of a table, as CSV and Parquet readers hand them out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

struct TextColumns {
    struct Column {
        std::string bytes;              // the values, one after the other
        std::vector<std::size_t> ends;  // where each ends
        std::vector<bool> missing;      // true for a null

        void add(std::string_view value) {
            bytes += value;
            ends.push_back(bytes.size());
            missing.push_back(false);
        }
        void add_missing() {
            ends.push_back(bytes.size());
            missing.push_back(true);
        }
        std::string_view value(std::size_t row) const {
            const std::size_t begin = row == 0 ? 0 : ends[row - 1];
            return std::string_view(bytes).substr(begin, ends[row] - begin);
        }
    };
    std::vector<Column> columns;
    std::vector<std::int64_t> lines;  // on which each row begins in the file, from 1; empty where there are none

    std::size_t rows() const { return columns.empty() ? 0 : columns[0].ends.size(); }
    /// What it takes in memory, about; rows without text count too.
    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const Column& column : columns) sum += column.bytes.size() + column.ends.size() * sizeof(std::size_t);
        return sum;
    }
    void clear(std::size_t column_count) {
        columns.assign(column_count, {});
        lines.clear();
    }
};

}  // namespace tera
