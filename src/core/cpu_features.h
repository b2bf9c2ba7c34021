// Instruction sets: what this processor has, and what the binary was compiled to use.
// A program built with -march=native for one machine dies of SIGILL on a lesser one; cli/cpu_guard.cpp uses these two
// sets to say so in words instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tera {

struct CpuFeature {
    const char* name;  ///< as in /proc/cpuinfo where the two agree: "avx2", "avx512bf16"
    bool built_for;    ///< the compiler was allowed to use it
    bool present;      ///< the processor has it, and the system saves its registers
};

/// Every instruction set we know of on this architecture, widest last. Empty where we know of none (not x86).
std::vector<CpuFeature> cpu_features();

/// "AMD EPYC 9554", from /proc/cpuinfo; "unknown" when that says nothing.
std::string cpu_model_name();

/// Processors this process may run on (its affinity mask), at least 1.
int cpu_count();

}  // namespace tera
