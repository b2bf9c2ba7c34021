#include "comm/nccl_comm.h"

#include "core/error.h"

#if defined(TERA_WITH_CUDA) && __has_include(<nccl.h>)

#include <cstdlib>
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

/// What all communicators of a rank have in common.
struct Rank {
    Rank(Gpu& g, Progress* p) : gpu(g), progress(p) {
        TERA_CUDA(cudaEventCreateWithFlags(&last, cudaEventDisableTiming));
    }
    ~Rank() {
        if (progress != nullptr) progress->end_call();
        cudaEventDestroy(last);
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    /// exec's queue has just been given this call.
    void enqueued(const Exec& exec, const char* call, const ConstTensor& data, int ranks) {
        TERA_CUDA(cudaEventRecord(last, stream_of(exec)));
        if (progress == nullptr) return;
        progress->enqueue_call(cat(call, " of ", data.numel(), " ", name_of(data.dtype), " over ", ranks, " ranks"),
                               [this] {
                                   return cudaSetDevice(gpu.device) != cudaSuccess ||  //
                                          cudaEventQuery(last) != cudaErrorNotReady;
                               });
    }

    Gpu& gpu;
    Progress* progress;
    cudaEvent_t last = nullptr;  ///< behind the last call
    std::vector<ncclComm_t> all;
    bool abandoned = false;
};

/// Messages to one rank, on a stream of their own, from copies in memory that is used in turn.
class Outbox {
  public:
    Outbox(Rank& rank, ncclComm_t comm, int places, std::size_t bytes) : rank_(rank), comm_(comm), bytes_(bytes) {
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
        TERA_CUDA(cudaStreamWaitEvent(rank_.gpu.stream, place.sent, 0));
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
    std::size_t bytes_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t copied_ = nullptr;
    std::vector<Place> places_;
    std::size_t next_ = 0;
};

class NcclComm final : public Comm {
  public:
    NcclComm(std::shared_ptr<Rank> rank, Comm& host) : shared_(std::move(rank)), host_(host) {}
    NcclComm(std::shared_ptr<Rank> rank, std::unique_ptr<Comm> host)
        : shared_(std::move(rank)), owned_(std::move(host)), host_(*owned_) {}

    ~NcclComm() override {
        outbox_.reset();
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
        return std::make_unique<NcclComm>(shared_, host_.group(members));
    }
    void connect() override {
        if (size() == 1 || whole_ != nullptr) return;
        ncclUniqueId id{};
        if (rank() == 0) TERA_NCCL(new_id, &id);
        host_.broadcast(host_exec(), bytes_of(id), 0);
        whole_ = join(id, size(), rank());
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
            if (mail.to >= 0)
                outbox_ = std::make_unique<Outbox>(*shared_, pair(mail.to, true), mail.on_their_way, mail.bytes);
        };
        if (rank() % 2 == 0) out();
        if (mail.from >= 0) inbox_ = pair(mail.from, false);
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
        TERA_NCCL(all_reduce, data.data, data.data, count_of(data), type_of(data.dtype),
                  op == Reduce::max ? ncclMax : ncclSum, whole(), stream_of(exec));
        shared_->enqueued(exec, "all_reduce", data, size());
    }
    void do_all_gather(const Exec& exec, ConstTensor in, Tensor out) override {
        if (in.device == Device::cpu) return host_.all_gather(exec, in, out);
        TERA_NCCL(all_gather, in.data, out.data, count_of(in), type_of(in.dtype), whole(), stream_of(exec));
        shared_->enqueued(exec, "all_gather", in, size());
    }
    void do_reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) override {
        if (in.device == Device::cpu) return host_.reduce_scatter(exec, in, out);
        TERA_NCCL(reduce_scatter, in.data, out.data, count_of(out), type_of(in.dtype), ncclSum, whole(),
                  stream_of(exec));
        shared_->enqueued(exec, "reduce_scatter", in, size());
    }
    void do_broadcast(const Exec& exec, Tensor data, int root) override {
        if (data.device == Device::cpu) return host_.broadcast(exec, data, root);
        TERA_NCCL(broadcast, data.data, data.data, count_of(data), type_of(data.dtype), root, whole(), stream_of(exec));
        shared_->enqueued(exec, "broadcast", data, size());
    }
    void do_send(const Exec& exec, ConstTensor data, int to) override {
        if (data.device == Device::cpu) return host_.send(exec, data, to);
        TERA_CHECK(outbox_ && to == mail_.to, "no connection from rank ", rank(), " to ", to);
        if (data.numel() > 0) outbox_->send(data);
    }
    void do_recv(const Exec& exec, Tensor data, int from) override {
        if (data.device == Device::cpu) return host_.recv(exec, data, from);
        TERA_CHECK(inbox_ != nullptr && from == mail_.from, "no connection from rank ", from, " to ", rank());
        if (data.numel() == 0) return;
        TERA_NCCL(recv, data.data, count_of(data), type_of(data.dtype), 0, inbox_, stream_of(exec));
        shared_->enqueued(exec, "message", data, 2);
    }
    void do_shift(const Exec& exec, ConstTensor in, Tensor out) override {
        if (in.device == Device::cpu) return host_.shift(exec, in, out);
        exchange({in.data, count_of(in), type_of(in.dtype)}, out.data, stream_of(exec));
        shared_->enqueued(exec, "shift", in, size());
    }

  private:
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
    ncclComm_t whole_ = nullptr, inbox_ = nullptr;
    Mail mail_;
    std::unique_ptr<Outbox> outbox_;
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
