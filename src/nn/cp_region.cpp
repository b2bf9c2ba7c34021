#include "nn/cp_region.h"

#include "core/error.h"
#include "ops/convert.h"

namespace tera {

ops::SequencePiece zigzag_piece(std::int64_t S, int rank, int size) {
    if (size == 1) return {};
    TERA_CHECK(S % 2 == 0, S, " positions on each of ", size, " ranks");
    const std::int64_t chunk = S / 2;
    return {.offset = 0, .run = chunk, .first = rank * chunk, .second = (2 * size - 1 - rank) * chunk};
}

std::vector<SequenceRun> CpRegion::runs(std::int64_t S) const {
    if (size_ == 1) return {{0, S, 0}};
    const ops::SequencePiece piece = zigzag_piece(S, rank_, size_);
    return {{0, piece.run, piece.first}, {piece.run, piece.run, piece.second}};
}

namespace {

/// Rank i's two chunks of `by_rank` and where they stand in `whole`, for every rank.
template <class A, class B, class F>
void each_chunk(const A& by_rank, const B& whole, int size, const F& f) {
    const std::int64_t rows = whole.shape[0] / (2 * size);
    for (std::int64_t i = 0; i < size; ++i) {
        f(by_rank.slice(2 * i * rows, rows), whole.slice(i * rows, rows));
        f(by_rank.slice((2 * i + 1) * rows, rows), whole.slice((2 * size - 1 - i) * rows, rows));
    }
}

}  // namespace

CpRegion::CpRegion(Comm& comm, CpComm kind, const Engine& engine)
    : comm_(&comm), rank_(comm.rank()), size_(comm.size()), kind_(kind) {
    if (size_ > 1 && kind_ == CpComm::ring) road_ = std::make_shared<Road>(engine);
}

ConstTensor CpRegion::gather(const Exec& exec, ConstTensor local) const {
    if (size_ == 1) return local;
    const Shape shape{local.rows() * size_, local.cols()};
    Tensor whole = exec.tensor(local.dtype, shape);
    ArenaScope scope(*exec.arena);
    Tensor by_rank = exec.tensor(local.dtype, shape);
    comm_->all_gather(exec, local, by_rank);
    each_chunk(by_rank, whole, size_, [&](const Tensor& from, const Tensor& to) { ops::copy(exec, to, from); });
    return whole;
}

ConstTensor CpRegion::scatter(const Exec& exec, ConstTensor whole) const {
    if (size_ == 1) return whole;
    Tensor local = exec.tensor(whole.dtype, {whole.rows() / size_, whole.cols()});
    ArenaScope scope(*exec.arena);
    Tensor by_rank = exec.like(whole);
    each_chunk(by_rank, whole, size_, [&](const Tensor& to, const ConstTensor& from) { ops::copy(exec, to, from); });
    comm_->reduce_scatter(exec, by_rank, local);
    return local;
}

void CpRegion::pass_on(const Exec& exec, Cargo cargo, ConstTensor in, Tensor out) const {
    road_->lane.follow(exec);
    comm_->shift(road_->lane.on(exec), in, out);
    road_->mark(cargo).set();
}

void CpRegion::arrived(const Exec& exec, Cargo cargo) const { road_->mark(cargo).wait(exec); }

}  // namespace tera
