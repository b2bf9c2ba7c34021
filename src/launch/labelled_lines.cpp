#include "launch/labelled_lines.h"

#include <algorithm>

namespace tera {
namespace {

constexpr std::size_t longest_line = 65536;

}  // namespace

void LabelledLines::write_out(std::size_t count) {
    std::string text;
    for (std::size_t at = 0; at < count;) {
        const std::size_t end = std::min(pending_.find('\n', at), count - 1);
        text += label_ + pending_.substr(at, end + 1 - at);
        at = end + 1;
    }
    if (!text.empty() && text.back() != '\n') text += '\n';
    to_->add(std::move(text));
    pending_.erase(0, count);
}

void LabelledLines::add(const char* bytes, std::size_t count) {
    pending_.append(bytes, count);
    const std::size_t last = pending_.rfind('\n');
    if (last != pending_.npos) write_out(last + 1);
    if (pending_.size() > longest_line) write_out(pending_.size());
}

void LabelledLines::finish() {
    if (!pending_.empty()) write_out(pending_.size());
}

}  // namespace tera
