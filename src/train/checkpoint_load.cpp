// Loading. Everything goes by name: each tensor that the model needs must be there in its shape, nothing else may be,
// and every byte must match its checksum where there is one.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/safetensors.h"
#include "train/checkpoint.h"
#include "train/checkpoint_state.h"
#include "train/checkpoint_tensors.h"
#include "train/host_rows.h"

namespace tera {
namespace {

constexpr const char* word_weight = "embedding.word.weight";
constexpr const char* output_weight = "lm_head.weight";

bool has_vocabulary_rows(const std::string& param) { return param == word_weight || param == output_weight; }

bool same_shape(const SafetensorsEntry& entry, const Shape& shape) {
    if (static_cast<int>(entry.shape.size()) != shape.ndim) return false;
    for (int i = 0; i < shape.ndim; ++i) {
        if (entry.shape[static_cast<std::size_t>(i)] != shape[i]) return false;
    }
    return true;
}

bool is_floating(const SafetensorsEntry& entry) {
    return entry.dtype && (*entry.dtype == DType::f64 || *entry.dtype == DType::f32 || *entry.dtype == DType::bf16 ||
                           *entry.dtype == DType::f16);
}

/// Collects what differs between the model in the files and the one asked for, under the flags' names.
class ModelDifference {
  public:
    ModelDifference(const ModelConfig& saved, const ModelConfig& wanted) {
        const bool rope = wanted.position == PositionKind::rope, learned = wanted.position == PositionKind::learned;
        shape("num-layers", saved.layers, wanted.layers);
        shape("hidden-size", saved.hidden, wanted.hidden);
        shape("num-attention-heads", saved.heads, wanted.heads);
        shape("num-query-groups", saved.kv_heads, wanted.kv_heads);
        shape("kv-channels", saved.head_dim, wanted.head_dim);
        shape("ffn-hidden-size", saved.ffn, wanted.ffn);
        if (learned) shape("max-position-embeddings", saved.max_positions, wanted.max_positions);
        shape("learned positions", saved.position == PositionKind::learned, learned);
        shape("RMSNorm", saved.norm == NormKind::rms_norm, wanted.norm == NormKind::rms_norm);
        shape("apply-layernorm-1p", saved.norm_one_plus, wanted.norm_one_plus);
        shape("gated activation", is_gated(saved.activation), is_gated(wanted.activation));
        shape("linear biases", saved.linear_bias, wanted.linear_bias);
        shape("qkv biases", saved.qkv_bias, wanted.qkv_bias);
        shape("qk-layernorm", saved.qk_norm, wanted.qk_norm);
        shape("untie-embeddings-and-output-weights", !saved.tied, !wanted.tied);
        behaviour("RoPE", saved.position == PositionKind::rope, rope);
        behaviour("activation", static_cast<int>(saved.activation), static_cast<int>(wanted.activation));
        behaviour("norm-epsilon", saved.norm_eps, wanted.norm_eps);
        if (rope && saved.position == PositionKind::rope) compare_rope(saved.rope, wanted.rope);
    }
    const std::string& shapes() const { return shapes_; }
    const std::vector<std::string>& behaviours() const { return behaviours_; }

  private:
    void compare_rope(const RopeConfig& saved, const RopeConfig& wanted) {
        behaviour("rotary-base", saved.base, wanted.base);
        behaviour("rotary-percent", saved.percent, wanted.percent);
        behaviour("rotary-interleaved", saved.interleaved, wanted.interleaved);
        behaviour("rotary-seq-len-interpolation-factor", saved.interpolation, wanted.interpolation);
        behaviour("use-rope-scaling", saved.scaling, wanted.scaling);
        if (!saved.scaling || !wanted.scaling) return;
        behaviour("rope-scaling-factor", saved.scaling_factor, wanted.scaling_factor);
        behaviour("low_freq_factor", saved.low_freq_factor, wanted.low_freq_factor);
        behaviour("high_freq_factor", saved.high_freq_factor, wanted.high_freq_factor);
        behaviour("original_max_position_embeddings", saved.original_max_positions, wanted.original_max_positions);
    }
    template <class T>
    static std::string text(const T& value) {
        if constexpr (std::is_same_v<T, bool>)
            return value ? "yes" : "no";
        else
            return cat(value);
    }
    template <class T>
    void shape(const char* name, const T& saved, const T& wanted) {
        if (saved != wanted) {
            shapes_ += cat(shapes_.empty() ? "" : ", ", name, " ", text(saved), " (this run: ", text(wanted), ")");
        }
    }
    template <class T>
    void behaviour(const char* name, const T& saved, const T& wanted) {
        if (saved != wanted) {
            behaviours_.push_back(
                cat(name, " was ", text(saved), " in the checkpoint and is ", text(wanted), " in this run"));
        }
    }
    std::string shapes_;
    std::vector<std::string> behaviours_;
};

class Loader {
  public:
    Loader(const CheckpointLocation& location, const LoadTarget& target, const LoadOptions& options)
        : location_(location), target_(target), options_(options), saved_(read_checkpoint_model(location)) {
        if (location.has_state) state_ = read_state_file(location.path + "/training_state/state.json");
        for (Param* p : target.params) params_[p->name] = p;
    }

