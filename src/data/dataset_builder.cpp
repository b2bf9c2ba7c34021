#include "data/dataset_builder.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/error.h"
#include "core/thread_pool.h"
#include "data/blended_dataset.h"
#include "data/data_plan.h"
#include "data/gpt_dataset.h"
#include "data/gpt_index.h"
#include "data/indexed_dataset.h"
#include "data/mock_source.h"

namespace tera {
namespace {

constexpr double blend_surplus = 0.005;  // samples built beyond a dataset's share, so that rounding cannot exhaust it

using SourcePtr = std::shared_ptr<const SequenceSource>;

/// One corpus within one split.
struct Piece {
    std::size_t number = 0;  // place in the list of prefixes
    SourcePtr source;
    SequenceRange range;
    std::int64_t tokens = 0;
    std::shared_ptr<const GptDataset> data;
    std::string description;  // its cache key
    bool from_cache = false;
    std::vector<std::string> notes;
};

class Builder {
  public:
    explicit Builder(const DataConfig& config)
        : c_(config),
          cache_(config.data_cache_path, config.write_data_cache),
          pool_(static_cast<int>(config.num_dataset_builder_threads)) {
        if (c_.sample.sequence_length < 1)
            usage_error("--seq-length must be at least 1, is ", c_.sample.sequence_length);
        if (c_.seed < 0 || c_.seed > std::int64_t{0xFFFFFFFF})
            usage_error("--seed must be in 0 .. 4294967295, is ", c_.seed);
        if (c_.sample.goldfish_loss && (c_.sample.goldfish_k < 1 || c_.sample.goldfish_h < 1))
            usage_error("--goldfish-k and --goldfish-h must be at least 1");
    }

    GptDatasets build() {
        out_.sample_options = c_.sample;
        const DataPlan plan = plan_data(c_);
        const bool per_split = !c_.mock_data && !plan.shared;
        if (!per_split) split_ = parse_split(!c_.split.empty() ? c_.split : c_.mock_data ? "1,1,1" : "969, 30, 1");
        if (c_.mock_data) {
            blend_.prefixes = {""};
            sources_ = {std::make_shared<MockSource>(c_.sample.eod_id, c_.vocab_size)};
        } else if (plan.shared) {
            blend_ = *plan.shared;
            open_sources();
        }
        for (const Split split : all_splits) {
            if (requested(split) == 0) continue;
            if (per_split) {
                const auto& blend = plan.per_split[static_cast<std::size_t>(split)];
                if (!blend) {
                    if (split == Split::train) usage_error("no training data: give --train-data-path");
                    out_.notes.push_back(cat("no data path for the ", split_name(split), " split: it is left out"));
                    continue;
                }
                blend_ = *blend;
                if (blend_.prefixes.size() == 1) blend_.weights.clear();  // as Megatron does for paths of single splits
                open_sources();
            }
            slot(split) = build_split(split);
        }
        return std::move(out_);
    }

  private:
    std::optional<std::int64_t> requested(Split split) const {
        return split == Split::train ? c_.train_samples : split == Split::valid ? c_.valid_samples : c_.test_samples;
    }
    std::optional<GptData>& slot(Split split) {
        return split == Split::train ? out_.train : split == Split::valid ? out_.valid : out_.test;
    }

    /// f(i) for all i on several threads. If some fail, the error of the first is thrown: the same at every run.
    template <class F>
    void for_all(std::size_t count, const F& f) {
        std::vector<std::exception_ptr> failures(count);
        pool_.run(static_cast<std::int64_t>(count), [&](std::int64_t i) {
            try {
                f(static_cast<std::size_t>(i));
            } catch (...) {
                failures[static_cast<std::size_t>(i)] = std::current_exception();
            }
        });
        for (const auto& failure : failures)
            if (failure) std::rethrow_exception(failure);
    }

