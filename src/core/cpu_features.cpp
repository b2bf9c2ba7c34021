#include "core/cpu_features.h"

#include <sched.h>

#include <fstream>

#include "core/cpu_feature_list.h"

namespace tera {

#if defined(__x86_64__)
std::vector<CpuFeature> cpu_features() {
    __builtin_cpu_init();
    std::vector<CpuFeature> all;
    uint32_t bit = 1;
#define TERA_ADD(macro, builtin_name, shown)                                                                \
    all.push_back({shown, (cpu_features_built_for & bit) != 0, __builtin_cpu_supports(builtin_name) != 0}); \
    bit <<= 1;
    TERA_X86_FEATURES(TERA_ADD)
#undef TERA_ADD
    return all;
}
#else
std::vector<CpuFeature> cpu_features() { return {}; }
#endif

// A macro that is defined expands to 1 before it is made text; one that is not stays a name.
#define TERA_TEXT_OF(x) #x
#define TERA_IS_DEFINED(x) (TERA_TEXT_OF(x)[0] == '1')

static constexpr uint32_t built_for_mask() {
    uint32_t mask = 0;
    [[maybe_unused]] uint32_t bit = 1;
#if defined(__x86_64__)
#define TERA_ADD(macro, builtin_name, shown) \
    if (TERA_IS_DEFINED(macro)) mask |= bit; \
    bit <<= 1;
    TERA_X86_FEATURES(TERA_ADD)
#undef TERA_ADD
#endif
    return mask;
}
constinit const uint32_t cpu_features_built_for = built_for_mask();

std::string cpu_model_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("model name", 0) != 0) continue;
        const size_t colon = line.find(':');
        const size_t start = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
        if (start != std::string::npos) return line.substr(start);
    }
    return "unknown";
}

int cpu_count() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace tera