    LoadResult run() {
        if (!state_ && !options_.finetune && !location_.release) {
            usage_error(location_.path, " holds only model files, no training state; load it with --finetune");
        }
        compare_models();
        const bool resume = state_ && !options_.finetune && !location_.release;
        open_master();
        load_values();
        if (resume && options_.optimizer) load_optimizer();
        if (resume) result_.state = state_->state;
        return std::move(result_);
    }

  private:
    void compare_models() {
        const ModelDifference difference(saved_.config, target_.model);
        if (!difference.shapes().empty()) {
            usage_error(location_.path, "/config.json describes another model: ", difference.shapes());
        }
        result_.notices = difference.behaviours();
        const std::int64_t rows = saved_.config.true_vocab;
        if (rows < target_.model.true_vocab || rows > target_.model.vocab) {
            usage_error(location_.path, " has a vocabulary of ", rows, ", but this run's tokenizer has ",
                        target_.model.true_vocab, " (padded to ", target_.model.vocab,
                        "); use the tokenizer that the model was trained with");
        }
    }

    // ---- weights
    // ------------------------------------------------------------------------------------------------------

    void load_values() {
        const SafetensorsSet files(location_.path, "model");
        ModelConfig shape = target_.model;
        shape.true_vocab = saved_.config.true_vocab;
        std::vector<HfTensor> tensors = hf_tensors(shape, saved_.architecture);
        const std::string prefix = base_prefix_of(saved_.architecture);
        if (!files.find(tensors.front().name) && files.find(tensors.front().name.substr(prefix.size()))) {
            for (HfTensor& t : tensors) {
                if (t.name.rfind(prefix, 0) == 0) t.name.erase(0, prefix.size());
            }
        }
        std::set<std::string> used;
        for (const HfTensor& t : tensors) {
            if (params_.count(t.param) != 0) load_value(files, t);  // others are on other pipeline stages
            used.insert(t.name);
        }
        for (const std::string& name : files.names()) {
            if (used.count(name) == 0 && !is_derived_tensor(name, target_.model)) {
                usage_error(files.find(name).file->path(), ": tensor ", name, " belongs to no part of this model");
            }
        }
        for (const HfTensor& t : tensors) {
            if (!has_vocabulary_rows(t.param)) continue;
            if (const auto found = params_.find(t.param); found != params_.end())
                fill_padding(files, t.name, *found->second);
        }
    }

    void load_value(const SafetensorsSet& files, const HfTensor& t) {
        const SafetensorsSet::Found found = files.find(t.name);
        if (!found) usage_error(files.path(), ": tensor ", t.name, " is missing");
        if (!same_shape(*found.entry, t.shape)) {
            usage_error(found.file->path(), ": tensor ", t.name, " is ", found.entry->shape_text(),
                        ", but the model's is ", t.shape.str());
        }
        require_floating(found);
        Param& param = param_of(t.param);
        if (*found.entry->dtype != param.value.dtype && !dtype_noticed_) {
            result_.notices.push_back(cat("weights are ", name_of(*found.entry->dtype), " in the files and ",
                                          name_of(param.value.dtype), " in this run: converted"));
            dtype_noticed_ = true;
        }
        if (param.tp.size > 1) return load_cut_value(found, t, param);
        const HostBuffer rows(target_.exec, row_range(param.value, t.row_begin, t.rows));
        verify("", found, read_tensor(*found.file, *found.entry, rows.tensor(), t.transposed));
        rows.store();
    }

    /// Of a parameter that is cut over ranks: all rows are read, and those that are here kept.
    void load_cut_value(const SafetensorsSet::Found& found, const HfTensor& t, Param& param) {
        const std::int64_t cols = param.full_shape.numel() / param.full_shape[0];
        Arena arena;
        const Tensor rows = arena.tensor(param.value.dtype, {t.rows, cols});
        verify("", found, read_tensor(*found.file, *found.entry, rows, t.transposed));
        put_rows(param, t.row_begin, rows);
    }