    void open_sources() {
        if (static_cast<std::int64_t>(blend_.prefixes.size()) > max_blended_datasets)
            usage_error(blend_.prefixes.size(), " data prefixes; at most ", max_blended_datasets,
                        " can be blended, merge some");
        sources_.assign(blend_.prefixes.size(), nullptr);
        for_all(sources_.size(), [&](std::size_t i) {
            sources_[i] = std::make_shared<IndexedDataset>(blend_.prefixes[i], c_.mmap_bin_files);
        });
    }

    /// The corpora that have tokens in this split; none if it is absent or empty.
    std::vector<Piece> pieces_of(Split split) {
        const SplitBounds bounds = split_ ? (*split_)[split] : whole_corpus;
        std::vector<Piece> all(sources_.size());
        for_all(all.size(), [&](std::size_t i) {
            all[i].number = i;
            all[i].source = sources_[i];
            all[i].range = split_range(bounds, sources_[i]->size());
            all[i].tokens = count_tokens(*sources_[i], all[i].range);
        });
        std::vector<Piece> pieces;
        std::vector<std::string> left_out;
        for (Piece& piece : all) {
            if (piece.tokens > 0) {
                pieces.push_back(std::move(piece));
            } else {
                left_out.push_back(cat("source ", blend_.prefixes[piece.number], " has no tokens in the ",
                                       split_name(split), " split (", sources_[piece.number]->size(),
                                       " sequences in all): it is left out there"));
            }
        }
        if (pieces.empty()) {
            report_missing(split, bounds);
        } else {
            out_.notes.insert(out_.notes.end(), left_out.begin(), left_out.end());
        }
        return pieces;
    }

    void report_missing(Split split, const SplitBounds& bounds) {
        std::int64_t sequences = 0;
        for (const SourcePtr& s : sources_) sequences += s->size();
        const std::string where = split_ ? cat("--split ", split_->text, ", ", sequences, " sequences")
                                         : cat(blend_.prefixes.front(), ", ", sequences, " sequences");
        const std::string what =
            cat("the ", split_name(split), " split is ", bounds.present() ? "empty" : "absent", " (", where, ")");
        if (split == Split::train) usage_error(what, ": there is nothing to train on");
        if (split == Split::valid)
            usage_error(what, " but evaluation is on: give it a larger share, or set --eval-iters 0");
        out_.notes.push_back(cat(what, ": no test evaluation"));
    }

    void build_piece(Split split, std::optional<std::int64_t> samples, Piece& piece) const {
        GptIdentity identity;
        identity.class_name = c_.mock_data ? "MockGPTDataset" : "GPTDataset";
        identity.dataset_path = piece.source->path();
        identity.num_samples = samples;
        identity.index_split = split;
        identity.random_seed = c_.seed;
        identity.sequence_length = c_.sample.sequence_length;
        identity.split = split_;
        identity.tokenizer = c_.tokenizer;
        const GptIndexSpec spec{.sequence_length = c_.sample.sequence_length,
                                .num_samples = samples,
                                .seed = static_cast<std::uint32_t>(c_.seed)};
        GptIndex index;
        if (cache_.enabled()) {
            piece.description = describe(identity);
            index = cached_index(cat(identity.class_name, "-", split_name(split)), spec, piece);
        } else {
            index = build_gpt_index(*piece.source, piece.range, spec);
        }
        const GptDataset::Options options{.sequence_length = c_.sample.sequence_length,
                                          .extra_tokens = spec.extra_tokens,
                                          .vocab_size = c_.vocab_size,
                                          .pad_id = c_.sample.pad_id};
        piece.data = std::make_shared<GptDataset>(piece.source, piece.range, std::move(index), options);
    }

