#include "comm/mesh.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace tera {
namespace {

struct AxisField {
    Axis axis;
    int MeshShape::*size;
    int MeshPlace::*at;
};

/// From fastest to slowest.
std::vector<AxisField> fields(const MeshShape& shape) {
    std::vector<AxisField> all = {{Axis::tp, &MeshShape::tp, &MeshPlace::tp},
                                  {Axis::cp, &MeshShape::cp, &MeshPlace::cp},
                                  {Axis::dp, &MeshShape::dp, &MeshPlace::dp},
                                  {Axis::pp, &MeshShape::pp, &MeshPlace::pp}};
    if (shape.pp_before_dp) std::swap(all[2], all[3]);
    return all;
}

}  // namespace

MeshPlace place_of(const MeshShape& shape, int rank) {
    TERA_CHECK(rank >= 0 && rank < shape.size(), "rank ", rank, " of ", shape.size());
    MeshPlace place;
    for (const AxisField& f : fields(shape)) {
        place.*f.at = rank % (shape.*f.size);
        rank /= shape.*f.size;
    }
    return place;
}

int rank_at(const MeshShape& shape, const MeshPlace& place) {
    int rank = 0, stride = 1;
    for (const AxisField& f : fields(shape)) {
        rank += stride * (place.*f.at);
        stride *= shape.*f.size;
    }
    return rank;
}

std::vector<int> group_over(const MeshShape& shape, AxisSet axes, int rank) {
    const MeshPlace mine = place_of(shape, rank);
    std::vector<int> group;
    for (int r = 0; r < shape.size(); ++r) {
        const MeshPlace other = place_of(shape, r);
        bool same = true;
        for (const AxisField& f : fields(shape)) same = same && (axes.has(f.axis) || other.*f.at == mine.*f.at);
        if (same) group.push_back(r);
    }
    return group;
}

std::vector<std::vector<int>> all_groups(const MeshShape& shape, AxisSet axes) {
    std::set<std::vector<int>> groups;
    for (int r = 0; r < shape.size(); ++r) groups.insert(group_over(shape, axes, r));
    return {groups.begin(), groups.end()};
}

std::vector<int> embedding_group(const MeshShape& shape, int rank) {
    MeshPlace place = place_of(shape, rank);
    if (place.pp != 0 && place.pp != shape.pp - 1) return {};
    place.pp = 0;
    std::vector<int> group = {rank_at(shape, place)};
    place.pp = shape.pp - 1;
    if (shape.pp > 1) group.push_back(rank_at(shape, place));
    return group;
}

Mesh::Mesh() : self_(make_self_comm()), world_(self_.get()) {}

Mesh::Mesh(const MeshShape& shape, Comm& world)
    : shape_(shape), place_(place_of(shape, world.rank())), self_(make_self_comm()), world_(&world) {
    TERA_CHECK(shape.size() == world.size(), shape.size(), " places for ", world.size(), " ranks");
    for (const AxisSet axes : {AxisSet{Axis::tp}, AxisSet{Axis::cp}, AxisSet{Axis::dp}, AxisSet{Axis::pp},
                               AxisSet{Axis::dp, Axis::cp}, AxisSet{Axis::tp, Axis::pp}}) {
        const std::vector<int> members = group_over(shape, axes, world.rank());
        if (members.size() > 1) groups_[axes.bits] = world.group(members);
    }
    const std::vector<int> ends = embedding_group(shape, world.rank());
    if (ends.size() > 1) embedding_ = world.group(ends);
    if (shape.pp > 1) pp_back_ = world.group(group_over(shape, {Axis::pp}, world.rank()));
}

void Mesh::connect(bool world) const {
    const AxisSet gradients{Axis::dp, Axis::cp}, model{Axis::tp, Axis::pp};
    // Every rank comes to them in this order.
    for (const AxisSet axes : {AxisSet{Axis::tp}, AxisSet{Axis::cp}, AxisSet{Axis::pp}, gradients, model}) {
        if (world && axes == model) continue;
        const auto found = groups_.find(axes.bits);
        if (found == groups_.end()) continue;
        found->second->connect();
        if (axes == AxisSet{Axis::cp}) found->second->connect_ring();
    }
    if (world) world_->connect();
    if (embedding_) embedding_->connect();
}

Comm& Mesh::over(AxisSet axes) const {
    const auto found = groups_.find(axes.bits);
    if (found != groups_.end()) return *found->second;
    TERA_CHECK(group_over(shape_, axes, rank_at(shape_, place_)).size() == 1, "no communicator over these axes");
    return *self_;
}

std::map<std::string, Traffic> Mesh::traffic() const {
    const AxisSet gradients{Axis::dp, Axis::cp};
    std::map<std::string, Traffic> sent;
    const auto add = [&](const char* what, const Comm* comm) {
        if (comm != nullptr && comm->size() > 1) sent[what].add(comm->traffic());
    };
    for (const auto& [bits, comm] : groups_) {
        const char* const what = bits == AxisSet{Axis::tp}.bits   ? "tensor"
                                 : bits == AxisSet{Axis::cp}.bits ? "context"
                                 : bits == AxisSet{Axis::pp}.bits ? "pipeline"
                                 : bits == gradients.bits         ? "data"
                                                                  : "agreement";
        add(what, comm.get());
    }
    add("pipeline", pp_back_.get());
    add("tied embedding", embedding_.get());
    add("agreement", world_);
    return sent;
}

void Mesh::reset_traffic() const {
    for (const auto& [bits, comm] : groups_) comm->reset_traffic();
    for (Comm* comm : {pp_back_.get(), embedding_.get(), world_}) {
        if (comm != nullptr) comm->reset_traffic();
    }
}

}  // namespace tera