    /// Rows of the full tensor from `first` on, as far as they are here.
    void put_rows(Param& param, std::int64_t first, const Tensor& rows) {
        const std::int64_t cols = param.full_shape.numel() / param.full_shape[0];
        const std::int64_t begin = first * cols, end = begin + rows.numel();
        const std::size_t item = size_of(rows.dtype);
        std::vector<std::byte> here(param.value.bytes());
        copy_to_host(target_.exec, here.data(), param.value);
        for (const ElementRun& run : runs_of({&param, 0, param.value.numel()})) {
            const std::int64_t from = std::max(run.full, begin), to = std::min(run.full + run.count, end);
            if (from >= to) continue;
            std::memcpy(here.data() + static_cast<std::size_t>(run.local + from - run.full) * item,
                        rows.data + static_cast<std::size_t>(from - begin) * item,
                        static_cast<std::size_t>(to - from) * item);
        }
        copy_from_host(target_.exec, param.value, here.data());
    }

    /// Rows beyond the stored vocabulary: as they were as far as the checkpoint has them, then the last row repeated.
    void fill_padding(const SafetensorsSet& files, const std::string& tensor, Param& param) {
        const std::int64_t stored = saved_.config.true_vocab, wanted = param.full_shape[0];
        if (wanted == stored) return;
        Arena arena;
        const Tensor padding = arena.tensor(param.value.dtype, {wanted - stored, param.full_shape[1]});
        const Tensor last = arena.tensor(param.value.dtype, {1, param.full_shape[1]});
        const SafetensorsSet::Found source = files.find(tensor);
        read_rows(*source.file, *source.entry, stored - 1, last);
        std::int64_t at = 0;
        if (const auto found = master_ ? master_->find(param.name) : SafetensorsSet::Found{}) {
            require_floating(found);
            const bool fits = found.entry->shape.size() == 2 && found.entry->shape[1] == param.full_shape[1];
            const std::int64_t end = fits ? std::min(wanted, found.entry->shape[0]) : stored;
            if (end > stored) {
                at = end - stored;
                read_rows(*found.file, *found.entry, stored, padding.slice(0, at));
            }
        }
        const Tensor repeated = at > 0 ? Tensor(padding.slice(at - 1, 1)) : last;  // as of the main weights
        for (; at < wanted - stored; ++at) std::memcpy(padding.slice(at, 1).data, repeated.data, repeated.bytes());
        if (param.tp.size > 1) return put_rows(param, stored, padding);
        const HostBuffer rows(target_.exec, row_range(param.value, stored, wanted - stored));
        std::memcpy(rows.tensor().data, padding.data, padding.bytes());
        rows.store();
    }

    // ---- optimizer
    // ----------------------------------------------------------------------------------------------------

    void open_master() {
        if (!state_ || std::find(state_->kinds.begin(), state_->kinds.end(), "master") == state_->kinds.end()) return;
        master_.emplace(folder(), "master");
    }

    void load_optimizer() {
        if (state_->kinds.empty()) {
            usage_error(location_.path,
                        " holds no optimizer state (it was saved with --no-save-optim); load it with "
                        "--no-load-optim or --finetune");
        }
        std::map<std::string, std::map<std::string, OptimizerTensor>> wanted;
        for (const OptimizerTensor& t : target_.optimizer) wanted[t.kind][t.param] = t;
        // Where the values are the main weights, they come from the saved main weights: those may be more precise than
        // the model's files.
        const bool own_copies = wanted.count("master") != 0;
        for (Param* p : target_.params)
            if (!own_copies) wanted["master"][p->name] = {p->name, "master", p->value};
        for (const std::string& kind : state_->kinds) {
            if (wanted.count(kind) == 0) {
                usage_error(location_.path, " holds ", kind,
                            " of another optimizer than this run's; load it with "
                            "--no-load-optim, or choose the optimizer it was saved with");
            }
        }
        for (const auto& [kind, tensors] : wanted) {
            if (std::find(state_->kinds.begin(), state_->kinds.end(), kind) == state_->kinds.end()) {
                usage_error(location_.path, " holds no ", kind,
                            " for this run's optimizer; load it with --no-load-optim, or "
                            "choose the optimizer it was saved with");
            }
            load_kind(kind, tensors);
        }
        result_.optimizer_loaded = true;
    }

