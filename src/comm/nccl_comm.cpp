#include "comm/nccl_comm.h"

#include "core/error.h"

#if defined(TERA_WITH_CUDA) && __has_include(<nccl.h>)

#include <cstdlib>
#include <vector>

#include "comm/nccl_call.h"
#include "comm/nccl_mail.h"
#include "comm/nccl_rank.h"
#include "core/cuda/check.h"

namespace tera {
namespace {

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
