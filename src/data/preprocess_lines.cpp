#include "data/preprocess_lines.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "token/json_scan.h"
#include "token/utf8.h"

namespace tera {

namespace {

struct ForeignKind {
    std::string_view magic;
    const char* name;
};
constexpr std::array<ForeignKind, 3> foreign_kinds = {{
    {{"PAR1", 4}, "Parquet"},
    {{"PK\x03\x04", 4}, "zip"},
    {{"\x37\x7A\xBC\xAF\x27\x1C", 6}, "7z"},
}};

constexpr std::size_t most_line = std::size_t{1} << 30;  // a packed file of one endless line must not fill the memory

/// Length of the beginning of `text` that consists of whole lines; a \r at the very end may still be half of a \r\n.
std::size_t whole_lines(std::string_view text) {
    const std::size_t newline = text.rfind('\n');
    if (newline != std::string_view::npos) return newline + 1;
    const std::size_t lone = text.substr(0, text.empty() ? 0 : text.size() - 1).rfind('\r');
    return lone == std::string_view::npos ? 0 : lone + 1;
}

}  // namespace

LineBlockReader::LineBlockReader(std::string path, std::size_t block_bytes, RestartPoint restart, std::int64_t position)
    : path_(std::move(path)), block_bytes_(block_bytes), source_(open_bytes(path_, restart)) {
    if (position > 0) {
        source_->skip_to(position);
        is_first_ = false;
    }
}

void LineBlockReader::check_kind(std::string_view beginning) const {
    for (const auto& [magic, name] : foreign_kinds) {
        if (beginning.starts_with(magic))
            usage_error(source_->name(), ": is ", name, " data, which has no lines; give JSON lines, plain or packed");
    }
}

RestartPoint LineBlockReader::restart_point() const {
    if (source_->packing() == Packing::plain) return {position(), position()};
    RestartPoint best = restarts_.empty() ? source_->restart_point() : restarts_.front();
    for (const RestartPoint& point : restarts_)
        if (point.position <= position()) best = point;
    return best;
}

/// Remembers where the member begins that is read next, and forgets those that no line to come needs.
void LineBlockReader::note_restart(std::int64_t first_needed) {
    const RestartPoint point = source_->restart_point();
    if (restarts_.empty() || restarts_.back().position < point.position) restarts_.push_back(point);
    while (restarts_.size() > 1 && restarts_[1].position <= first_needed) restarts_.erase(restarts_.begin());
}

/// Reads block_bytes_ more, or to the end of the file.
void LineBlockReader::fill(std::string& block) {
    const std::size_t before = block.size();
    if (before > most_line)
        usage_error(source_->name(), ": byte ", source_->position() - static_cast<std::int64_t>(before),
                    " of the text begins a line of more than 1 GiB; is it JSON lines?");
    if (source_->packing() != Packing::plain) note_restart(source_->position() - static_cast<std::int64_t>(before));
    block.resize(before + block_bytes_);
    const std::size_t got = source_->read({block.data() + before, block_bytes_});
    at_end_ = got < block_bytes_;
    block.resize(before + got);
}

bool LineBlockReader::next(std::string& block) {
    block.clear();
    block.swap(rest_);
    std::size_t lines = 0;
    while (!at_end_) {
        // Only the newly read part can hold a line end, but for a \r whose neighbour was not known.
        const std::size_t searched = block.empty() ? 0 : block.size() - 1;
        fill(block);
        if (is_first_) check_kind(block);
        is_first_ = false;
        lines = whole_lines(std::string_view(block).substr(searched));
        if (lines > 0) {
            lines += searched;
            break;
        }
    }
    if (at_end_) lines = block.size();
    rest_.assign(block, lines);
    block.resize(lines);
    return !block.empty();
}

Line take_line(std::string_view& rest) {
    // memchr is far quicker than looking for two characters at once, and \r is rare.
    const auto* newline = static_cast<const char*>(std::memchr(rest.data(), '\n', rest.size()));
    std::size_t length = newline ? static_cast<std::size_t>(newline - rest.data()) : rest.size();
    std::size_t end_length = newline ? 1 : 0;
    const auto* carriage = static_cast<const char*>(std::memchr(rest.data(), '\r', length));
    if (carriage) {
        const auto at = static_cast<std::size_t>(carriage - rest.data());
        end_length = at + 1 == length && newline ? 2 : 1;
        length = at;
    }
    const Line line{rest.substr(0, length), rest.substr(0, length + end_length)};
    rest.remove_prefix(line.raw.size());
    return line;
}

KeyedStrings::KeyedStrings(std::vector<std::string> keys) : keys_(std::move(keys)), values_(keys_.size()) {}

void KeyedStrings::parse(std::string_view line) {
    if (line.starts_with("\xEF\xBB\xBF")) usage_error("begins with a byte-order mark; remove it");
    const std::size_t bad = find_invalid_utf8(line);
    if (bad != std::string_view::npos) usage_error("byte ", bad, " is not valid UTF-8");
    if (line.find_first_not_of(" \t") == std::string_view::npos)
        usage_error("is blank; every line must be one JSON object");
    for (Value& value : values_) value.found = false;
    try {
        parse_object(line);
    } catch (const JsonSyntaxError& error) {
        usage_error("invalid JSON at byte ", error.offset(), ": ", error.what());
    }
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        if (!values_[k].found) usage_error("has no key \"", keys_[k], "\"; choose the key with --json-keys");
        if (!values_[k].problem.empty()) usage_error(values_[k].problem);
    }
}

void KeyedStrings::parse_object(std::string_view line) {
    JsonScanner json(line);
    if (json.peek() != '{') {
        json.skip_value();
        usage_error("is not a JSON object");
    }
    json.expect('{', "'{'");
    if (!json.accept('}')) {
        do {
            json.read_string(key_);
            json.expect(':', "':'");
            std::size_t k = 0;
            while (k < keys_.size() && keys_[k] != key_) ++k;
            if (k < keys_.size())
                parse_value(json, k);
            else
                json.skip_value();
        } while (json.accept(','));
        json.expect('}', "',' or '}'");
    }
    json.expect_end();
}

void KeyedStrings::parse_value(JsonScanner& json, std::size_t k) {
    Value& value = values_[k];  // a repeated key takes the last value
    value.found = true;
    value.problem.clear();
    std::size_t count = 0;
    const auto read_one = [&] {
        if (json.peek() != '"') {
            if (value.problem.empty())
                value.problem = cat("the value of \"", keys_[k], "\" is neither a string nor a list of strings (byte ",
                                    json.offset(), ")");
            return json.skip_value();
        }
        if (count == value.strings.size()) value.strings.emplace_back();
        if (!json.read_string(value.strings[count++]) && value.problem.empty())
            value.problem =
                cat("the value of \"", keys_[k], "\" holds a lone surrogate escape before byte ", json.offset());
    };
    if (json.accept('[')) {
        if (!json.accept(']')) {
            do read_one();
            while (json.accept(','));
            json.expect(']', "',' or ']'");
        }
    } else {
        read_one();
    }
    value.strings.resize(count);
}

}  // namespace tera
