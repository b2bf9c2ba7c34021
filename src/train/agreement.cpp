#include "train/agreement.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/config_dump.h"
#include "config/fields.h"
#include "core/build_info.h"
#include "core/error.h"

namespace tera {
namespace {

/// FNV-1a.
class Hash {
  public:
    void add(std::string_view bytes) {
        for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    std::uint64_t value() const { return hash_; }

  private:
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

/// As many bits as a double holds exactly.
double digest(const std::string& text) {
    Hash hash;
    hash.add(text);
    return static_cast<double>(hash.value() >> 12);
}

/// What fits a line: a blend may have hundreds of datasets.
std::string shown(const std::string& value) {
    constexpr std::size_t most = 500;
    return value.size() > most ? value.substr(0, most) + " ..." : value;
}

constexpr std::array free_to_differ = {
    "rank",        "master_addr",  "master_port",  "local_rank",       "threads",
    "num_workers", "trigger_path", "metrics_file", "profile_timeline", "num_dataset_builder_threads"};

/// A file, a folder, or a list of such. What is in the data is compared once it is open: facts_of.
constexpr std::array places = {"save",
                               "load",
                               "pretrained_checkpoint",
                               "vocab_file",
                               "merge_file",
                               "data_path",
                               "data_args_path",
                               "per_split_data_args_path",
                               "train_data_path",
                               "valid_data_path",
                               "test_data_path",
                               "data_cache_path",
                               "tokenizer_model",
                               "tensorboard_dir"};

template <std::size_t n>
bool in(const std::array<const char*, n>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// The ids of some samples, from the first to the last: few enough to read them all on every rank.
std::string ids_of(const SampleDataset& samples) {
    constexpr std::int64_t most = 32;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(samples.sample_length()));
    const std::int64_t last = samples.size() - 1, count = std::min(most, last + 1);
    Hash hash;
    std::string text = " that begin with the ids";
    for (std::int64_t i = 0; i < count; ++i) {
        samples.read(i == 0 ? 0 : last * i / (count - 1), ids.data());
        hash.add({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]});
        if (i > 0) continue;
        for (std::size_t k = 0; k < std::min<std::size_t>(8, ids.size()); ++k) text += cat(" ", ids[k]);
    }
    return cat(text, " (the ids of ", count, " of them have the checksum ", hash.value(), ")");
}

std::string summary_of(const GptData& data) {
    const std::int64_t samples = data.samples ? data.samples->size() : 0;
    std::string text = cat(samples, " samples");
    if (samples > 0) text += ids_of(*data.samples);
    text += cat(" from ", data.sources.size(), data.sources.size() == 1 ? " dataset" : " datasets");
    for (const SourceReport& source : data.sources)
        text += cat(", ", python_real(source.weight), " of ", source.samples, " samples in ", source.sequences,
                    " sequences with ", source.tokens, " tokens");
    return text;
}

}  // namespace

void require_agreement(Comm& world, const Exec& exec, const std::vector<Fact>& facts) {
    if (world.size() == 1) return;
    const std::size_t count = facts.size();
    std::vector<double> first(count);
    for (std::size_t i = 0; i < count; ++i) first[i] = digest(facts[i].value);
    const std::vector<double> mine = first;
    const auto length = static_cast<std::int64_t>(count);
    world.broadcast(exec, tensor_over(first.data(), {length}), 0);
    const auto differs =
        static_cast<std::size_t>(std::mismatch(mine.begin(), mine.end(), first.begin()).first - mine.begin());
    // The lowest rank that differs, and in what: one number, the largest of all ranks.
    double worst = differs == count ? 0
                                    : static_cast<double>(world.size() - world.rank()) * static_cast<double>(count) +
                                          static_cast<double>(count - 1 - differs);
    world.all_reduce(exec, tensor_over(&worst, {1}), Reduce::max);
    if (worst == 0) return;
    if (differs < count)
        usage_error(facts[differs].what, " is ", shown(facts[differs].value),
                    " on this rank, and something else on rank 0; every rank needs the same");
    const auto code = static_cast<std::int64_t>(worst);
    usage_error(facts[static_cast<std::size_t>(length - 1 - code % length)].what, " is not the same on rank ",
                world.size() - code / length, " as on rank 0, where it is ",
                shown(facts[static_cast<std::size_t>(length - 1 - code % length)].value),
                "; every rank needs the same");
}

std::vector<Fact> flags_to_share(const RunConfig& config) {
    using nlohmann::json;
    const auto text = [](const json& value) {
        return value.is_null() ? "not given" : value.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    const json all = config_to_json(config);
    std::vector<Fact> facts = {{"the build of teratron", version_line()},
                               {"the kind of model", text(all.at("model_kind"))},
                               {"the type of weights", text(all.at("params_dtype"))}};
    for (const Field& field : fields()) {
        const bool without_effect = std::holds_alternative<std::monostate>(field.member);
        if (in(free_to_differ, field.dest) || without_effect) continue;
        const json& value = all.at(field.dest);
        const bool nothing = value.empty() || (value.is_string() && value.get_ref<const std::string&>().empty());
        if (in(places, field.dest))
            facts.push_back({field.flag(), nothing ? "not given" : "given"});
        else
            facts.push_back({field.flag(), text(field.opposite() ? json(!value.get<bool>()) : value)});
    }
    return facts;
}

std::vector<Fact> facts_of(const GptDatasets& all) {
    const auto fact = [](const char* name, const std::optional<GptData>& data) {
        return Fact{cat("the ", name, " data"), data ? summary_of(*data) : "none"};
    };
    return {fact("train", all.train), fact("valid", all.valid), fact("test", all.test)};
}

}  // namespace tera
