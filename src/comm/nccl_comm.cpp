#include "comm/nccl_comm.h"

#include "core/error.h"

#if defined(TERA_WITH_CUDA) && __has_include(<nccl.h>)

#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "comm/nccl_library.h"
#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/lane.h"

#define TERA_NCCL(function, ...) check_nccl(nccl().function(__VA_ARGS__), #function)

namespace tera {
namespace {

ncclDataType_t type_of(DType dtype) {
    switch (dtype) {
        case DType::f64:
            return ncclFloat64;
        case DType::f32:
            return ncclFloat32;
        case DType::bf16:
            return ncclBfloat16;
        case DType::f16:
            return ncclFloat16;
        case DType::i64:
            return ncclInt64;
        case DType::i32:
            return ncclInt32;
        default:
            return ncclUint8;
    }
}

std::size_t count_of(const ConstTensor& t) { return static_cast<std::size_t>(t.numel()); }

cudaStream_t stream_of(const Exec& exec) {
    return exec.lane == nullptr ? exec.gpu->stream : static_cast<cudaStream_t>(exec.lane->stream());
}

std::string text_of(const char* call, const ConstTensor& data, int ranks) {
    return cat(call, " of ", data.numel(), " ", name_of(data.dtype), " over ", ranks, " ranks");
}

/// Writes a number into memory of the host when a stream comes to it.
using WriteValue = decltype(&cuStreamWriteValue64);

/// Null if the driver has none: then ranks that wait for each other are found by --distributed-timeout-minutes alone.
WriteValue find_write_value() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &function, 12000, cudaEnableDefault, &found) !=
        cudaSuccess)
        return nullptr;
    return reinterpret_cast<WriteValue>(function);
}

/// The calls of one communicator, and how far the device has come, as it writes itself.
class CallCounter {
  public:
    CallCounter(std::uint64_t key, int members, std::int64_t ahead) : log_(key, members, ahead) {
        TERA_CUDA(cudaMallocHost(reinterpret_cast<void**>(&counts_), sizeof *counts_));
        counts_->begun = counts_->ended = 0;
    }
    ~CallCounter() { cudaFreeHost(counts_); }
    CallCounter(const CallCounter&) = delete;
    CallCounter& operator=(const CallCounter&) = delete;

    /// A call that the stream is about to be given.
    void begin(cudaStream_t stream, std::string call) {
        {
            const std::lock_guard lock(mutex_);
            number_ = log_.add(std::move(call));
        }
        write(stream, counts_->begun);
    }
    /// The stream was given it.
    void end(cudaStream_t stream) { write(stream, counts_->ended); }

    DeviceCalls seen() {
        const std::lock_guard lock(mutex_);
        // In this order: a call that ends in between counts as open.
        const auto ended = std::atomic_ref(counts_->ended).load(), begun = std::atomic_ref(counts_->begun).load();
        return log_.seen(static_cast<std::int64_t>(begun), static_cast<std::int64_t>(ended));
    }

  private:
    struct Counts {
        std::uint64_t begun, ended;
    };
    void write(cudaStream_t stream, std::uint64_t& to) const {
        static const WriteValue write_value = find_write_value();
        if (write_value == nullptr) return;
        const CUresult status =
            write_value(stream, reinterpret_cast<CUdeviceptr>(&to), static_cast<cuuint64_t>(number_), 0);
        TERA_CHECK(status == CUDA_SUCCESS, "cuStreamWriteValue64: CUDA error ", static_cast<int>(status));
    }

    std::mutex mutex_;
    CallLog log_;
    std::int64_t number_ = 0;
    Counts* counts_ = nullptr;
};

