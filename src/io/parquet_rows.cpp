#include "io/parquet_rows.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

constexpr const char* module_name = "teratron_parquet.so";

struct Module {
    OpenParquetFunction open = nullptr;
    std::string problem;
};

/// Where the module may be, seen from the running program.
fs::path find_module() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& folder : {program, program / "..", program / "../lib/teratron"})
        if (fs::exists(folder / module_name, error)) return folder / module_name;
    return {};
}

Module load_module() {
    Module module;
    const fs::path path = find_module();
    if (path.empty()) {
        module.problem = cat("Parquet cannot be read here: ", module_name,
                             " is not beside the program; run scripts/setup.sh --parquet and build again, or convert ",
                             "the file to JSON lines");
        return module;
    }
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) module.open = reinterpret_cast<OpenParquetFunction>(::dlsym(handle, open_parquet_symbol));
    if (module.open == nullptr) {
        const char* const why = ::dlerror();
        module.problem =
            cat("Parquet cannot be read here: ", path.string(),
                " does not load: ", why != nullptr ? why : "it belongs to another version", "; build again");
    }
    return module;
}

const Module& the_module() {
    static const Module module = load_module();
    return module;
}

}  // namespace

bool is_parquet(std::string_view beginning) { return beginning.starts_with("PAR1") || beginning.starts_with("PARE"); }

std::string parquet_missing() { return the_module().problem; }

std::unique_ptr<ParquetRows> open_parquet(const std::string& path, const std::vector<std::string>& columns) {
    const Module& module = the_module();
    if (module.open == nullptr) usage_error(path, ": ", module.problem);
    return std::unique_ptr<ParquetRows>(module.open(path, columns));
}

}  // namespace tera
