#include <cstring>

#include "comm/comm.h"

namespace tera {
namespace {

class SelfComm final : public Comm {
  public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    void all_reduce(const Exec&, Tensor, Reduce) override {}
    void all_gather(const Exec&, ConstTensor in, Tensor out) override { copy(in, out); }
    void reduce_scatter(const Exec&, ConstTensor in, Tensor out) override { copy(in, out); }
    void barrier() override {}

  private:
    static void copy(const ConstTensor& in, const Tensor& out) {
        TERA_CHECK(in.bytes() == out.bytes(), in.shape, " and ", out.shape);
        if (in.data != out.data) std::memcpy(out.data, in.data, in.bytes());
    }
};

}  // namespace

std::unique_ptr<Comm> make_self_comm() { return std::make_unique<SelfComm>(); }

}  // namespace tera
