#include "io/csv_reader.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tera {
namespace {

constexpr std::size_t least_fill = std::size_t{1} << 18;
constexpr std::size_t most_record = std::size_t{1} << 30;  // a quote that is not closed must not fill the memory

std::int64_t line_ends(std::string_view text) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))) ++count;
    return count;
}

}  // namespace

CsvReader::CsvReader(const std::string& path, std::vector<std::string> columns, char delimiter)
    : path_(path), delimiter_(delimiter), source_(open_bytes(path)) {
    fill();
    if (buffer_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // spreadsheets write a byte-order mark
    read_header(columns);
}

void CsvReader::read_header(const std::vector<std::string>& columns) {
    if (!read_record()) usage_error(path_, ": is empty; the first line must name the columns");
    if (!problem_.empty()) usage_error(path_, ": line ", line_, ": ", problem_);
    std::string names;
    for (std::size_t i = 0; i < field_count_ && i < 20; ++i) names += (i == 0 ? "" : ", ") + fields_[i].substr(0, 100);
    for (const std::string& column : columns) {
        const auto end = fields_.begin() + static_cast<std::ptrdiff_t>(field_count_);
        const auto found = std::find(fields_.begin(), end, column);
        if (found == end) usage_error(path_, ": has no column \"", column, "\"; its header names ", names);
        if (std::find(found + 1, end, column) != end)
            usage_error(path_, ": its header names the column \"", column, "\" twice");
        wanted_.push_back(static_cast<std::size_t>(found - fields_.begin()));
    }
    header_fields_ = field_count_;
    take_record();
}

void CsvReader::seek(const CsvPlace& place) {
    source_ = open_bytes(path_, place.restart);
    source_->skip_to(place.position);
    buffer_.clear();
    at_ = record_end_ = 0;
    buffer_position_ = place.position;
    source_ended_ = false;
    restarts_.clear();
    problem_.clear();
    line_ = place.line;
    row_ = place.row;
}

CsvPlace CsvReader::place() const {
    CsvPlace place;
    place.position = buffer_position_ + static_cast<std::int64_t>(at_);
    place.line = line_;
    place.row = row_;
    for (const RestartPoint& point : restarts_)
        if (point.position <= place.position) place.restart = point;
    if (source_->packing() == Packing::plain) place.restart = {place.position, place.position};
    return place;
}

/// Reads on behind what is in the buffer, as much again as is there, so that a long record is not parsed often.
bool CsvReader::fill() {
    if (source_ended_) return false;
    buffer_.erase(0, at_);
    buffer_position_ += static_cast<std::int64_t>(at_);
    record_end_ = record_end_ > at_ ? record_end_ - at_ : 0;
    at_ = 0;
    if (restarts_.empty() || restarts_.back().position < source_->restart_point().position)
        restarts_.push_back(source_->restart_point());
    while (restarts_.size() > 1 && restarts_[1].position <= buffer_position_) restarts_.erase(restarts_.begin());
    const std::size_t before = buffer_.size(), wanted = std::max(least_fill, before);
    buffer_.resize(before + wanted);
    const std::size_t got = source_->read({buffer_.data() + before, wanted});
    buffer_.resize(before + got);
    source_ended_ = got < wanted;
    return got > 0;
}

CsvReader::Parse CsvReader::bad(std::string why) {
    problem_ = std::move(why);
    record_end_ = 0;
    return Parse::bad;
}

/// The rest of a field behind its opening quote. False if it does not end here; `outcome` says why.
bool CsvReader::parse_quoted(std::size_t& at, std::string& field, Parse& outcome) {
    for (;;) {
        const std::size_t quote = buffer_.find('"', at);
        const bool at_end = quote == std::string::npos;
        if (at_end || (quote + 1 == buffer_.size() && !source_ended_)) {
            outcome = !source_ended_ ? Parse::more_needed : bad("a quote is opened that is never closed");
            return false;
        }
        field.append(buffer_, at, quote - at);
        at = quote + 1;
        if (at == buffer_.size() || buffer_[at] != '"') return true;
        field += '"';
        ++at;
    }
}

CsvReader::Parse CsvReader::parse_record() {
    field_count_ = 0;
    std::size_t at = at_;
    for (;;) {
        if (field_count_ == fields_.size()) fields_.emplace_back();
        std::string& field = fields_[field_count_++];
        field.clear();
        if (at < buffer_.size() && buffer_[at] == '"') {
            Parse outcome = Parse::whole;
            if (!parse_quoted(++at, field, outcome)) return outcome;
        } else {
            const char stops[] = {delimiter_, '\n', '\r', '\0'};
            std::size_t end = buffer_.find_first_of(std::string_view(stops, 3), at);
            if (end == std::string::npos) {
                if (!source_ended_) return Parse::more_needed;
                end = buffer_.size();
            }
            field.assign(buffer_, at, end - at);
            at = end;
        }
        if (at == buffer_.size() && source_ended_) break;
        if (buffer_[at] == delimiter_) {
            ++at;
            continue;
        }
        if (buffer_[at] != '\n' && buffer_[at] != '\r') return bad("there is text behind a closing quote");
        if (buffer_[at] == '\r' && at + 1 == buffer_.size() && !source_ended_) return Parse::more_needed;
        at += buffer_.compare(at, 2, "\r\n") == 0 ? 2 : 1;
        break;
    }
    record_end_ = at;
    record_lines_ = line_ends(std::string_view(buffer_).substr(at_, at - at_));
    return Parse::whole;
}

/// Parses the next record that is not blank into fields_; false at the end. What is wrong with it is in problem_.
bool CsvReader::read_record() {
    for (;;) {
        problem_.clear();
        if (at_ == buffer_.size() && !fill()) return false;
        const Parse outcome = parse_record();
        if (outcome == Parse::more_needed) {
            if (buffer_.size() - at_ > most_record)
                usage_error(path_, ": line ", line_, ": a record of more than 1 GiB; is a quote not closed?");
            fill();
            continue;
        }
        if (outcome == Parse::whole) {
            const std::string_view raw = std::string_view(buffer_).substr(at_, record_end_ - at_);
            if (raw.find_first_not_of("\r\n") == std::string_view::npos) {
                take_record();
                continue;
            }
            if (header_fields_ > 0 && field_count_ != header_fields_)
                problem_ = cat("has ", field_count_, " fields where the header has ", header_fields_);
        }
        return true;
    }
}

void CsvReader::take_record() {
    line_ += record_lines_;
    at_ = record_end_;
}

bool CsvReader::next(TextColumns& out, std::size_t bytes) {
    out.clear(wanted_.size());
    while (out.bytes() < bytes && read_record()) {
        if (!problem_.empty()) {
            if (out.rows() > 0) break;
            usage_error(path_, ": line ", line_, ": ", problem_);
        }
        for (std::size_t i = 0; i < wanted_.size(); ++i) out.columns[i].add(fields_[wanted_[i]]);
        out.lines.push_back(line_);
        take_record();
        ++row_;
    }
    return out.rows() > 0;
}

void CsvReader::skip_record() {
    problem_.clear();
    ++row_;
    if (record_end_ > 0) {
        take_record();
        return;
    }
    for (;;) {
        const std::size_t end = buffer_.find('\n', at_);
        if (end != std::string::npos) {
            at_ = end + 1;
            ++line_;
            return;
        }
        at_ = buffer_.size();
        if (!fill()) return;
    }
}

}  // namespace tera
