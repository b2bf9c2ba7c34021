#include "io/parquet_rows.h"

#include "core/error.h"
#include "core/module_file.h"

namespace tera {
namespace {

const LoadedSymbol& the_module() {
    static const LoadedSymbol module = load_symbol("teratron_parquet.so", open_parquet_symbol);
    return module;
}

}  // namespace

bool is_parquet(std::string_view beginning) { return beginning.starts_with("PAR1") || beginning.starts_with("PARE"); }

std::string parquet_missing() {
    const std::string& problem = the_module().problem;
    if (problem.empty()) return "";
    return cat("Parquet cannot be read here: ", problem,
               "; run scripts/setup.sh --parquet and build again, or convert the file to JSON lines");
}

std::unique_ptr<ParquetRows> open_parquet(const std::string& path, const std::vector<std::string>& columns) {
    if (the_module().address == nullptr) usage_error(path, ": ", parquet_missing());
    const auto open = reinterpret_cast<OpenParquetFunction>(the_module().address);
    return std::unique_ptr<ParquetRows>(open(path, columns));
}

}  // namespace tera