/// What all communicators of a rank have in common.
struct Rank {
    Rank(Gpu& g, Progress* p) : gpu(g), progress(p) {
        if (progress != nullptr) progress->watch_device([this] { return calls(); });
    }
    ~Rank() {
        if (progress != nullptr) progress->watch_device({});
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    /// For a new communicator of these ranks of the world.
    std::shared_ptr<CallCounter> count(const std::vector<int>& members, const char* purpose, std::int64_t ahead = 0) {
        const int number = made_[{members, purpose}]++;
        auto counter = std::make_shared<CallCounter>(communicator_key(members, purpose, number),
                                                     static_cast<int>(members.size()), ahead);
        const std::lock_guard lock(mutex_);
        counters_.push_back(counter);
        return counter;
    }
    /// A call begins on that stream.
    void begin(CallCounter& counter, cudaStream_t stream, const std::string& call) {
        counter.begin(stream, call);
        if (progress != nullptr) progress->enqueue_call(call);
    }

    Gpu& gpu;
    Progress* progress;
    std::vector<ncclComm_t> all;
    bool abandoned = false;

  private:
    std::vector<DeviceCalls> calls() {
        const std::lock_guard lock(mutex_);
        std::vector<DeviceCalls> all_calls;
        for (const std::weak_ptr<CallCounter>& counter : counters_) {
            if (const auto there = counter.lock()) all_calls.push_back(there->seen());
        }
        return all_calls;
    }

    std::map<std::pair<std::vector<int>, std::string>, int> made_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<CallCounter>> counters_;
};

/// Messages to one rank, on a stream of their own, from copies in memory that is used in turn.
class Outbox {
  public:
    Outbox(Rank& rank, ncclComm_t comm, std::shared_ptr<CallCounter> calls, int places, std::size_t bytes)
        : rank_(rank), comm_(comm), calls_(std::move(calls)), bytes_(bytes) {
        TERA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        TERA_CUDA(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
        for (int i = 0; i < places; ++i) {
            Place& place = places_.emplace_back();
            place.data = rank.gpu.memory().take(bytes);
            TERA_CUDA(cudaEventCreateWithFlags(&place.sent, cudaEventDisableTiming));
        }
    }
    ~Outbox() {
        cudaStreamSynchronize(stream_);
        for (Place& place : places_) {
            cudaEventDestroy(place.sent);
            rank_.gpu.memory().give_back(place.data, bytes_);
        }
        cudaEventDestroy(copied_);
        cudaStreamDestroy(stream_);
    }
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    void send(ConstTensor data) {
        TERA_CHECK(data.bytes() <= bytes_, "a message of ", data.bytes(), " bytes, where ", bytes_, " were announced");
        Place& place = places_[next_];
        next_ = (next_ + 1) % places_.size();
        // The rank is in the call as long as it waits for a place; then the message waits for its receiver by itself.
        rank_.begin(*calls_, rank_.gpu.stream, text_of("message", data, 2));
        TERA_CUDA(cudaStreamWaitEvent(rank_.gpu.stream, place.sent, 0));
        calls_->end(rank_.gpu.stream);
        TERA_CUDA(cudaMemcpyAsync(place.data, data.data, data.bytes(), cudaMemcpyDeviceToDevice, rank_.gpu.stream));
        TERA_CUDA(cudaEventRecord(copied_, rank_.gpu.stream));
        TERA_CUDA(cudaStreamWaitEvent(stream_, copied_, 0));
        TERA_NCCL(send, place.data, count_of(data), type_of(data.dtype), 1, comm_, stream_);
        TERA_CUDA(cudaEventRecord(place.sent, stream_));
    }

  private:
    struct Place {
        std::byte* data = nullptr;
        cudaEvent_t sent = nullptr;
    };
    Rank& rank_;
    ncclComm_t comm_;
    std::shared_ptr<CallCounter> calls_;
    std::size_t bytes_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t copied_ = nullptr;
    std::vector<Place> places_;
    std::size_t next_ = 0;
};

/// Messages from one rank.
class Inbox {
  public:
    /// bytes: of the largest that comes in ahead, on a stream of its own; 0: none does.
    Inbox(Rank& rank, ncclComm_t comm, std::shared_ptr<CallCounter> calls, std::size_t bytes)
        : rank_(rank), comm_(comm), calls_(std::move(calls)), bytes_(bytes) {
        if (bytes == 0) return;
        TERA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&asked_, &arrived_})
            TERA_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        place_ = rank.gpu.memory().take(bytes);
    }
    ~Inbox() {
        if (bytes_ == 0) return;
        cudaStreamSynchronize(stream_);
        rank_.gpu.memory().give_back(place_, bytes_);
        for (cudaEvent_t event : {asked_, arrived_}) cudaEventDestroy(event);
        cudaStreamDestroy(stream_);
    }
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    /// Not before the device has come here: what receives takes multiprocessors from what computes.
    void expect(DType dtype, Shape shape) {
        const auto count = static_cast<std::size_t>(shape.numel());
        TERA_CHECK(count * size_of(dtype) <= bytes_, "a message of ", count * size_of(dtype), " bytes, where ", bytes_,
                   " were announced");
        TERA_CUDA(cudaEventRecord(asked_, rank_.gpu.stream));
        TERA_CUDA(cudaStreamWaitEvent(stream_, asked_, 0));
        TERA_NCCL(recv, place_, count, type_of(dtype), 0, comm_, stream_);
        TERA_CUDA(cudaEventRecord(arrived_, stream_));
        expected_ = true;
    }
    void receive(const Exec& exec, Tensor data) {
        const cudaStream_t stream = stream_of(exec);
        // The rank is in the call as long as what it computes waits for the message.
        rank_.begin(*calls_, stream, text_of("message", data, 2));
        if (expected_)
            TERA_CUDA(cudaStreamWaitEvent(stream, arrived_, 0));
        else
            TERA_NCCL(recv, data.data, count_of(data), type_of(data.dtype), 0, comm_, stream);
        calls_->end(stream);
        if (expected_) TERA_CUDA(cudaMemcpyAsync(data.data, place_, data.bytes(), cudaMemcpyDeviceToDevice, stream));
        expected_ = false;
    }

