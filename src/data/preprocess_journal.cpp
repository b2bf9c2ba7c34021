#include "data/preprocess_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/durable_file.h"
#include "io/json_file.h"

namespace tera {
namespace {

constexpr int journal_version = 3;

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
            {"prefixes", entry.prefixes},
            {"outputs", outputs},
            {"all_written", entry.all_written}};
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
    entry.prefixes = json.at("prefixes").get<std::vector<std::string>>();
    entry.all_written = json.at("all_written").get<bool>();
    return entry;
}

/// The files that it speaks of are there.
bool has_files(const JournalEntry& entry) {
    if (entry.outputs.size() != entry.prefixes.size()) return false;
    for (std::size_t k = 0; k < entry.outputs.size(); ++k) {
        if (IndexedDatasetWriter::can_resume(entry.prefixes[k], entry.outputs[k])) continue;
        if (!entry.all_written || !IndexedDatasetWriter::is_finished(entry.prefixes[k], entry.outputs[k])) return false;
    }
    return true;
}

}  // namespace

PreprocessJournal::PreprocessJournal(const Tokenizer& tokenizer, const PreprocessOptions& options,
                                     const std::vector<InputFile>& files)
    : tokenizer_(tokenizer),
      options_(options),
      path_(options.output_prefix + ".resume.json"),
      inputs_(identity_of(files)) {
    for (const InputFile& file : files)
        if (!can_be_read_again(file)) is_kept_ = false;
    if (options.journal_seconds < 0) is_kept_ = false;
}

/// Everything that decides the bytes written, as text. Whether bad records are left out does not, as long as none was.
const std::string& PreprocessJournal::identity() {
    if (!identity_.empty()) return identity_;
    nlohmann::json all = {journal_version,
                          inputs_,
                          options_.json_keys,
                          options_.append_eod,
                          options_.end_token.value_or(-1),
                          static_cast<int>(options_.token_type.value_or(token_type_for(tokenizer_.vocab_size()))),
                          tokenizer_.name(),
                          tokenizer_.vocab_size(),
                          tokenizer_.eod(),
                          tokenizer_.checksum(),
                          options_.partitions,
                          options_.partitions > 1 && options_.keep_sequential_samples,
                          options_.split_sentences};
    if (options_.split_sentences) {
        all.push_back(options_.sentences.language);
        all.push_back(options_.sentences.keep_newlines);
    }
    identity_ = text_of(all);
    return identity_;
}

std::optional<JournalEntry> PreprocessJournal::find() {
    JournalEntry entry;
    bool same = false;
    try {
        struct stat info {};
        if (::stat(path_.c_str(), &info) != 0) return std::nullopt;
        const nlohmann::json json = read_json_file(path_);
        entry = parse_entry(json);
        same = is_kept_ && json.at("identity") == identity();
    } catch (const std::exception&) {
        return std::nullopt;  // a journal that cannot be read is none
    }
    if (!has_files(entry)) return std::nullopt;
    if (same && (entry.progress.invalid == 0 || options_.skip_invalid)) return entry;
    usage_error(path_, ": a run with other flags, input or tokenizer was stopped after ", entry.progress.documents,
                " documents; give its command again to go on with it, or delete this file to begin anew");
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
