#include "train/checkpoint_ranks.h"

#include <cstring>

#include "core/error.h"
#include "model/hf_names.h"
#include "train/host_rows.h"

namespace tera {
namespace {

std::byte* at(const Tensor& t, std::int64_t element) {
    return t.data + static_cast<std::size_t>(element) * size_of(t.dtype);
}
const std::byte* at(const ConstTensor& t, std::int64_t element) {
    return t.data + static_cast<std::size_t>(element) * size_of(t.dtype);
}

}  // namespace

void put_into_whole(const ParamSlice& slice, ConstTensor elements, Tensor whole) {
    TERA_CHECK(elements.dtype == whole.dtype && elements.numel() == slice.count, slice.param->name);
    for (const ElementRun& run : runs_of(slice))
        std::memcpy(at(whole, run.full), at(elements, run.local),
                    static_cast<std::size_t>(run.count) * size_of(whole.dtype));
}

void take_from_whole(const ParamSlice& slice, ConstTensor whole, Tensor elements) {
    TERA_CHECK(elements.dtype == whole.dtype && elements.numel() == slice.count, slice.param->name);
    for (const ElementRun& run : runs_of(slice))
        std::memcpy(at(elements, run.local), at(whole, run.full),
                    static_cast<std::size_t>(run.count) * size_of(whole.dtype));
}

SpreadTensors::SpreadTensors(const ModelConfig& model, const CheckpointRanks& ranks,
                             std::vector<OptimizerTensor> optimizer, const Source& source)
    : world_(*ranks.world), pieces_(ranks.pieces), optimizer_(std::move(optimizer)), source_(source) {
    ModelConfig padded = model;
    padded.true_vocab = model.vocab;
    for (const HfTensor& t : hf_tensors(padded, HfArchitecture::teratron)) params_.push_back({t.param, t.shape});
}

void SpreadTensors::tell(Request& request) {
    world_.broadcast(exec_, Tensor(reinterpret_cast<std::byte*>(&request), DType::u8, Device::cpu, {sizeof request}),
                     0);
}

SplitTensor SpreadTensors::elements(const ParamSlice& slice, const std::string& kind) const {
    for (const OptimizerTensor& t : optimizer_) {
        if (t.param != slice.param->name || t.kind != kind) continue;
        return t.tensor.part(slice.begin - t.begin, slice.count);
    }
    TERA_CHECK(kind == "value" || kind == "master", "no ", kind, " of ", slice.param->name);
    return SplitTensor(slice.param->value).part(slice.begin, slice.count);
}

ConstTensor SpreadTensors::whole(const std::string& param, const std::string& kind) {
    if (held_ == param + "/" + kind) return whole_;
    std::size_t index = 0;
    while (index < params_.size() && params_[index].name != param) ++index;
    TERA_CHECK(index < params_.size() && kind.size() < sizeof Request::kind, "no parameter ", param);
    Request request{static_cast<std::int64_t>(index)};
    std::strcpy(request.kind, kind.c_str());
    tell(request);
    arena_.reset();
    whole_ = arena_.tensor(kind == "value" ? source_.values : acc_dtype(source_.values), params_[index].shape);
    std::int64_t count = 0;
    for (const ParamSlice& s : pieces_) {
        if (s.param->name != param) continue;
        put_into_whole(s, HostView(source_.exec, elements(s, kind)).tensor(), whole_);
        count += s.count;
    }
    for (int r = 1; r < world_.size(); ++r) {
        ArenaScope scope(arena_);
        std::int64_t head[2] = {};  // runs and elements
        world_.recv(exec_, tensor_over(head, {2}), r);
        if (head[0] == 0) continue;
        Tensor runs = arena_.tensor(DType::i64, {head[0], 2}), data = arena_.tensor(whole_.dtype, {head[1]});
        world_.recv(exec_, runs, r);
        world_.recv(exec_, data, r);
        std::int64_t from = 0;
        for (std::int64_t i = 0; i < head[0]; ++i) {
            const std::int64_t full = runs.ptr<std::int64_t>()[2 * i], n = runs.ptr<std::int64_t>()[2 * i + 1];
            std::memcpy(at(whole_, full), at(data, from), static_cast<std::size_t>(n) * size_of(whole_.dtype));
            from += n;
        }
        count += head[1];
    }
    TERA_CHECK(count == whole_.numel(), param, ": the ranks hold ", count, " of ", whole_.numel(), " elements");
    held_ = param + "/" + kind;
    return whole_;
}

void SpreadTensors::give(const std::string& param, const std::string& kind) {
    arena_.reset();
    std::vector<std::int64_t> runs;
    std::vector<ParamSlice> slices;
    std::int64_t head[2] = {};
    for (const ParamSlice& s : pieces_) {
        if (s.param->name != param) continue;
        slices.push_back(s);
        head[1] += s.count;
        for (const ElementRun& run : runs_of(s)) {
            runs.push_back(run.full);
            runs.push_back(run.count);
        }
    }
    head[0] = static_cast<std::int64_t>(runs.size() / 2);
    world_.send(exec_, tensor_over(head, {2}), 0);
    if (head[0] == 0) return;
    Tensor data = arena_.tensor(elements(slices[0], kind).dtype(), {head[1]});
    std::int64_t to = 0;
    for (const ParamSlice& s : slices) {
        const HostView mine(source_.exec, elements(s, kind));
        std::memcpy(at(data, to), mine.tensor().data, mine.tensor().bytes());
        to += s.count;
    }
    world_.send(exec_, tensor_over(runs.data(), {head[0], 2}), 0);
    world_.send(exec_, data, 0);
}

void SpreadTensors::finish(bool ok) {
    Request request{ok ? -1 : -2};
    tell(request);
}

void SpreadTensors::serve() {
    for (;;) {
        Request request;
        tell(request);
        if (request.param == -1) return;
        if (request.param < 0) usage_error("rank 0 could not save the checkpoint, and says why");
        give(params_[static_cast<std::size_t>(request.param)].name, request.kind);
    }
}

}  // namespace tera
