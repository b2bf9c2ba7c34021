// Small checks that the parts of validation share. Each failure is one line that names the flag.
#pragma once

#include <string>

#include "config/run_config.h"
#include "core/error.h"

namespace tera::checks {

inline bool given(const RunConfig& c, const char* dest) { return c.given.count(dest) != 0; }

inline void notice(RunConfig& c, const std::string& text) {
    // Validation may run twice, once for the plan and once for the run.
    for (const std::string& old : c.notices) {
        if (old == text) return;
    }
    c.notices.push_back(text);
}

inline void require_positive(int64_t value, const char* flag) {
    if (value <= 0)
        usage_error(flag, value == 0 ? " is required and must be positive" : cat(" must be positive, not ", value));
}

inline void require_divides(int64_t divisor, const char* divisor_name, int64_t value, const char* value_name) {
    if (value % divisor != 0) usage_error(value_name, " ", value, " is not divisible by ", divisor_name, " ", divisor);
}

}  // namespace tera::checks
