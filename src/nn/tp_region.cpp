#include "nn/tp_region.h"

#include "core/error.h"

namespace tera {

TpRegion::TpRegion(Comm& comm, bool sequence_parallel, std::shared_ptr<TpLane> lane)
    : comm_(&comm),
      place_{comm.rank(), comm.size()},
      sequence_parallel_(sequence_parallel && comm.size() > 1),
      lane_(comm.size() > 1 ? std::move(lane) : nullptr) {}

ConstTensor TpRegion::gather(const Exec& exec, ConstTensor x) const {
    if (!sequence_parallel_) return x;
    Tensor whole = exec.tensor(x.dtype, {x.rows() * size(), x.cols()});
    comm_->all_gather(exec, x, whole);
    return whole;
}

Tensor TpRegion::sum(const Exec& exec, Tensor x) const {
    if (size() == 1) return x;
    if (!sequence_parallel_) {
        comm_->all_reduce(exec, x, Reduce::sum);
        return x;
    }
    TERA_CHECK(x.rows() % size() == 0, x.rows(), " rows over ", size(), " ranks");
    Tensor mine = exec.tensor(x.dtype, {x.rows() / size(), x.cols()});
    comm_->reduce_scatter(exec, x, mine);
    return mine;
}

Tensor TpRegion::own_part(Tensor x) const {
    const std::int64_t n = x.numel() / size();
    TERA_CHECK(n * size() == x.numel(), x.shape, " over ", size(), " ranks");
    return x.reshape({x.numel()}).slice(n * rank(), n);
}

Tensor TpRegion::from_parts(const Exec& exec, ConstTensor part, Shape shape) const {
    Tensor whole = exec.tensor(part.dtype, shape);
    comm_->all_gather(exec, part, whole.reshape({whole.numel()}));
    return whole;
}

void TpRegion::all_reduce(const Exec& exec, Tensor data, Reduce op) const {
    if (size() > 1) comm_->all_reduce(exec, data, op);
}

}  // namespace tera
