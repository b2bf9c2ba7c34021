#include "data/export.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/error.h"
#include "token/json_scan.h"
#include "token/utf8.h"

namespace tera {
namespace {

using Document = std::vector<std::vector<std::int32_t>>;  // ids of each sequence

void read_document(const IndexedDataset& data, std::int64_t d, Document& out) {
    const SequenceIndex& index = data.index();
    const std::int64_t begin = index.document_index(d), end = index.document_index(d + 1);
    out.resize(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) {
        if (index.has_modes() && index.mode(i) != 0)
            usage_error(data.path(), ": sequence ", i, " is an image, which has no text; export takes text only");
        auto& ids = out[static_cast<std::size_t>(i - begin)];
        ids.resize(static_cast<std::size_t>(index.length(i)));
        data.get(i, 0, index.length(i), ids.data());
    }
}

std::string ids_line(const Document& document) {
    std::string out = "{\"ids\": [";
    for (std::size_t s = 0; s < document.size(); ++s) {
        out += s == 0 ? "[" : ", [";
        for (std::size_t i = 0; i < document[s].size(); ++i)
            out += (i == 0 ? "" : ", ") + std::to_string(document[s][i]);
        out += "]";
    }
    return out + "]}\n";
}

class TextMaker {
  public:
    TextMaker(const std::string& path, const Tokenizer& tokenizer, const ExportOptions& options)
        : path_(path),
          tokenizer_(tokenizer),
          options_(options),
          key_(json_string(options.key)),
          before_(tokenizer.ids_before()),
          behind_(tokenizer.ids_behind()) {}

    /// `d` is for messages.
    std::string text(Document& document, std::int64_t d, bool& is_valid) const {
        if (!options_.keep_eod && !document.empty() && !document.back().empty() &&
            document.back().back() == tokenizer_.eod())
            document.back().pop_back();
        std::vector<std::string> parts;
        for (const auto& ids : document) {
            check_ids(ids, d);
            std::string bytes = tokenizer_.decode(own_ids(ids));
            if (find_invalid_utf8(bytes) != std::string_view::npos) {
                is_valid = false;
                bytes = replace_invalid_utf8(bytes);
            }
            parts.push_back(std::move(bytes));
        }
        return options_.format == ExportFormat::text ? plain(parts) : json_line(parts);
    }

  private:
    /// Without what the tokenizer puts around every text, which encoding the text again would put there twice.
    std::span<const std::int32_t> own_ids(std::span<const std::int32_t> ids) const {
        if (ids.size() >= before_.size() && std::equal(before_.begin(), before_.end(), ids.begin()))
            ids = ids.subspan(before_.size());
        if (ids.size() >= behind_.size() && std::equal(behind_.rbegin(), behind_.rend(), ids.rbegin()))
            ids = ids.first(ids.size() - behind_.size());
        return ids;
    }

    void check_ids(const std::vector<std::int32_t>& ids, std::int64_t d) const {
        for (const std::int32_t id : ids) {
            if (id < 0 || id >= tokenizer_.vocab_size())
                usage_error(path_, ": document ", d, ": id ", id, " is outside the tokenizer's vocabulary of ",
                            tokenizer_.vocab_size(), "; give the tokenizer the file was made with");
        }
    }

    static std::string plain(const std::vector<std::string>& parts) {
        std::string out;
        for (const std::string& part : parts) out += part;
        return out + "\n\n";
    }

    std::string json_line(const std::vector<std::string>& parts) const {
        std::string out = "{" + key_ + ": ";
        if (parts.size() == 1) return out + json_string(parts[0]) + "}\n";
        out += "[";
        for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : ", ") + json_string(parts[i]);
        return out + "]}\n";
    }

    const std::string& path_;
    const Tokenizer& tokenizer_;
    const ExportOptions& options_;
    std::string key_;
    std::vector<std::int32_t> before_, behind_;
};

}  // namespace

ExportResult export_dataset(const IndexedDataset& data, const Tokenizer* tokenizer, const ExportOptions& options,
                            const std::function<void(std::string_view)>& write) {
    TERA_CHECK(tokenizer != nullptr || options.format == ExportFormat::ids, "text needs a tokenizer");
    const std::int64_t documents = data.index().documents();
    if (options.first < 0 || options.first > documents)
        usage_error("--first ", options.first, " is out of range; ", data.path(), " has ", documents, " documents");
    const std::int64_t left = documents - options.first;
    const std::int64_t count = options.count < 0 ? left : std::min(options.count, left);
    ExportResult result;
    Document document;
    std::optional<TextMaker> maker;
    if (options.format != ExportFormat::ids) maker.emplace(data.path(), *tokenizer, options);
    for (std::int64_t d = options.first; d < options.first + count; ++d) {
        read_document(data, d, document);
        for (const auto& ids : document) result.tokens += static_cast<std::int64_t>(ids.size());
        bool is_valid = true;
        write(maker ? maker->text(document, d, is_valid) : ids_line(document));
        ++result.documents;
        if (!is_valid) ++result.invalid;
    }
    return result;
}

}  // namespace tera
