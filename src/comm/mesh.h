// Mesh: the ranks as a grid with named axes, in Megatron's order.
//
//   rank = tp + TP·(cp + CP·(dp + DP·pp))            axes tp, cp, dp, pp from fastest to slowest
//   rank = tp + TP·(cp + CP·(pp + PP·dp))            with pp_before_dp (--use-tp-pp-dp-mapping)
//
// A group over some axes holds the ranks that agree in all other axes, in ascending order:
//   {tp} {cp} {dp} {pp}   the axes themselves        {dp,cp}  those that share gradients
//   {tp,pp}               one copy of the model      embedding: first and last stage of a pipeline
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/comm.h"

namespace tera {

struct MeshShape {
    int tp = 1, cp = 1, dp = 1, pp = 1;
    bool pp_before_dp = false;

    int size() const { return tp * cp * dp * pp; }
};

/// Coordinates of one rank.
struct MeshPlace {
    int tp = 0, cp = 0, dp = 0, pp = 0;
    bool operator==(const MeshPlace&) const = default;
};

MeshPlace place_of(const MeshShape& shape, int rank);
int rank_at(const MeshShape& shape, const MeshPlace& place);

/// The ranks of the group over `axes` that `rank` belongs to.
std::vector<int> group_over(const MeshShape& shape, AxisSet axes, int rank);
/// All groups over `axes`, each once.
std::vector<std::vector<int>> all_groups(const MeshShape& shape, AxisSet axes);
/// First and last stage of the rank's pipeline; only that stage where there is one, and empty for ranks between.
std::vector<int> embedding_group(const MeshShape& shape, int rank);

/// One rank's communicators. Made by all ranks of the world at the same time.
class Mesh {
  public:
    /// One rank.
    Mesh();
    /// world.size() is shape.size(); `world` must outlive the mesh.
    Mesh(const MeshShape& shape, Comm& world);
    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;

    const MeshShape& shape() const { return shape_; }
    const MeshPlace& place() const { return place_; }
    Comm& world() const { return *world_; }
    Comm& tp() const { return over({Axis::tp}); }
    Comm& cp() const { return over({Axis::cp}); }
    Comm& dp() const { return over({Axis::dp}); }
    Comm& pp() const { return over({Axis::pp}); }
    /// The same ranks again, for what flows from the last stage to the first.
    Comm& pp_back() const { return pp_back_ ? *pp_back_ : *self_; }
    /// Of one of the groups listed above.
    Comm& over(AxisSet axes) const;
    /// Null on the stages between first and last, and where there is one stage.
    Comm* embedding() const { return embedding_.get(); }

    /// Makes the connections of all groups that tensors in device memory are sent over (Comm::connect). world: of all
    /// ranks too.
    void connect(bool world) const;

    /// What this rank has sent, by what it was for: "tensor", "context", "data" (gradients and values, over context
    /// ranks too), "pipeline", "tied embedding", "agreement" (norms, losses).
    std::map<std::string, Traffic> traffic() const;
    void reset_traffic() const;

    bool first_stage() const { return place_.pp == 0; }
    bool last_stage() const { return place_.pp == shape_.pp - 1; }

  private:
    MeshShape shape_;
    MeshPlace place_;
    std::unique_ptr<Comm> self_;
    Comm* world_;
    std::map<std::uint8_t, std::unique_ptr<Comm>> groups_;  ///< by AxisSet::bits
    std::unique_ptr<Comm> embedding_, pp_back_;
};

}  // namespace tera
