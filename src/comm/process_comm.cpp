#include "comm/process_comm.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "comm/reduce_in_order.h"
#include "core/error.h"

namespace tera {
namespace {

enum class Call : std::uint32_t {
    all_reduce_sum,
    all_reduce_max,
    all_gather,
    reduce_scatter,
    broadcast,
    barrier,
    message
};

const char* name_of(Call call) {
    constexpr const char* names[] = {"all_reduce(sum)", "all_reduce(max)", "all_gather", "reduce_scatter",
                                     "broadcast",       "barrier",         "message"};
    return static_cast<std::size_t>(call) < std::size(names) ? names[static_cast<std::size_t>(call)] : "unknown call";
}

std::string text_of(const FrameHeader& h) {
    const Call call = static_cast<Call>(h.call);
    if (call == Call::barrier) return name_of(call);
    return cat(name_of(call), " of ", h.elements, " ", tera::name_of(static_cast<DType>(h.dtype)));
}

/// How many groups of the same members a process has made.
using GroupCounts = std::map<std::vector<int>, int>;

/// The same for the n-th group of the same members, whoever computes it.
std::uint64_t number_of(const std::vector<int>& members, int n) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const int m : members) hash = (hash ^ static_cast<std::uint64_t>(m + 1)) * 0x100000001b3;
    return (hash ^ static_cast<std::uint64_t>(n)) * 0x100000001b3;
}

class ProcessComm final : public Comm {
  public:
    ProcessComm(Transport& transport, Watch& watch, std::vector<int> members, int rank,
                std::shared_ptr<GroupCounts> counts)
        : transport_(transport),
          watch_(watch),
          members_(std::move(members)),
          rank_(rank),
          counts_(std::move(counts)),
          group_(number_of(members_, (*counts_)[members_]++)) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(members_.size()); }
    void barrier() override;
    std::unique_ptr<Comm> group(const std::vector<int>& members) override;

  protected:
    void do_all_reduce(const Exec& exec, Tensor data, Reduce op) override;
    void do_all_gather(const Exec& exec, ConstTensor in, Tensor out) override;
    void do_reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) override;
    void do_broadcast(const Exec& exec, Tensor data, int root) override;
    void do_send(const Exec& exec, ConstTensor data, int to) override;
    void do_recv(const Exec& exec, Tensor data, int from) override;

  private:
    /// Tells the watch what this rank is in.
    class Inside {
      public:
        Inside(Watch& watch, const std::string& call, const std::string& where) : progress_(watch.progress()) {
            progress_.begin_call(cat(call, " ", where));
        }
        ~Inside() { progress_.end_call(); }

      private:
        Progress& progress_;
    };

    /// Tells it for whom this rank waits.
    class Waiting {
      public:
        Waiting(Watch& watch, int rank) : progress_(watch.progress()) { progress_.begin_wait(rank); }
        ~Waiting() { progress_.end_wait(); }

      private:
        Progress& progress_;
    };

    /// Messages and collectives do not stand in each other's way: each go by a number of their own.
    FrameHeader begin(Call call, std::int64_t elements, DType dtype) {
        const bool message = call == Call::message;
        return {.group = group_ ^ static_cast<std::uint64_t>(message),
                .sequence = message ? 0 : sequence_++,
                .elements = elements,
                .call = static_cast<std::uint32_t>(call),
                .dtype = static_cast<std::uint32_t>(dtype),
                .bytes = 0};
    }
    std::string where() const {
        return size() == transport_.size() ? cat("over ", size(), " ranks") : cat("over ranks ", list_of(members_));
    }
    int in_world(int r) const { return members_[static_cast<std::size_t>(r)]; }
    void send_to(int r, FrameHeader header, const std::byte* data, std::size_t bytes) {
        header.bytes = bytes;
        transport_.send(in_world(r), header, data);
    }
    /// The next frame from a rank, which must belong to the collective this rank is in.
    Frame expect(int r, const FrameHeader& mine, std::size_t bytes);
    /// What one rank has is so little that everybody gets all of it.
    static bool is_small(std::size_t bytes) { return bytes <= std::size_t{64} << 10; }
    /// Everybody's bytes, in the order of the ranks.
    std::vector<std::byte> gather_small(const FrameHeader& header, ConstTensor mine);
    /// out = sums (or maxima) of the elements from `begin` on of everybody's tensors, gathered in `all`.
    void reduce_small(const std::vector<std::byte>& all, std::int64_t begin, Tensor out, Reduce op) const;
    /// Sums (or maxima) of elements [begin, end) of everybody's `in`, written to `out`; every rank has sent its share.
    void reduce_own(const FrameHeader& header, ConstTensor in, std::int64_t begin, std::int64_t end, std::byte* out,
                    Reduce op);

    Transport& transport_;
    Watch& watch_;
    std::vector<int> members_;  ///< ranks in the world
    int rank_;
    std::shared_ptr<GroupCounts> counts_;
    std::uint64_t group_;
    std::int64_t sequence_ = 0;
};

