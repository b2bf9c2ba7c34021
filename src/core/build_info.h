// What this binary was built from and how. The values are fixed when CMake configures (cmake/TeraVersion.cmake).
#pragma once

#include <string>

namespace tera {

struct BuildInfo {
    const char* version;     ///< "0.1.0"
    const char* revision;    ///< git describe: tag or hash, "-dirty" when the tree had changes; "unknown" outside git
    const char* compiler;    ///< "GNU 12.2.0"
    const char* flags;       ///< compiler flags, warnings left out
    const char* build_type;  ///< "Release", "Debug"
    bool cuda;               ///< the CUDA backend is compiled in
};

const BuildInfo& build_info();

/// One line for `--version` and the head of a log: "teratron 0.1.0 (1a2b3c4, GNU 12.2.0, Release, CPU)".
std::string version_line();

}  // namespace tera
