// Saving. The order is the promise: everything into a temporary folder, synced; the folder renamed; the tracker file
// replaced; only then older checkpoints removed. At every instant the tracker names a whole checkpoint.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "io/durable_file.h"
#include "io/json_file.h"
#include "io/safetensors.h"
#include "train/checkpoint.h"
#include "train/checkpoint_state.h"
#include "train/checkpoint_tensors.h"
#include "train/host_rows.h"

namespace tera {
namespace fs = std::filesystem;
namespace {

constexpr const char* unfinished = ".tmp";     // a folder being written or removed
constexpr const char* replaced = ".replaced";  // a checkpoint that makes way for one of the same iteration

/// What one tensor of a file is made of.
struct Source {
    TensorSpec spec;
    SplitTensor rows;  ///< [R, C]; absent where the parameter is spread over ranks
    bool transposed = false;
    std::string param{}, kind{};                ///< whose rows, of what
    std::int64_t row_begin = 0, row_count = 0;  ///< which of them
};

/// All files of tensors that share a stem: model, master, exp_avg.
struct FileGroup {
    std::string folder;  ///< within the checkpoint: "" or "training_state/"
    std::string stem;
    std::map<std::string, std::string> metadata;
    std::vector<Source> tensors;
};

FileGroup model_group(const CheckpointContent& content, HfArchitecture architecture) {
    std::map<std::string, const Param*> by_name;
    for (const Param* p : content.params) by_name[p->name] = p;
    FileGroup group{"", "model", {{"format", "pt"}}, {}};
    std::set<std::string> covered;
    for (const HfTensor& t : hf_tensors(content.model, architecture)) {
        const auto found = by_name.find(t.param);
        TERA_CHECK(found != by_name.end(), "the model has no parameter ", t.param);
        const Tensor& value = found->second->value;
        covered.insert(t.param);
        group.tensors.push_back({{t.name, value.dtype, t.shape}, row_range(value, t.row_begin, t.rows), t.transposed});
    }
    TERA_CHECK(covered.size() == by_name.size(), "a parameter has no place in the model files");
    return group;
}

/// One group per kind. Where the optimizer keeps no main weights of its own, the values are.
std::vector<FileGroup> optimizer_groups(const CheckpointContent& content) {
    std::map<std::string, std::map<std::string, SplitTensor>> by_kind;
    for (const OptimizerTensor& t : content.optimizer) by_kind[t.kind][t.param] = t.tensor;
    for (const Param* p : content.params) by_kind["master"].try_emplace(p->name, p->value);
    std::vector<FileGroup> groups;
    for (const auto& [kind, tensors] : by_kind) {
        FileGroup group{"training_state/", kind, {}, {}};
        for (const Param* p : content.params) {
            const auto found = tensors.find(p->name);
            TERA_CHECK(found != tensors.end(), "no ", kind, " of ", p->name);
            const SplitTensor& value = found->second;
            TERA_CHECK(value.numel() == p->full_shape.numel(), kind, " of ", p->name, " is ", value.shape().str());
            const std::int64_t rows = p->full_shape.ndim == 0 ? 1 : p->full_shape[0];
            group.tensors.push_back({{p->name, value.dtype(), p->full_shape},
                                     value.reshape({rows, value.numel() / std::max<std::int64_t>(1, rows)}),
                                     false});
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

/// The same groups where the tensors are spread over ranks.
std::vector<FileGroup> spread_groups(const CheckpointContent& content, HfArchitecture architecture,
                                     const SpreadTensors& spread, bool optimizer) {
    const DType value = content.params.front()->value.dtype;
    std::vector<FileGroup> groups = {{"", "model", {{"format", "pt"}}, {}}};
    for (const HfTensor& t : hf_tensors(content.model, architecture))
        groups[0].tensors.push_back(
            {{t.name, value, t.shape}, {}, t.transposed, t.param, "value", t.row_begin, t.rows});
    std::set<std::string> kinds = {"master"};
    for (const OptimizerTensor& t : content.optimizer) kinds.insert(t.kind);
    for (const std::string& kind : kinds) {
        if (!optimizer) break;
        FileGroup group{"training_state/", kind, {}, {}};
        for (const SpreadTensors::WholeParam& p : spread.params()) {
            const std::int64_t rows = p.shape.ndim == 0 ? 1 : p.shape[0];
            group.tensors.push_back({{p.name, acc_dtype(value), p.shape}, {}, false, p.name, kind, 0, rows});
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

class Saver {
  public:
    Saver(const CheckpointContent& content, const SaveOptions& options)
        : content_(content),
          options_(options),
          architecture_(choose_architecture(content.model)),
          final_(options.folder + "/" + iteration_folder(content.state.iteration)),
          temporary_(final_ + unfinished) {
        if (content.ranks.world != nullptr) {
            const SpreadTensors::Source source{content.exec, content.params.front()->value.dtype};
            spread_.emplace(content.model, content.ranks, content.optimizer, source);
        }
    }

    SaveReport run() {
        if (!spread_) return write();
        if (content_.ranks.world->rank() != 0) {
            spread_->serve();
            return {};
        }
        try {
            SaveReport report = write();
            spread_->finish(true);
            return report;
        } catch (...) {
            spread_->finish(false);
            throw;
        }
    }

  private:
    SaveReport write() {
        step("create folder");
        make_folders(options_.folder);
        remove_leftovers();
        plan();
        try {
            make_folders(temporary_ + "/training_state");
            write_everything();
            publish_folder();
        } catch (...) {
            remove_quietly(temporary_);
            throw;
        }
        step("tracker");
        write_file_durably(options_.folder + "/" + tracker_name(), cat(content_.state.iteration));
        remove_old();
        report_.path = final_;
        return std::move(report_);
    }

    void step(const std::string& what) const {
        if (options_.before_step) options_.before_step(what);
    }
    static void remove_quietly(const std::string& path) {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }

    /// Folders that a crash left behind.
    void remove_leftovers() const {
        for (const fs::directory_entry& entry : fs::directory_iterator(options_.folder)) {
            const std::string name = entry.path().filename().string();
            const std::string stem = entry.path().stem().string();
            const std::string ending = entry.path().extension().string();
            if (parse_iteration_folder(stem) >= 0) {
                // An old one that was about to be replaced is the only one left if its successor never arrived.
                const bool superseded = ending == replaced && fs::exists(entry.path().parent_path() / stem);
                if (ending == unfinished || superseded) remove_tree(entry.path().string());
            } else if (name.rfind(std::string(tracker_name()) + ".tmp-", 0) == 0) {
                remove_tree(entry.path().string());
            }
        }
    }

    void plan() {
        if (spread_) {
            groups_ = spread_groups(content_, architecture_, *spread_, options_.optimizer);
        } else {
            groups_.push_back(model_group(content_, architecture_));
            if (options_.optimizer) {
                for (FileGroup& group : optimizer_groups(content_)) groups_.push_back(std::move(group));
            }
        }
        std::uint64_t needed = 1 << 16;  // configurations and arguments
        for (const FileGroup& group : groups_) {
            for (const Source& t : group.tensors) needed += t.spec.bytes() + 512;  // its entries in header and record
        }
        for (const TokenizerFile& file : content_.tokenizer) needed += file.bytes.size();
        const auto room = free_bytes(options_.folder + "/x");
        if (room && *room < needed) {
            usage_error("saving to ", options_.folder, " needs ", human_bytes(needed), ", but only ",
                        human_bytes(*room), " are free there; make room or choose another --save folder");
        }
        if (architecture_ == HfArchitecture::teratron) {
            report_.notices.push_back(cat("no Hugging Face architecture is exactly this model (",
                                          why_no_architecture(content_.model),
                                          "): the checkpoint uses our own tensor names"));
        }
    }

    void write_everything() {
        for (const FileGroup& group : groups_) write_group(group);
        HfConfigExtras extras{content_.params.front()->value.dtype, content_.eod, content_.eod};
        write_text("config.json", json_text(hf_config_json(content_.model, architecture_, extras)));
        write_text("generation_config.json", json_text(hf_generation_config_json(extras)));
        for (const TokenizerFile& file : content_.tokenizer) {
            TERA_CHECK(!file.name.empty() && file.name.find('/') == std::string::npos, "tokenizer file ", file.name);
            write_text(file.name, file.bytes);
        }
        write_text("training_state/state.json", state_file_text(state_file()));
        step("sync folders");
        sync_folder(temporary_ + "/training_state");
        sync_folder(temporary_);
    }

    void write_group(const FileGroup& group) {
        std::vector<TensorSpec> specs;
        std::map<std::string, const Source*> sources;
        for (const Source& t : group.tensors) {
            specs.push_back(t.spec);
            sources[t.spec.name] = &t;
        }
        const auto shards = plan_shards(specs, group.stem, options_.shard_bytes);
        for (const SafetensorsShard& shard : shards) write_shard(group, shard, sources);
        if (shards.size() > 1) {
            write_text(cat(group.folder, group.stem, ".safetensors.index.json"), json_text(shard_index(shards)));
        }
    }

    void write_shard(const FileGroup& group, const SafetensorsShard& shard,
                     const std::map<std::string, const Source*>& sources) {
        const std::string path = group.folder + shard.file;
        step("create " + path);
        SafetensorsWriter writer(temporary_ + "/" + path, shard.tensors, group.metadata);
        FileRecord& record = files_[path];
        record.bytes = writer.file_size();
        for (const TensorSpec& spec : shard.tensors) {
            step(cat("write ", path, " ", spec.name));
            const Source& source = *sources.at(spec.name);
            const HostView rows =
                source.rows.tensor ? HostView(content_.exec, source.rows) : HostView(content_.exec, rows_of(source));
            write_tensor(writer, spec.name, rows.tensor(), source.transposed);
            record.checksums[spec.name] = crc32c_text(writer.checksum(spec.name));
        }
        step("sync " + path);
        writer.sync();
        writer.close();
        report_.bytes += writer.file_size();
    }

    ConstTensor rows_of(const Source& source) {
        return row_range(spread_->whole(source.param, source.kind), source.row_begin, source.row_count);
    }

    void write_text(const std::string& name, const std::string& text) {
        step("write " + name);
        OutputFile out(temporary_ + "/" + name, OutputFile::Mode::create);
        out.append(text);
        out.sync();
        out.close();
        report_.bytes += text.size();
    }

    StateFile state_file() const {
        StateFile file;
        file.state = content_.state;
        file.model = content_.model;
        file.architecture = class_name_of(architecture_);
        for (std::size_t i = 1; i < groups_.size(); ++i) file.kinds.push_back(groups_[i].stem);
        file.files = files_;
        return file;
    }

    void publish_folder() {
        step("rename");
        std::error_code ignored;
        if (fs::exists(final_, ignored)) {
            replace_folder();
        } else {
            rename_durably(temporary_, final_);
        }
    }

    /// A checkpoint of this iteration is there already (the run went back and came here again).
    void replace_folder() {
        if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0) {
            sync_folder(options_.folder);
            step("remove replaced");
            remove_quietly(temporary_);
            return;
        }
        // Not every file system can swap. Between the two renames find_checkpoint() takes the one set aside.
        rename_durably(final_, final_ + replaced);
        step("rename over replaced");
        rename_durably(temporary_, final_);
        step("remove replaced");
        remove_quietly(final_ + replaced);
    }

    void remove_old() {
        if (options_.keep_last <= 0) return;
        std::vector<std::int64_t> older;  // later ones belong to another course of the run: not ours to judge
        for (const fs::directory_entry& entry : fs::directory_iterator(options_.folder)) {
            const std::int64_t iteration = parse_iteration_folder(entry.path().filename().string());
            if (iteration >= 0 && iteration < content_.state.iteration) older.push_back(iteration);
        }
        std::sort(older.rbegin(), older.rend());
        for (std::size_t i = static_cast<std::size_t>(options_.keep_last) - 1; i < older.size(); ++i) {
            if (options_.keep_every > 0 && older[i] % options_.keep_every == 0) continue;
            remove_checkpoint(older[i]);
        }
    }

    // Renamed first: what is half removed must not look like a checkpoint.
    void remove_checkpoint(std::int64_t iteration) {
        const std::string path = options_.folder + "/" + iteration_folder(iteration);
        step("remove " + path);
        try {
            rename_durably(path, path + unfinished);
            step("remove files of " + path);
            remove_tree(path + unfinished);
            report_.notices.push_back(cat("removed the older checkpoint ", path));
        } catch (const UsageError& e) {
            report_.notices.push_back(e.what());
        }
    }

    const CheckpointContent& content_;
    const SaveOptions& options_;
    const HfArchitecture architecture_;
    const std::string final_, temporary_;
    std::optional<SpreadTensors> spread_;
    std::vector<FileGroup> groups_;
    std::map<std::string, FileRecord> files_;
    SaveReport report_;
};

}  // namespace

SaveReport save_checkpoint(const CheckpointContent& content, const SaveOptions& options) {
    TERA_CHECK(!options.folder.empty() && !content.params.empty() && content.state.iteration >= 0, "nothing to save");
    try {
        return Saver(content, options).run();
    } catch (const fs::filesystem_error& e) {
        usage_error("cannot save to ", options.folder, ": ", e.code().message());
    }
}

void check_save_folder(const std::string& folder) {
    make_folders(folder);
    write_file_durably(folder + "/.write-test", "");
    remove_tree(folder + "/.write-test");
}

}  // namespace tera
