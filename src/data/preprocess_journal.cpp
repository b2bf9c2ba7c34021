#include "data/preprocess_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/durable_file.h"
#include "io/json_file.h"

namespace tera {
namespace {

constexpr int journal_version = 2;

std::string text_of(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string identity_of(const std::vector<InputFile>& files) {
    nlohmann::json inputs = nlohmann::json::array();
    for (const InputFile& file : files) {
        struct stat info {};
        ::stat(file.path.c_str(), &info);
        inputs.push_back({file.path, static_cast<int>(file.format), file.size, info.st_mtim.tv_sec,
                          info.st_mtim.tv_nsec, static_cast<std::uint64_t>(info.st_ino)});
    }
    return text_of(inputs);
}

nlohmann::json entry_json(const JournalEntry& entry, const std::string& identity) {
    const InputPlace& p = entry.place;
    const PreprocessProgress& g = entry.progress;
    nlohmann::json outputs = nlohmann::json::array();
    for (const auto& k : entry.outputs)
        outputs.push_back({k.sequences, k.documents, k.tokens, k.bin_bytes, k.idx_bytes, k.document_bytes});
    return {{"identity", identity},
            {"place", {p.file, p.restart.stored, p.restart.position, p.position, p.line, p.record, p.stored}},
            {"progress", {g.documents, g.tokens, g.characters, g.bytes, g.invalid}},
            {"outputs", outputs}};
}

JournalEntry parse_entry(const nlohmann::json& json) {
    const auto numbers = [](const nlohmann::json& list, std::size_t count) {
        const auto values = list.get<std::vector<std::int64_t>>();
        if (values.size() != count) throw std::out_of_range("count");
        return values;
    };
    JournalEntry entry;
    const auto p = numbers(json.at("place"), 7), g = numbers(json.at("progress"), 5);
    entry.place = {p[0], {p[1], p[2]}, p[3], p[4], p[5], p[6]};
    entry.progress.documents = g[0];
    entry.progress.tokens = g[1];
    entry.progress.characters = g[2];
    entry.progress.bytes = g[3];
    entry.progress.invalid = g[4];
    for (const nlohmann::json& output : json.at("outputs")) {
        const auto k = numbers(output, 6);
        entry.outputs.push_back({k[0], k[1], k[2], k[3], k[4], k[5]});
    }
    return entry;
}

}  // namespace

PreprocessJournal::PreprocessJournal(const Tokenizer& tokenizer, const PreprocessOptions& options,
                                     const std::vector<InputFile>& files)
    : tokenizer_(tokenizer),
      options_(options),
      path_(options.output_prefix + ".resume.json"),
      inputs_(identity_of(files)) {
    for (const InputFile& file : files) {
        struct stat info {};
        if (file.path == "-" || ::stat(file.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) is_kept_ = false;
    }
    if (options.journal_seconds < 0) is_kept_ = false;
    prefixes_ = preprocess_written(options);
}

/// Everything that decides the bytes written, as text.
const std::string& PreprocessJournal::identity() {
    if (!identity_.empty()) return identity_;
    identity_ = text_of({journal_version, inputs_, options_.json_keys, options_.append_eod, options_.skip_invalid,
                         tokenizer_.name(), tokenizer_.vocab_size(), tokenizer_.eod(), tokenizer_.checksum(),
                         options_.split_sentences, options_.sentences.language, options_.sentences.keep_newlines});
    return identity_;
}

PreprocessJournal::~PreprocessJournal() {
    ::unlink(path_.c_str());
    ::unlink(unfinished().c_str());
}

std::optional<JournalEntry> PreprocessJournal::find() {
    std::optional<JournalEntry> entry;
    struct stat info {};
    if (is_kept_ && ::stat(path_.c_str(), &info) == 0) {
        try {
            const nlohmann::json json = read_json_file(path_);
            if (json.at("identity") == identity()) entry = parse_entry(json);
        } catch (const std::exception&) {
            entry.reset();  // a journal that cannot be read is none
        }
    }
    bool fits = entry && entry->outputs.size() == prefixes_.size();
    for (std::size_t k = 0; fits && k < prefixes_.size(); ++k)
        fits = IndexedDatasetWriter::can_resume(prefixes_[k], entry->outputs[k]);
    if (fits) return entry;
    remove();
    return std::nullopt;
}

void PreprocessJournal::store(const JournalEntry& entry) {
    if (!is_kept_) return;
    // A name of its own that the next run knows, so that no kill leaves one behind for good.
    OutputFile file(unfinished(), OutputFile::Mode::create);
    file.append(text_of(entry_json(entry, identity())));
    file.sync();
    file.close();
    rename_durably(unfinished(), path_);
}

void PreprocessJournal::remove() {
    ::unlink(unfinished().c_str());
    if (::unlink(path_.c_str()) == 0) sync_folder(folder_of(path_));
}

}  // namespace tera