    GptIndex cached_index(const std::string& kind, const GptIndexSpec& spec, Piece& piece) const {
        const EpochPlan plan = plan_epochs(piece.tokens, spec);
        const GptIndexLayout layout = gpt_index_layout(*piece.source, piece.range, plan);
        const std::vector<IndexCache::Part> parts = {{"document_index", NpyType::i32, {layout.documents}},
                                                     {"sample_index", layout.sample_type, {plan.samples + 1, 2}},
                                                     {"shuffle_index", layout.shuffle_type, {plan.samples}}};
        if (auto arrays = cache_.load(piece.description, kind, parts, piece.notes)) {
            piece.from_cache = true;
            return {plan, (*arrays)[0], (*arrays)[1], (*arrays)[2]};
        }
        GptIndex index = build_gpt_index(*piece.source, piece.range, spec);
        cache_.store(piece.description, kind, parts, {index.documents, index.samples, index.shuffle}, piece.notes);
        return index;
    }

    void build_pieces(Split split, std::vector<Piece>& pieces, const std::vector<std::optional<std::int64_t>>& counts) {
        for_all(pieces.size(), [&](std::size_t i) { build_piece(split, counts[i], pieces[i]); });
        for (const Piece& piece : pieces) out_.notes.insert(out_.notes.end(), piece.notes.begin(), piece.notes.end());
    }

    std::optional<GptData> build_split(Split split) {
        std::vector<Piece> pieces = pieces_of(split);
        if (pieces.empty()) return std::nullopt;
        GptData result;
        result.split = split;
        result.requested = requested(split);
        if (blend_.prefixes.size() == 1 && !blend_.weighted()) {
            build_pieces(split, pieces, {result.requested});
            result.samples = pieces[0].data;
            result.from_cache = pieces[0].from_cache;
            const std::int64_t size = result.samples->size();
            fill_report(pieces, {1.0}, {std::min(result.requested.value_or(size), size)}, result);
        } else if (blend_.weighted()) {
            build_weighted(split, pieces, result);
        } else {
            build_unweighted(split, pieces, result);
        }
        return result;
    }

    void build_weighted(Split split, std::vector<Piece>& pieces, GptData& result) {
        if (!result.requested) usage_error("a blend with weights needs a number of ", split_name(split), " samples");
        std::vector<double> weights;
        for (const Piece& piece : pieces) weights.push_back(blend_.weights[piece.number]);
        weights = normalized(weights);
        std::int64_t size = 0;
        std::vector<std::optional<std::int64_t>> counts;
        for (const double w : weights) {
            const double target = std::ceil(static_cast<double>(*result.requested) * w);
            size += static_cast<std::int64_t>(target);
            counts.emplace_back(static_cast<std::int64_t>(std::ceil(target * (1.0 + blend_surplus))));
        }
        build_pieces(split, pieces, counts);
        finish_blend(split, pieces, weights, size, result);
    }

    void build_unweighted(Split split, std::vector<Piece>& pieces, GptData& result) {
        build_pieces(split, pieces, std::vector<std::optional<std::int64_t>>(pieces.size()));
        std::erase_if(pieces, [&](const Piece& piece) {
            if (piece.data->size() > 0) return false;
            out_.notes.push_back(cat("source ", blend_.prefixes[piece.number], " has ", piece.tokens, " ",
                                     split_name(split), " tokens, less than one sample: it is left out there"));
            return true;
        });
        if (pieces.empty())
            usage_error("no source has the ", c_.sample.sequence_length + 1, " tokens of one ", split_name(split),
                        " sample");
        std::vector<double> weights;
        std::int64_t total = 0;
        for (const Piece& piece : pieces) {
            weights.push_back(static_cast<double>(piece.data->size()));
            total += piece.data->size();
        }
        std::optional<std::int64_t> size;
        if (result.requested) size = std::min(*result.requested, total);
        if (size && *size < *result.requested)
            out_.notes.push_back(cat("the ", split_name(split), " sources hold ", total,
                                     " samples in one epoch, fewer than the ", *result.requested,
                                     " asked for; give weights if they shall be repeated"));
        finish_blend(split, pieces, weights, size, result);
    }