  private:
    Rank& rank_;
    ncclComm_t comm_;
    std::shared_ptr<CallCounter> calls_;
    std::size_t bytes_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t asked_ = nullptr, arrived_ = nullptr;
    std::byte* place_ = nullptr;
    bool expected_ = false;
};

class NcclComm final : public Comm {
  public:
    NcclComm(std::shared_ptr<Rank> rank, Comm& host) : shared_(std::move(rank)), host_(host) {
        for (int r = 0; r < host.size(); ++r) in_world_.push_back(r);
    }
    NcclComm(std::shared_ptr<Rank> rank, std::unique_ptr<Comm> host, std::vector<int> in_world)
        : shared_(std::move(rank)), owned_(std::move(host)), host_(*owned_), in_world_(std::move(in_world)) {}

    ~NcclComm() override {
        outbox_.reset();
        inbox_.reset();
        if (shared_->abandoned) return;
        // Not ncclCommDestroy, which waits for the other ranks.
        for (const ncclComm_t comm : own_) nccl().abort(comm);
        for (const ncclComm_t comm : own_) std::erase(shared_->all, comm);
    }

    int rank() const override { return host_.rank(); }
    int size() const override { return host_.size(); }
    /// Devices too have done what they were given.
    void barrier() override {
        TERA_CUDA(cudaSetDevice(shared_->gpu.device));
        TERA_CUDA(cudaDeviceSynchronize());
        host_.barrier();
    }
    std::unique_ptr<Comm> group(const std::vector<int>& members) override {
        std::vector<int> in_world;
        for (const int member : members) in_world.push_back(in_world_.at(static_cast<std::size_t>(member)));
        return std::make_unique<NcclComm>(shared_, host_.group(members), std::move(in_world));
    }
    void connect() override {
        if (size() == 1 || whole_ != nullptr) return;
        ncclUniqueId id{};
        if (rank() == 0) TERA_NCCL(new_id, &id);
        host_.broadcast(host_exec(), bytes_of(id), 0);
        whole_ = join(id, size(), rank());
        calls_ = shared_->count(in_world_, "collectives");
    }
    void connect_ring() override {
        if (size() == 1) return;
        Gpu& gpu = shared_->gpu;
        auto* const memory = static_cast<std::byte*>(gpu.workspace);
        exchange({memory, 1, ncclUint8}, memory + 1, gpu.stream);  // NCCL connects two ranks with their first message
        gpu.synchronize();
    }
    /// Ranks with an even number begin with what they send, the others with what they receive, so that each finds the
    /// other end at the same connection.
    void connect_mail(const Mail& mail) override {
        const auto out = [&] {
            if (mail.to < 0) return;
            const ncclComm_t comm = pair(mail.to, true);
            outbox_ = std::make_unique<Outbox>(*shared_, comm, count_messages(rank(), mail.to, mail.on_their_way),
                                               mail.on_their_way, mail.bytes);
        };
        if (rank() % 2 == 0) out();
        if (mail.from >= 0) {
            const ncclComm_t comm = pair(mail.from, false);
            inbox_ = std::make_unique<Inbox>(*shared_, comm, count_messages(mail.from, rank(), 0),
                                             mail.ahead ? mail.bytes : 0);
        }
        if (rank() % 2 != 0) out();
        mail_ = mail;
    }
    void abandon() noexcept override {
        if (shared_->abandoned) return;
        shared_->abandoned = true;
        for (const ncclComm_t comm : shared_->all) nccl().abort(comm);
    }

