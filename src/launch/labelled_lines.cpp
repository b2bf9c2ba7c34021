#include "launch/labelled_lines.h"

#include <algorithm>

namespace tera {
namespace {

constexpr std::size_t longest_line = 65536;

/// Without who says it: "teratron: rank 3 (host): words".
std::string words_of(const std::string& complaint) {
    const std::string rank = "teratron: rank ", end = "): ";
    const std::size_t at = complaint.rfind(rank, 0) == 0 ? complaint.find(end) : complaint.npos;
    return at == complaint.npos ? complaint : complaint.substr(at + end.size());
}

}  // namespace

bool LabelledLines::made_by_another(const std::string& line) {
    if (made_ == nullptr || line.rfind("teratron: ", 0) != 0) return false;
    return made_->try_emplace(words_of(line), process_).first->second != process_;
}

void LabelledLines::write_out(std::size_t count) {
    std::string text;
    for (std::size_t at = 0; at < count;) {
        const std::size_t end = std::min(pending_.find('\n', at), count - 1);
        const std::string line = pending_.substr(at, end + 1 - at);
        if (!made_by_another(line)) text += label_ + line;
        at = end + 1;
    }
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (!text.empty()) to_->add(std::move(text));
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
