#include "data/batch.h"

#include "core/error.h"

namespace tera {

Batch make_batch(const SampleDataset& data, const GptSampleOptions& options, const SampleNumbers& numbers) {
    Batch batch;
    const auto length = static_cast<std::size_t>(options.sequence_length);
    const std::size_t size = numbers.index.size();
    batch.sequence_length = options.sequence_length;
    batch.batch_size = static_cast<std::int64_t>(size);
    batch.isolate_documents = options.reset_attention_mask;
    batch.sample_ids = numbers.consumed;
    batch.indices = numbers.index;
    batch.tokens.resize(length * size);
    batch.labels.resize(length * size);
    batch.positions.resize(length * size);
    batch.doc_start.resize(length * size);
    batch.loss_mask.resize(length * size);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(data.sample_length()));
    GptSample sample;
    for (std::size_t b = 0; b < size; ++b) {
        batch.sources.push_back(data.read(numbers.index[b], ids.data()));
        make_gpt_sample(options, ids, sample);
        for (std::size_t s = 0; s < length; ++s) {
            const std::size_t t = s * size + b;
            batch.tokens[t] = sample.tokens[s];
            batch.labels[t] = sample.labels[s];
            batch.positions[t] = sample.positions[s];
            batch.doc_start[t] = sample.doc_start[s];
            batch.loss_mask[t] = sample.loss_mask[s];
        }
    }
    return batch;
}

BatchLoader::BatchLoader(std::shared_ptr<const SampleDataset> data, const GptSampleOptions& options,
                         const SamplerConfig& sampler, std::int64_t num_workers)
    : data_(std::move(data)),
      options_(options),
      config_(sampler),
      sampler_(make_sampler(sampler)),
      consumed_(sampler.consumed_samples) {
    TERA_CHECK(config_.total_samples <= data_->size(), config_.what, ": ", config_.total_samples, " of ",
               data_->size());
    slots_.resize(static_cast<std::size_t>(2 * num_workers));
    for (std::int64_t i = 0; i < num_workers; ++i) workers_.emplace_back([this] { work(); });
}

BatchLoader::~BatchLoader() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

BatchLoader::Slot BatchLoader::make(const std::optional<SampleNumbers>& numbers) const {
    Slot slot;
    slot.ready = true;
    try {
        if (numbers) slot.batch = make_batch(*data_, options_, *numbers);
    } catch (...) {
        slot.failure = std::current_exception();
    }
    return slot;
}

void BatchLoader::work() {
    std::unique_lock lock(mutex_);
    const auto capacity = static_cast<std::int64_t>(slots_.size());
    while (true) {
        room_.wait(lock, [&] { return stop_ || (!ended_ && taken_ < delivered_ + capacity); });
        if (stop_) return;
        // The number of the batch and its samples are taken together, so the order is the sampler's.
        const std::int64_t number = taken_++;
        Slot slot;
        std::optional<SampleNumbers> samples;
        try {
            samples = sampler_->next();
        } catch (...) {
            slot.failure = std::current_exception();
        }
        if (!samples) ended_ = true;
        if (slot.failure) {
            slot.ready = true;
        } else {
            lock.unlock();
            slot = make(samples);
            lock.lock();
        }
        slots_[static_cast<std::size_t>(number % capacity)] = std::move(slot);
        ready_.notify_one();
    }
}

Batch BatchLoader::next() {
    if (failure_) std::rethrow_exception(failure_);
    if (workers_.empty()) return deliver(make(sampler_->next()));
    Slot slot;
    {
        std::unique_lock lock(mutex_);
        Slot& place = slots_[static_cast<std::size_t>(delivered_) % slots_.size()];
        ready_.wait(lock, [&] { return place.ready; });
        slot = std::move(place);
        place = Slot{};
        ++delivered_;
    }
    room_.notify_one();
    return deliver(std::move(slot));
}

Batch BatchLoader::deliver(Slot slot) {
    if (!slot.failure && !slot.batch)
        slot.failure = std::make_exception_ptr(
            UsageError(cat("the ", config_.what, " data is used up after ", consumed_, " samples of ",
                           config_.total_samples, "; add data, give weights to repeat it, or ask for fewer samples")));
    if (slot.failure) {
        failure_ = slot.failure;
        std::rethrow_exception(failure_);
    }
    consumed_ += config_.micro_batch_size * config_.data_parallel_size;
    return std::move(*slot.batch);
}

}  // namespace tera
