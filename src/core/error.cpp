#include "core/error.h"

#include <string_view>

namespace tera {

void contract_failed(const char* file, int line, const char* expression, const std::string& values) {
    std::string_view path = file;
    if (auto at = path.rfind("/src/"); at != path.npos) path.remove_prefix(at + 1);
    std::string text = cat(path, ":", line, ": broken contract: ", expression);
    if (!values.empty()) text += cat(" (", values, ")");
    throw Error(text);
}

}  // namespace tera
