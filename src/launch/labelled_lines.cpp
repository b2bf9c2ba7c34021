#include "launch/labelled_lines.h"

#include <unistd.h>

#include <cerrno>

namespace tera {
namespace {

constexpr std::size_t longest_line = 65536;

/// Output that nobody takes any more is dropped: the ranks are worth more than their words.
void write_all(int fd, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        at += static_cast<std::size_t>(n);
    }
}

}  // namespace

void LabelledLines::write_out(std::size_t count) {
    std::string text;
    for (std::size_t at = 0; at < count;) {
        const std::size_t end = std::min(pending_.find('\n', at), count - 1);
        text += label_ + pending_.substr(at, end + 1 - at);
        at = end + 1;
    }
    if (!text.empty() && text.back() != '\n') text += '\n';
    write_all(fd_, text);
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
