// Which messages between stages an interleaved pipeline lets in before it needs them.
#include "comm/thread_comm.h"
#include "support/parity.h"

namespace tera::test {
namespace {

/// Another communicator that keeps, of each message received, whether it was expected: '+' or '-'.
class Listener final : public Comm {
  public:
    Listener(std::unique_ptr<Comm> owned, Comm& comm, std::string& heard)
        : owned_(std::move(owned)), comm_(comm), heard_(heard) {}
    int rank() const override { return comm_.rank(); }
    int size() const override { return comm_.size(); }
    void barrier() override { comm_.barrier(); }
    std::unique_ptr<Comm> group(const std::vector<int>& members) override {
        std::unique_ptr<Comm> some = comm_.group(members);
        Comm& comm = *some;
        return std::make_unique<Listener>(std::move(some), comm, heard_);
    }

  protected:
    void do_all_reduce(const Exec& e, Tensor data, Reduce op) override { comm_.all_reduce(e, data, op); }
    void do_all_gather(const Exec& e, ConstTensor in, Tensor out) override { comm_.all_gather(e, in, out); }
    void do_reduce_scatter(const Exec& e, ConstTensor in, Tensor out) override { comm_.reduce_scatter(e, in, out); }
    void do_broadcast(const Exec& e, Tensor data, int root) override { comm_.broadcast(e, data, root); }
    void do_send(const Exec& e, ConstTensor data, int to) override { comm_.send(e, data, to); }
    void do_recv(const Exec& e, Tensor data, int from) override {
        heard_ += expected_ ? '+' : '-';
        expected_ = false;
        comm_.recv(e, data, from);
    }
    void do_expect(const Exec&, DType, Shape, int) override { expected_ = true; }

  private:
    std::unique_ptr<Comm> owned_;
    Comm& comm_;
    std::string& heard_;
    bool expected_ = false;
};

/// Of both stages in two steps of four micro-batches, two chunks a stage, and in one evaluation of as many.
std::vector<std::string> heard(const ReceiveAhead& ahead) {
    ModelConfig model = gpt_config();
    model.layers = 4;
    ParityRecord record;
    std::vector<std::string> heard(2);
    run_on_threads(2, [&](Comm& world) {
        Listener listener(nullptr, world, heard[static_cast<std::size_t>(world.rank())]);
        train_rank({.model = model, .steps = 2}, {.mesh = {.pp = 2}, .chunks = 2, .ahead = ahead}, listener, Engine(),
                   record);
    });
    return heard;
}

TEST(ReceiveAhead, messages_are_expected_where_it_was_asked_for) {
    // Stage 0 receives F0.1 F1.1 | B0.1 B1.1 F2.1 B0 F3.1 B1 | B2.1 B3.1 B2 B3, and F0.1 ... in evaluation;
    // stage 1 F0 F1 | F0.1 F1.1 F2 B0 F3 B1 F2.1 F3.1 | B2 B3, nobody can expect its first; between the bars
    // forwards and backwards take turns. In the first step nothing is expected.
    const std::string first = "------------", evaluation0 = "----", evaluation1 = "--------";
    const auto stages = [&](const std::string& second0, const std::string& second1) {
        return std::vector<std::string>{first + second0 + evaluation0, first + second1 + evaluation1};
    };
    EXPECT_EQ(heard({}), stages(first, first));
    EXPECT_EQ(heard({.turns = true}), stages("--++++++----", "--++++++++--"));
    EXPECT_EQ(heard({.turns = true, .ends = true}), stages("++++++++++++", "-+++++++++++"));
}

}  // namespace
}  // namespace tera::test