Frame ProcessComm::expect(int r, const FrameHeader& mine, std::size_t bytes) {
    Frame frame = [&] {
        const Waiting waiting(watch_, in_world(r));
        return transport_.receive(in_world(r), mine.group);
    }();
    const FrameHeader& h = frame.header;
    if (h.call != mine.call || h.dtype != mine.dtype || h.elements != mine.elements || h.sequence != mine.sequence ||
        h.bytes != bytes) {
        throw Error(cat("collectives out of step: rank ", in_world(rank_), " calls ", text_of(mine), ", ",
                        watch_.name_of(in_world(r)), " ", text_of(h)));
    }
    return frame;
}

void ProcessComm::reduce_own(const FrameHeader& header, ConstTensor in, std::int64_t begin, std::int64_t end,
                             std::byte* out, Reduce op) {
    const std::size_t element = size_of(in.dtype), bytes = static_cast<std::size_t>(end - begin) * element;
    std::vector<Frame> frames(static_cast<std::size_t>(size()));
    for (int r = 0; r < size(); ++r) {
        if (r != rank_) frames[static_cast<std::size_t>(r)] = expect(r, header, bytes);
    }
    with_element_type(in.dtype, [&](auto zero) {
        using T = decltype(zero);
        std::vector<const T*> inputs;
        for (int r = 0; r < size(); ++r) {
            const std::byte* from = r == rank_ ? in.data + static_cast<std::size_t>(begin) * element
                                               : frames[static_cast<std::size_t>(r)].data.get();
            inputs.push_back(reinterpret_cast<const T*>(from));
        }
        for (std::int64_t i = 0; i < end - begin; ++i) reinterpret_cast<T*>(out)[i] = reduce_in_order<T>(inputs, i, op);
    });
}

/// In round k everyone sends what it has, of up to 2^k ranks, to the rank 2^k above. All small collectives use these
/// connections, two times log2(size) of them, and no others.
std::vector<std::byte> ProcessComm::gather_small(const FrameHeader& header, ConstTensor mine) {
    const std::size_t bytes = mine.bytes(), ranks = static_cast<std::size_t>(size());
    std::vector<std::byte> below(ranks * bytes);  // this rank's, the one's below it, and so on
    std::memcpy(below.data(), mine.data, bytes);
    for (std::size_t have = 1; have < ranks; have *= 2) {
        const std::size_t more = std::min(have, ranks - have) * bytes;
        const int distance = static_cast<int>(have);
        send_to((rank_ + distance) % size(), header, below.data(), more);
        const Frame frame = expect((rank_ + size() - distance) % size(), header, more);
        std::memcpy(below.data() + have * bytes, frame.data.get(), more);
    }
    std::vector<std::byte> all(below.size());
    for (std::size_t i = 0; i < ranks; ++i) {
        const std::size_t r = (static_cast<std::size_t>(rank_) + ranks - i) % ranks;
        std::memcpy(all.data() + r * bytes, below.data() + i * bytes, bytes);
    }
    return all;
}

void ProcessComm::reduce_small(const std::vector<std::byte>& all, std::int64_t begin, Tensor out, Reduce op) const {
    with_element_type(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        const std::size_t stride = all.size() / sizeof(T) / static_cast<std::size_t>(size());
        std::vector<const T*> inputs;
        for (int r = 0; r < size(); ++r)
            inputs.push_back(reinterpret_cast<const T*>(all.data()) + static_cast<std::size_t>(r) * stride + begin);
        for (std::int64_t i = 0; i < out.numel(); ++i) out.ptr<T>()[i] = reduce_in_order<T>(inputs, i, op);
    });
}

void ProcessComm::do_all_reduce(const Exec&, Tensor data, Reduce op) {
    const FrameHeader header =
        begin(op == Reduce::max ? Call::all_reduce_max : Call::all_reduce_sum, data.numel(), data.dtype);
    const Inside inside(watch_, text_of(header), where());
    if (is_small(data.bytes())) return reduce_small(gather_small(header, data), 0, data, op);
    const std::size_t element = size_of(data.dtype);
    const auto first = [&](int r) { return data.numel() * r / size(); };
    const auto at = [&](int r) { return data.data + static_cast<std::size_t>(first(r)) * element; };
    const auto bytes = [&](int r) { return static_cast<std::size_t>(first(r + 1) - first(r)) * element; };
    for (int r = 0; r < size(); ++r) {
        if (r != rank_) send_to(r, header, at(r), bytes(r));
    }
    reduce_own(header, data, first(rank_), first(rank_ + 1), at(rank_), op);
    for (int r = 0; r < size(); ++r) {
        if (r != rank_) send_to(r, header, at(rank_), bytes(rank_));
    }
    for (int r = 0; r < size(); ++r) {
        if (r == rank_) continue;
        const Frame frame = expect(r, header, bytes(r));
        if (bytes(r) > 0) std::memcpy(at(r), frame.data.get(), bytes(r));
    }
}

