#include "core/module_file.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/error.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

fs::path find_module(const char* file) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& folder : {program, program / "..", program / "../lib/teratron"}) {
        if (fs::exists(folder / file, error)) return folder / file;
    }
    return {};
}

}  // namespace

LoadedSymbol load_symbol(const char* file, const char* symbol, bool global) {
    const fs::path path = find_module(file);
    if (path.empty()) return {nullptr, cat(file, " is not beside the program")};
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    LoadedSymbol loaded;
    if (handle != nullptr) loaded.address = ::dlsym(handle, symbol);
    if (loaded.address == nullptr) {
        const char* const why = ::dlerror();
        loaded.problem = cat(path.string(), " does not load: ", why != nullptr ? why : "it belongs to another version");
    }
    return loaded;
}

}  // namespace tera
