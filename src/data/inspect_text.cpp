// An Inspection as JSON and as text.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/inspect.h"
#include "io/durable_file.h"

namespace tera {
namespace {

nlohmann::json lengths_json(const LengthStatistics& lengths) {
    nlohmann::json histogram = nlohmann::json::array();
    for (std::size_t i = 0; i < lengths.histogram.size(); ++i) {
        const std::int64_t from = i == 0 ? 0 : std::int64_t{1} << (i - 1);
        const std::int64_t to = i == 0 ? 0 : (std::int64_t{1} << i) - 1;
        if (lengths.histogram[i] > 0)
            histogram.push_back({{"from", from}, {"to", to}, {"count", lengths.histogram[i]}});
    }
    return {{"count", lengths.count}, {"empty", lengths.zeros}, {"min", lengths.min},
            {"max", lengths.max},     {"mean", lengths.mean},   {"median", lengths.median},
            {"p90", lengths.p90},     {"p99", lengths.p99},     {"histogram", histogram}};
}

[[gnu::format(printf, 2, 3)]] void line(std::string& out, const char* format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    out += text;
    out += '\n';
}

long long shown(std::int64_t value) { return value; }

std::string spread(const LengthStatistics& l) {
    char text[256];
    std::snprintf(text, sizeof text, "%lld to %lld tokens, mean %.1f, median %lld, 90%% up to %lld, 99%% up to %lld",
                  shown(l.min), shown(l.max), l.mean, shown(l.median), shown(l.p90), shown(l.p99));
    return text;
}

void histogram(std::string& out, const LengthStatistics& lengths) {
    constexpr double width = 50;
    const std::int64_t most = *std::max_element(lengths.histogram.begin(), lengths.histogram.end());
    for (std::size_t i = 0; i < lengths.histogram.size(); ++i) {
        const std::int64_t count = lengths.histogram[i];
        const std::int64_t from = i == 0 ? 0 : std::int64_t{1} << (i - 1);
        const std::int64_t to = i == 0 ? 0 : (std::int64_t{1} << i) - 1;
        if (count == 0 && i == 0) continue;
        const auto bar = static_cast<std::size_t>(static_cast<double>(count) / static_cast<double>(most) * width + 0.5);
        line(out, "  %10lld - %-10lld %12lld  %s", shown(from), shown(to), shown(count), std::string(bar, '#').c_str());
    }
}

}  // namespace

nlohmann::json inspection_json(const Inspection& i) {
    nlohmann::json out = {{"prefix", i.prefix},
                          {"dtype", type_name(i.type)},
                          {"documents", i.documents},
                          {"sequences", i.sequences},
                          {"tokens", i.tokens},
                          {"bin_bytes", i.bin_bytes},
                          {"idx_bytes", i.idx_bytes},
                          {"multimodal", i.is_multimodal},
                          {"document_lengths", lengths_json(i.document_lengths)},
                          {"sequence_lengths", lengths_json(i.sequence_lengths)}};
    if (i.is_multimodal) out["image_sequences"] = i.image_sequences;
    if (i.check) {
        out["check"] = {{"min_id", i.check->min_id},
                        {"max_id", i.check->max_id},
                        {"different_ids", i.check->different_ids},
                        {"documents_ending_in_eod", i.check->documents_ending_in_eod},
                        {"bin_crc32c", i.check->bin_crc32c},
                        {"idx_crc32c", i.check->idx_crc32c}};
    }
    return out;
}

std::string inspection_text(const Inspection& i) {
    std::string out;
    line(out, "%s", i.prefix.c_str());
    line(out, "  documents  %lld (%lld empty)", shown(i.documents), shown(i.document_lengths.zeros));
    line(out, "  sequences  %lld%s", shown(i.sequences),
         i.is_multimodal ? cat(" (", i.image_sequences, " images)").c_str() : "");
    line(out, "  tokens     %lld, %s", shown(i.tokens), type_name(i.type));
    line(out, "  size       .bin %s, .idx %s", human_bytes(static_cast<std::uint64_t>(i.bin_bytes)).c_str(),
         human_bytes(static_cast<std::uint64_t>(i.idx_bytes)).c_str());
    if (i.documents > 0) line(out, "  documents are %s", spread(i.document_lengths).c_str());
    if (i.sequences != i.documents && i.sequences > 0)
        line(out, "  sequences are %s", spread(i.sequence_lengths).c_str());
    if (i.documents > 0) {
        line(out, "  tokens in a document     documents");
        histogram(out, i.document_lengths);
    }
    if (i.check) {
        if (i.check->max_id >= 0)
            line(out, "  ids from %lld to %lld, %lld different", shown(i.check->min_id), shown(i.check->max_id),
                 shown(i.check->different_ids));
        line(out, "  crc32c     .bin %s, .idx %s", i.check->bin_crc32c.c_str(), i.check->idx_crc32c.c_str());
        line(out, "  checked: whole");
    }
    return out;
}

}  // namespace tera