void ProcessComm::do_all_gather(const Exec&, ConstTensor in, Tensor out) {
    const FrameHeader header = begin(Call::all_gather, in.numel(), in.dtype);
    const Inside inside(watch_, text_of(header), where());
    if (is_small(in.bytes())) {
        const std::vector<std::byte> all = gather_small(header, in);
        std::memcpy(out.data, all.data(), all.size());
        return;
    }
    for (int r = 0; r < size(); ++r) {
        if (r != rank_) send_to(r, header, in.data, in.bytes());
    }
    for (int r = 0; r < size(); ++r) {
        std::byte* const to = out.data + static_cast<std::size_t>(r) * in.bytes();
        if (r == rank_) {
            if (to != in.data && in.bytes() > 0) std::memcpy(to, in.data, in.bytes());
            continue;
        }
        const Frame frame = expect(r, header, in.bytes());
        if (in.bytes() > 0) std::memcpy(to, frame.data.get(), in.bytes());
    }
}

void ProcessComm::do_reduce_scatter(const Exec&, ConstTensor in, Tensor out) {
    const FrameHeader header = begin(Call::reduce_scatter, in.numel(), in.dtype);
    const Inside inside(watch_, text_of(header), where());
    if (is_small(in.bytes())) return reduce_small(gather_small(header, in), out.numel() * rank_, out, Reduce::sum);
    for (int r = 0; r < size(); ++r) {
        if (r != rank_) send_to(r, header, in.data + static_cast<std::size_t>(r) * out.bytes(), out.bytes());
    }
    reduce_own(header, in, out.numel() * rank_, out.numel() * (rank_ + 1), out.data, Reduce::sum);
}

/// A tree: in round k every rank that has the data sends it to the one 2^k above.
void ProcessComm::do_broadcast(const Exec&, Tensor data, int root) {
    const FrameHeader header = begin(Call::broadcast, data.numel(), data.dtype);
    const Inside inside(watch_, text_of(header), cat("from rank ", in_world(root)));
    const int above = (rank_ + size() - root) % size();
    int distance = static_cast<int>(std::bit_ceil(static_cast<unsigned>(above) + 1));  // to the first that needs it
    if (above > 0) {
        const Frame frame = expect((rank_ + size() - distance / 2) % size(), header, data.bytes());
        std::memcpy(data.data, frame.data.get(), data.bytes());
    }
    for (; above + distance < size(); distance *= 2)
        send_to((rank_ + distance) % size(), header, data.data, data.bytes());
}

/// In round k everyone hears from the rank 2^k below, and with it of all that one has heard from.
void ProcessComm::barrier() {
    for (int distance = 1; distance < size(); distance *= 2) {
        const FrameHeader header = begin(Call::barrier, 0, DType::u8);
        const Inside inside(watch_, text_of(header), where());
        send_to((rank_ + distance) % size(), header, nullptr, 0);
        (void)expect((rank_ + size() - distance % size()) % size(), header, 0);
    }
}

void ProcessComm::do_send(const Exec&, ConstTensor data, int to) {
    send_to(to, begin(Call::message, data.numel(), data.dtype), data.data, data.bytes());
}

void ProcessComm::do_recv(const Exec&, Tensor data, int from) {
    const FrameHeader header = begin(Call::message, data.numel(), data.dtype);
    const Inside inside(watch_, text_of(header), cat("from rank ", in_world(from)));
    const Frame frame = expect(from, header, data.bytes());
    if (data.bytes() > 0) std::memcpy(data.data, frame.data.get(), data.bytes());
}

std::unique_ptr<Comm> ProcessComm::group(const std::vector<int>& members) {
    const auto [world, place] = members_in_world(members, members_, rank_);
    return std::make_unique<ProcessComm>(transport_, watch_, world, place, counts_);
}

}  // namespace

std::unique_ptr<Comm> make_process_comm(Transport& transport, Watch& watch) {
    std::vector<int> everyone;
    for (int r = 0; r < transport.size(); ++r) everyone.push_back(r);
    return std::make_unique<ProcessComm>(transport, watch, everyone, transport.rank(), std::make_shared<GroupCounts>());
}

}  // namespace tera
