#include "train/data_feed.h"

#include "core/error.h"

namespace tera {
namespace {

/// The tokenizer as Megatron names it in the key of an index cache.
TokenizerIdentity identity_from(const RunConfig& c) {
    TokenizerIdentity identity{"_" + c.tokenizer_type, {}, {}};
    for (const std::string& path : {c.vocab_file, c.merge_file, c.tokenizer_model}) {
        if (!path.empty()) identity.paths.push_back(path);
    }
    return identity;
}

DataConfig data_config_from(const RunConfig& c, const Tokenizer& tokenizer, const TargetSizes& sizes) {
    DataConfig d;
    d.data_path = c.data_path;
    d.train_data_path = c.train_data_path;
    d.valid_data_path = c.valid_data_path;
    d.test_data_path = c.test_data_path;
    d.data_args_path = c.data_args_path;
    d.per_split_data_args_path = c.per_split_data_args_path;
    d.split = c.split;
    d.mock_data = c.mock_data;
    d.seed = c.seed;
    d.sample = sample_options_from(c);
    d.sample.eod_id = tokenizer.eod();
    d.sample.pad_id = tokenizer.pad().value_or(-1);
    d.data_cache_path = c.data_cache_path;
    d.mmap_bin_files = c.mmap_bin_files;
    d.num_dataset_builder_threads = c.given.count("num_dataset_builder_threads") ? c.num_dataset_builder_threads : 0;
    d.vocab_size = tokenizer.vocab_size();
    d.tokenizer = identity_from(c);
    d.train_samples = sizes.train;
    d.valid_samples = sizes.validation;
    d.test_samples = sizes.test;
    return d;
}

}  // namespace

GptSampleOptions sample_options_from(const RunConfig& c) {
    GptSampleOptions options;
    options.sequence_length = c.seq_length;
    options.reset_position_ids = c.reset_position_ids;
    options.reset_attention_mask = c.reset_attention_mask;
    options.eod_mask_loss = c.eod_mask_loss;
    options.goldfish_loss = c.goldfish_loss;
    options.goldfish_k = c.goldfish_k;
    options.goldfish_h = c.goldfish_h;
    return options;
}

TargetSizes target_sizes(const RunConfig& c, std::int64_t train_iters, std::int64_t train_samples) {
    TargetSizes sizes;
    sizes.train = c.skip_train ? 0 : train_samples;
    const std::int64_t evaluations = c.eval_interval > 0 ? train_iters / c.eval_interval + 1 : 1;
    sizes.validation = evaluations * c.eval_iters * c.global_batch_size;
    sizes.test = c.eval_iters * c.global_batch_size;
    return sizes;
}

DataFeed::DataFeed(const RunConfig& config, const Tokenizer& tokenizer, const TargetSizes& sizes, std::int64_t dp_rank)
    : datasets_(build_gpt_datasets(data_config_from(config, tokenizer, sizes))),
      dataloader_type_(config.dataloader_type),
      data_sharding_(config.data_sharding),
      micro_batch_size_(config.micro_batch_size),
      workers_(config.num_workers),
      dp_rank_(dp_rank),
      dp_size_(config.data_parallel_size) {}

const std::optional<GptData>& DataFeed::data(Split split) const {
    return split == Split::train ? datasets_.train : split == Split::valid ? datasets_.valid : datasets_.test;
}

void DataFeed::start_at(Split split, std::int64_t consumed) {
    Stream& stream = streams_[static_cast<std::size_t>(split)];
    TERA_CHECK(stream.loader == nullptr, split_name(split), " has begun already");
    stream.consumed = consumed;
}

void DataFeed::open(Split split) {
    TERA_CHECK(has(split), "no ", split_name(split), " data");
    Stream& stream = streams_[static_cast<std::size_t>(split)];
    SamplerConfig sampler;
    sampler.dataloader_type = dataloader_type_;
    sampler.data_sharding = data_sharding_;
    sampler.total_samples = data(split)->samples->size();
    sampler.consumed_samples = stream.consumed;
    sampler.micro_batch_size = micro_batch_size_;
    sampler.data_parallel_rank = dp_rank_;
    sampler.data_parallel_size = dp_size_;
    sampler.what = split_name(split);
    stream.loader = std::make_unique<BatchLoader>(data(split)->samples, datasets_.sample_options, sampler, workers_);
}

const MicroBatch& DataFeed::next(Split split) {
    Stream& stream = streams_[static_cast<std::size_t>(split)];
    if (stream.loader == nullptr) open(split);
    stream.batch = stream.loader->next();
    return stream.view = view_of(stream.batch);
}

MicroBatch view_of(const Batch& b) {
    return {.S = b.sequence_length,
            .B = b.batch_size,
            .tokens = b.tokens.data(),
            .labels = b.labels.data(),
            .loss_mask = b.loss_mask.data(),
            .positions = b.positions.data(),
            .doc_start = b.isolate_documents ? b.doc_start.data() : nullptr,
            .sample = b.sample_ids.data()};
}

}  // namespace tera
