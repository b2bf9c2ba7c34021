#include "comm/comm.h"

#include "core/error.h"

namespace tera {

void Comm::note(double bytes) {
    if (size() == 1) return;
    ++traffic_.calls;
    traffic_.bytes += bytes;
}

void Comm::all_reduce(const Exec& exec, Tensor data, Reduce op) {
    note(2.0 * static_cast<double>(data.bytes()) * (size() - 1) / size());
    if (exec.counts() || data.numel() == 0) return;
    do_all_reduce(exec, data, op);
}

void Comm::all_gather(const Exec& exec, ConstTensor in, Tensor out) {
    TERA_CHECK(in.dtype == out.dtype && in.numel() * size() == out.numel(), in.shape, " of ", size(), " ranks into ",
               out.shape);
    note(static_cast<double>(in.bytes()) * (size() - 1));
    if (exec.counts() || in.numel() == 0) return;
    do_all_gather(exec, in, out);
}

void Comm::reduce_scatter(const Exec& exec, ConstTensor in, Tensor out) {
    TERA_CHECK(in.dtype == out.dtype && out.numel() * size() == in.numel(), in.shape, " over ", size(), " ranks into ",
               out.shape);
    note(static_cast<double>(out.bytes()) * (size() - 1));
    if (exec.counts() || out.numel() == 0) return;
    do_reduce_scatter(exec, in, out);
}

void Comm::broadcast(const Exec& exec, Tensor data, int root) {
    TERA_CHECK(root >= 0 && root < size(), "root ", root, " of ", size());
    note(static_cast<double>(data.bytes()) * (size() - 1) / size());
    if (exec.counts() || data.numel() == 0) return;
    do_broadcast(exec, data, root);
}

void Comm::send(const Exec& exec, ConstTensor data, int to) {
    TERA_CHECK(to >= 0 && to < size() && to != rank(), "rank ", rank(), " to ", to, " of ", size());
    note(static_cast<double>(data.bytes()));
    if (!exec.counts()) do_send(exec, data, to);
}

void Comm::recv(const Exec& exec, Tensor data, int from) {
    TERA_CHECK(from >= 0 && from < size() && from != rank(), "rank ", rank(), " from ", from, " of ", size());
    if (exec.counts()) return;
    if (const auto at = expected_.find(from); at != expected_.end()) {
        TERA_CHECK(at->second == data.bytes(), data.bytes(), " bytes where ", at->second, " were expected");
        expected_.erase(at);
    }
    do_recv(exec, data, from);
}

void Comm::expect(const Exec& exec, DType dtype, Shape shape, int from) {
    TERA_CHECK(from >= 0 && from < size() && from != rank(), "rank ", rank(), " from ", from, " of ", size());
    const auto n = static_cast<std::size_t>(shape.numel());
    if (exec.counts() || n == 0) return;
    TERA_CHECK(expected_.emplace(from, n * size_of(dtype)).second, "two messages are expected from rank ", from);
    do_expect(exec, dtype, shape, from);
}

void Comm::shift(const Exec& exec, ConstTensor in, Tensor out) {
    TERA_CHECK(in.dtype == out.dtype && in.numel() == out.numel(), in.shape, " into ", out.shape);
    note(static_cast<double>(in.bytes()));
    if (exec.counts() || in.numel() == 0) return;
    do_shift(exec, in, out);
}

void Comm::do_shift(const Exec& exec, ConstTensor in, Tensor out) {
    do_send(exec, in, next());
    do_recv(exec, out, previous());
}

std::pair<std::vector<int>, int> members_in_world(const std::vector<int>& members, const std::vector<int>& world,
                                                  int rank) {
    std::vector<int> numbers;
    int place = -1;
    for (std::size_t i = 0; i < members.size(); ++i) {
        TERA_CHECK(members[i] >= 0 && members[i] < static_cast<int>(world.size()), "rank ", members[i], " of ",
                   world.size());
        if (members[i] == rank) place = static_cast<int>(i);
        numbers.push_back(world[static_cast<std::size_t>(members[i])]);
    }
    TERA_CHECK(place >= 0, "rank ", rank, " is not in the group it asks for");
    return {numbers, place};
}

}  // namespace tera
