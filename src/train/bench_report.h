// The figures of bench_step, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/bench_step.h"

namespace tera {

/// all_kernels: every kernel and grid instead of the longest fifteen names.
std::string bench_text(const BenchResult& result, bool all_kernels);
nlohmann::json bench_json(const BenchResult& result);

}  // namespace tera