    void load_kind(const std::string& kind, const std::map<std::string, OptimizerTensor>& tensors) {
        const SafetensorsSet files(folder(), kind);
        for (const auto& [name, tensor] : tensors) {
            const SafetensorsSet::Found found = files.find(name);
            if (!found) usage_error(files.path(), ": tensor ", name, " is missing");
            require_floating(found);
            load_state(kind, found, tensor, param_of(name));
        }
        ModelConfig padded = target_.model;
        padded.true_vocab = padded.vocab;
        std::set<std::string> known;
        for (const HfTensor& t : hf_tensors(padded, HfArchitecture::teratron)) known.insert(t.param);
        for (const std::string& name : files.names()) {
            if (known.count(name) == 0)
                usage_error(files.path(), ": tensor ", name, " belongs to no part of this model");
        }
    }

    void load_state(const std::string& kind, const SafetensorsSet::Found& found, const OptimizerTensor& t,
                    Param& param) {
        if (t.tensor.numel() == param.full_shape.numel())
            return load_state_tensor(kind, found, t.tensor, param.full_shape);
        Arena arena;  // the whole tensor, of which this rank keeps its part
        const Tensor whole = arena.tensor(t.tensor.dtype(), param.full_shape);
        load_state_tensor(kind, found, whole, param.full_shape);
        const HostBuffer part(target_.exec, t.tensor);
        take_from_whole({&param, t.begin, t.tensor.numel()}, whole, part.tensor());
        part.store();
    }

    /// Another padding of the vocabulary is no other model: common rows are read; new ones hold the last row's weights,
    /// and no momentum.
    void load_state_tensor(const std::string& kind, const SafetensorsSet::Found& found, const SplitTensor& tensor,
                           const Shape& full) {
        const HostBuffer buffer(target_.exec, tensor.reshape(full));
        const Tensor shaped = buffer.tensor();
        std::int64_t rows = full.ndim == 0 ? 1 : full[0];
        Shape in_file = full;
        if (has_vocabulary_rows(found.entry->name) && !found.entry->shape.empty()) {
            in_file[0] = std::max(found.entry->shape[0], target_.model.true_vocab);
            rows = std::min(rows, in_file[0]);
        }
        if (!same_shape(*found.entry, in_file)) {
            usage_error(found.file->path(), ": tensor ", found.entry->name, " is ", found.entry->shape_text(),
                        ", but the model's is ", full.str());
        }
        const Tensor common = row_range(shaped, 0, rows);
        verify("training_state/", found, read_tensor(*found.file, *found.entry, common, false));
        const std::size_t row_bytes = rows == 0 ? 0 : common.bytes() / static_cast<std::size_t>(rows);
        for (std::int64_t r = rows; full.ndim > 0 && r < full[0]; ++r) {
            std::byte* out = row_range(shaped, r, 1).data;
            if (kind == "master") {
                std::memcpy(out, row_range(shaped, rows - 1, 1).data, row_bytes);
            } else {
                std::memset(out, 0, row_bytes);
            }
        }
        buffer.store();
    }

    // ---- checks
    // -------------------------------------------------------------------------------------------------------

    std::string folder() const { return location_.path + "/training_state"; }

    Param& param_of(const std::string& name) const {
        const auto found = params_.find(name);
        TERA_CHECK(found != params_.end(), "the model has no parameter ", name);
        return *found->second;
    }

    static void require_floating(const SafetensorsSet::Found& found) {
        if (!is_floating(*found.entry)) {
            usage_error(found.file->path(), ": tensor ", found.entry->name, " is ", found.entry->dtype_name,
                        ", but only F64, F32, BF16 and F16 can be loaded");
        }
    }

    void verify(const std::string& prefix, const SafetensorsSet::Found& found, std::uint32_t crc) const {
        if (!state_) return;
        const std::string& path = found.file->path();
        const auto file = state_->files.find(prefix + path.substr(path.rfind('/') + 1));
        if (file == state_->files.end()) return;
        const auto expected = file->second.checksums.find(found.entry->name);
        if (expected == file->second.checksums.end() || expected->second != crc32c_text(crc)) {
            usage_error(
                path, ": tensor ", found.entry->name,
                " does not match its checksum: the file is damaged or was changed; restore it, or load an earlier "
                "checkpoint with --ckpt-step");
        }
    }

    const CheckpointLocation& location_;
    const LoadTarget& target_;
    const LoadOptions& options_;
    const HfModel saved_;
    std::optional<StateFile> state_;
    std::optional<SafetensorsSet> master_;
    std::map<std::string, Param*> params_;
    bool dtype_noticed_ = false;
    LoadResult result_;
};

}  // namespace

LoadResult load_checkpoint(const CheckpointLocation& location, const LoadTarget& target, const LoadOptions& options) {
    return Loader(location, target, options).run();
}

}  // namespace tera
