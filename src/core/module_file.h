// Parts of the program that need a library which many machines do not have live in modules beside it, loaded when they
// are first needed.
#pragma once

#include <string>

namespace tera {

struct LoadedSymbol {
    void* address = nullptr;
    std::string problem;  ///< why there is none: "x.so is not beside the program", "... does not load: ..."
};

/// Looks for `file` beside the running program, in the folder above, and in ../lib/teratron. `global`: what the module
/// links to becomes visible to libraries that are loaded later.
LoadedSymbol load_symbol(const char* file, const char* symbol, bool global = false);

}  // namespace tera
