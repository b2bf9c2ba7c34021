#include "core/build_info.h"

#include "build_info_values.h"
#include "core/error.h"

namespace tera {

const BuildInfo& build_info() {
    namespace values = build_info_values;
    static constexpr BuildInfo info = {values::version, values::revision,   values::compiler,
                                       values::flags,   values::build_type, values::cuda};
    return info;
}

std::string version_line() {
    const BuildInfo& b = build_info();
    return cat("teratron ", b.version, " (", b.revision, ", ", b.compiler, ", ", b.build_type, ", ",
               b.cuda ? "CPU and CUDA" : "CPU", ")");
}

}  // namespace tera