    /// No size: every sample of every dataset, once.
    void finish_blend(Split split, const std::vector<Piece>& pieces, std::vector<double> weights,
                      std::optional<std::int64_t> size, GptData& result) {
        if (size) weights = normalized(weights);
        BlendIndex index = blend_index(split, pieces, weights, size, result.from_cache);
        std::vector<BlendedDataset::Member> members;
        for (const Piece& piece : pieces) members.push_back({piece.data, static_cast<std::int32_t>(piece.number)});
        auto blended = std::make_shared<BlendedDataset>(std::move(members), std::move(index), split);
        fill_report(pieces, normalized(weights), blended->usage(result.requested.value_or(blended->size())), result);
        result.samples = std::move(blended);
    }

    BlendIndex blend_index(Split split, const std::vector<Piece>& pieces, const std::vector<double>& weights,
                           std::optional<std::int64_t> size, bool& from_cache) {
        const auto build = [&] {
            if (size) return build_blend_index(weights, *size);
            return build_exhaustive_blend_index({weights.begin(), weights.end()});
        };
        if (!cache_.enabled()) return build();
        std::int64_t entries = size.value_or(0);
        std::vector<std::string> descriptions;
        for (const Piece& piece : pieces) {
            descriptions.push_back(piece.description);
            if (!size) entries += piece.data->size();
        }
        const std::string description = describe_blend(descriptions, split, weights, size);
        const std::string kind = cat("BlendedDataset-", split_name(split));
        const std::vector<IndexCache::Part> parts = {{"dataset_index", NpyType::i16, {entries}},
                                                     {"dataset_sample_index", NpyType::i64, {entries}}};
        if (auto arrays = cache_.load(description, kind, parts, out_.notes)) {
            from_cache = std::all_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.from_cache; });
            return {(*arrays)[0], (*arrays)[1]};
        }
        BlendIndex index = build();
        cache_.store(description, kind, parts, {index.dataset, index.sample}, out_.notes);
        return index;
    }

    void fill_report(const std::vector<Piece>& pieces, const std::vector<double>& weights,
                     const std::vector<std::int64_t>& used, GptData& result) const {
        result.sources.resize(blend_.prefixes.size());
        for (std::size_t i = 0; i < result.sources.size(); ++i) {
            result.sources[i].path = c_.mock_data ? "mock data" : blend_.prefixes[i];
            result.sources[i].weight = 0.0;
        }
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            SourceReport& report = result.sources[pieces[i].number];
            report.weight = weights[i];
            report.sequences = pieces[i].range.size();
            report.tokens = pieces[i].tokens;
            report.samples = pieces[i].data->size();
            report.used_samples = used[i];
            report.epochs = static_cast<double>(used[i]) * static_cast<double>(c_.sample.sequence_length) /
                            static_cast<double>(pieces[i].tokens);
        }
    }

    const DataConfig& c_;
    IndexCache cache_;
    ThreadPool pool_;
    std::optional<SplitPlan> split_;  // none: every split has paths of its own
    BlendSpec blend_;
    std::vector<SourcePtr> sources_;
    GptDatasets out_;
};

}  // namespace

std::string GptDatasets::report() const {
    std::string text;
    for (const std::optional<GptData>* data : {&train, &valid, &test}) {
        if (!*data) continue;
        const GptData& d = **data;
        text +=
            cat(split_name(d.split), ": ", d.requested ? std::to_string(*d.requested) : "all", " samples of ",
                sample_options.sequence_length, " tokens, ", d.samples->size(), " built from ", d.sources.size(),
                d.sources.size() == 1 ? " source" : " sources", d.from_cache ? " (index from the cache)" : "", "\n");
        for (const SourceReport& s : d.sources) {
            char numbers[160];
            std::snprintf(numbers, sizeof numbers,
                          "weight %.6f, %lld sequences, %lld tokens, %lld samples used, %.3f epochs", s.weight,
                          static_cast<long long>(s.sequences), static_cast<long long>(s.tokens),
                          static_cast<long long>(s.used_samples), s.epochs);
            text += cat("  ", s.path, ": ", numbers, s.epochs > 1.0 ? " (repeated)" : "", "\n");
        }
    }
    return text;
}

GptDatasets build_gpt_datasets(const DataConfig& config) { return Builder(config).build(); }

}  // namespace tera