  protected:
    void do_all_reduce(const Exec& exec, Tensor data, Reduce op) override {
        if (data.device == Device::cpu) return host_.all_reduce(exec, data, op);
        const bool largest = op == Reduce::max;
        call(exec, largest ? "all_reduce (largest)" : "all_reduce", data, [&](ncclComm_t comm, cudaStream_t stream) {
            TERA_NCCL(all_reduce, data.data, data.data, count_of(data), type_of(data.dtype),
                      largest ? ncclMax : ncclSum, comm, stream);
        });
    }
    void do_all_gather(const Exec& exec, ConstTensor in, Tensor out) override {
        if (in.device == Device::cpu) return host_.all_gather(exec, in, out);
        call(exec, "all_gather", in, [&](ncclComm_t comm, cudaStream_t stream) {
            TERA_NCCL(all_gather, in.data, out.data, count_of(in), type_of(in.dtype), comm, stream);
        });
    }
    void do_reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) override {
        if (in.device == Device::cpu) return host_.reduce_scatter(exec, in, out);
        call(exec, "reduce_scatter", in, [&](ncclComm_t comm, cudaStream_t stream) {
            TERA_NCCL(reduce_scatter, in.data, out.data, count_of(out), type_of(in.dtype), ncclSum, comm, stream);
        });
    }
    void do_broadcast(const Exec& exec, Tensor data, int root) override {
        if (data.device == Device::cpu) return host_.broadcast(exec, data, root);
        call(exec, "broadcast", data, [&](ncclComm_t comm, cudaStream_t stream) {
            TERA_NCCL(broadcast, data.data, data.data, count_of(data), type_of(data.dtype), root, comm, stream);
        });
    }
    void do_send(const Exec& exec, ConstTensor data, int to) override {
        if (data.device == Device::cpu) return host_.send(exec, data, to);
        TERA_CHECK(outbox_ && to == mail_.to, "no connection from rank ", rank(), " to ", to);
        if (data.numel() > 0) outbox_->send(data);
    }
    void do_recv(const Exec& exec, Tensor data, int from) override {
        if (data.device == Device::cpu) return host_.recv(exec, data, from);
        TERA_CHECK(inbox_ && from == mail_.from, "no connection from rank ", from, " to ", rank());
        if (data.numel() > 0) inbox_->receive(exec, data);
    }
    void do_expect(const Exec& exec, DType dtype, Shape shape, int from) override {
        if (exec.device == Device::cpu) return;
        TERA_CHECK(inbox_ && from == mail_.from, "no connection from rank ", from, " to ", rank());
        inbox_->expect(dtype, shape);
    }
    void do_shift(const Exec& exec, ConstTensor in, Tensor out) override {
        if (in.device == Device::cpu) return host_.shift(exec, in, out);
        call(exec, "shift", in, [&](ncclComm_t, cudaStream_t stream) {
            exchange({in.data, count_of(in), type_of(in.dtype)}, out.data, stream);
        });
    }

  private:
    /// A call of all members: give(communicator, stream).
    template <class Give>
    void call(const Exec& exec, const char* name, const ConstTensor& data, Give give) {
        const ncclComm_t comm = whole();
        const cudaStream_t stream = stream_of(exec);
        shared_->begin(*calls_, stream, text_of(name, data, size()));
        give(comm, stream);
        calls_->end(stream);
    }
    std::shared_ptr<CallCounter> count_messages(int from, int to, std::int64_t ahead) {
        const auto world = [&](int r) { return in_world_[static_cast<std::size_t>(r)]; };
        return shared_->count({world(from), world(to)}, "messages", ahead);
    }
    struct Elements {
        const void* data;
        std::size_t count;
        ncclDataType_t type;
    };
    /// To the next rank, and as much from the one before.
    void exchange(const Elements& in, void* out, cudaStream_t stream) {
        TERA_NCCL(group_start);
        TERA_NCCL(send, in.data, in.count, in.type, next(), whole(), stream);
        TERA_NCCL(recv, out, in.count, in.type, previous(), whole(), stream);
        TERA_NCCL(group_end);
    }
    static Tensor bytes_of(ncclUniqueId& id) {
        return Tensor(reinterpret_cast<std::byte*>(&id), DType::u8, Device::cpu, {sizeof id});
    }
    ncclComm_t join(const ncclUniqueId& id, int ranks, int rank) {
        ncclComm_t comm = nullptr;
        TERA_CUDA(cudaSetDevice(shared_->gpu.device));
        TERA_NCCL(init_rank, &comm, ranks, id, rank);
        own_.push_back(comm);
        shared_->all.push_back(comm);
        return comm;
    }
    Exec host_exec() { return {Device::cpu, &no_memory_, nullptr, nullptr}; }
    /// All members.
    ncclComm_t whole() const {
        TERA_CHECK(whole_ != nullptr, "a group of ", size(), " ranks that is not connected");
        return whole_;
    }
    /// From one rank, number 0 there, to another. NCCL connects two ranks with their first message, so one is sent.
    ncclComm_t pair(int other, bool sends) {
        ncclUniqueId id{};
        if (sends) {
            TERA_NCCL(new_id, &id);
            host_.send(host_exec(), bytes_of(id), other);
        } else {
            host_.recv(host_exec(), bytes_of(id), other);
        }
        const ncclComm_t comm = join(id, 2, sends ? 0 : 1);
        Gpu& gpu = shared_->gpu;
        if (sends)
            TERA_NCCL(send, gpu.workspace, sizeof id, ncclUint8, 1, comm, gpu.stream);
        else
            TERA_NCCL(recv, gpu.workspace, sizeof id, ncclUint8, 0, comm, gpu.stream);
        gpu.synchronize();
        return comm;
    }

    std::shared_ptr<Rank> shared_;
    std::unique_ptr<Comm> owned_;
    Comm& host_;
    Arena no_memory_;
    std::vector<ncclComm_t> own_;
    std::vector<int> in_world_;  ///< the members' numbers there
    ncclComm_t whole_ = nullptr;
    std::shared_ptr<CallCounter> calls_;
    Mail mail_;
    std::unique_ptr<Outbox> outbox_;
    std::unique_ptr<Inbox> inbox_;
};

}  // namespace

std::unique_ptr<Comm> make_nccl_comm(Comm& host, const Engine& engine, Progress* progress) {
    TERA_CHECK(engine.gpu() != nullptr, "NCCL without a GPU");
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);  // all connections of a communicator with it, none in the middle of a step
    (void)nccl();
    return std::make_unique<NcclComm>(std::make_shared<Rank>(*engine.gpu(), progress), host);
}

}  // namespace tera

#else

namespace tera {

std::unique_ptr<Comm> make_nccl_comm(Comm&, const Engine&, Progress*) {
    usage_error("this program was built without NCCL, which several GPUs need; install libnccl-dev and build it again");
}

}  // namespace tera

#endif
