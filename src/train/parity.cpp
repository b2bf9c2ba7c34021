#include "train/parity.h"

#include <algorithm>
#include <random>

#include "comm/thread_comm.h"
#include "core/error.h"
#include "train/evaluate.h"
#include "train/training_parts.h"

namespace tera {
namespace {

/// A micro-batch of random tokens with its memory.
struct RandomBatch {
    std::vector<std::int32_t> tokens, labels, positions, doc_start;
    std::vector<float> mask;
    std::vector<std::int64_t> sample;
    MicroBatch view;
};

RandomBatch random_batch(const ParityTraining& t, int step, int number) {
    std::mt19937_64 engine(static_cast<std::uint64_t>(step * 100 + number));
    std::uniform_int_distribution<std::int32_t> token(0, static_cast<std::int32_t>(t.model.true_vocab) - 1);
    const auto cut = static_cast<std::int32_t>(t.documents ? t.S / 2 + number % 2 + 1 : t.S);
    RandomBatch b;
    for (std::int64_t i = 0; i < t.S * t.B; ++i) {
        const auto s = static_cast<std::int32_t>(i / t.B);
        b.tokens.push_back(token(engine));
        b.labels.push_back(token(engine));
        b.positions.push_back(s < cut ? s : s - cut);
        b.doc_start.push_back(s < cut ? 0 : cut);
        b.mask.push_back(i % 5 == 3 || (i == 0 && number % 2 == 1) ? 0.0f : 1.0f);  // their numbers of tokens differ
    }
    for (std::int64_t i = 0; i < t.B; ++i) b.sample.push_back((step * t.micro_batches + number) * t.B + i);
    b.view = {.S = t.S,
              .B = t.B,
              .tokens = b.tokens.data(),
              .labels = b.labels.data(),
              .loss_mask = b.mask.data(),
              .positions = b.positions.data(),
              .doc_start = t.documents ? b.doc_start.data() : nullptr,
              .sample = b.sample.data()};
    return b;
}

/// This stage's slices of the model, one for each chunk.
std::vector<ModelSlice> slices_of(const ModelConfig& model, const ParityLayout& layout, int stage) {
    const int P = layout.mesh.pp;
    LayerPlanRequest request;
    request.layers = model.layers, request.stages = P, request.chunks = layout.chunks;
    request.first_stage = layout.first_stage_layers, request.last_stage = layout.last_stage_layers;
    request.count_embedding = layout.count_embedding, request.count_loss = layout.count_loss;
    const LayerPlan plan = plan_layers(request);
    std::vector<ModelSlice> slices;
    for (int c = 0; c < layout.chunks; ++c) {
        const LayerRange range = plan.stages[static_cast<std::size_t>(stage)][static_cast<std::size_t>(c)];
        slices.push_back({range.first, range.count, stage == 0 && c == 0, stage == P - 1 && c == layout.chunks - 1});
    }
    return slices;
}

/// Model, optimizer and step of one rank.
class ParityRank {
  public:
    ParityRank(const ParityTraining& t, const ParityLayout& layout, Comm& world, const Engine& engine,
               ParityRecord& record)
        : t_(t),
          layout_(layout),
          world_(world),
          mesh_(layout.mesh, world),
          record_(record),
          workspace_(engine, pool_),
          weights_(Arena::Kind::real, engine.memory()),
          states_(Arena::Kind::real, engine.memory()),
          upload_(engine, held_micro_batches(shape(), mesh_.place().pp)) {
        build_model();
        const bool overlap_gather = layout.overlap && layout.overlap_gather && layout.distributed_optimizer;
        const GradSync::Settings settings{.distributed_optimizer = layout.distributed_optimizer,
                                          .overlap_reduce = layout.overlap,
                                          .overlap_gather = overlap_gather,
                                          .gather_in_update = overlap_gather && layout.gather_in_update,
                                          .bucket = 100};
        sync_.emplace(mesh_, params_,
                      allocate_params(params_, weights_, DType::f64, DType::f64, GradSync::cut(layout.mesh, settings)),
                      settings, workspace_.engine(), workspace_.ctx().temp);
        init_params(params_, workspace_.ctx().temp, 1234);
        optimizer_.emplace(make_adam({.eps = 1e-5}),
                           Optimizer::Share{sync_->owned(), sync_->counted(), &sync_->norm_group(), sync_->groups()},
                           states_, workspace_.ctx().temp);
        pipeline_.emplace(Pipeline::Parts{chunks_, mesh_, workspace_, upload_, timers_, layout.group, sync_->observer(),
                                          layout.deferral, layout.ahead});
        mesh_.connect(layout.distributed_optimizer);
        pipeline_->connect(pipeline_->messages({.S = t.S, .B = t.B}, share()));
    }

    void run() {
        bool first = true;
        TrainStep train({*pipeline_, *sync_, *optimizer_, no_scaler_, timers_},
                        {.clip_grad = t_.clip, .per_token_loss = t_.per_token_loss, .with_gradients = [&] {
                             if (first)
                                 for (const ParamSlice& s : sync_->owned()) record_.grads.put(exec(), s, s.grad());
                             first = false;
                         }});
        for (int step = 0; step < t_.steps; ++step) {
            begin(step);
            record_.add(step, train.run([&]() -> const MicroBatch& { return next(); }, share(),
                                        {.learning_rate = 0.01, .weight_decay = 0.1}, step));
        }
        sync_->settle(exec());
        for (const ParamSlice& s : whole_slices(params_)) record_.weights.put(exec(), s, s.value());
        begin(t_.steps);
        const LossSum evaluation = evaluate(*pipeline_, [&]() -> const MicroBatch& { return next(); },
                                            {.iterations = 1, .micro_batches = share()});
        if (world_.rank() == 0) record_.evaluation = evaluation;
        world_.barrier();  // nobody ends a communicator that another still uses
    }

  private:
    void build_model() {
        const TpRegion tp(mesh_.tp(), layout_.sequence_parallel,
                          layout_.tp_overlap ? std::make_shared<TpLane>(workspace_.engine()) : nullptr);
        const CpRegion cp(mesh_.cp(), layout_.cp_comm, workspace_.engine());
        for (const ModelSlice& slice : slices_of(t_.model, layout_, mesh_.place().pp)) {
            models_.push_back(std::make_unique<Decoder>(t_.model, layout_.recompute, 7, slice, Regions{tp, cp}));
            chunks_.push_back(models_.back().get());
            for (Param* p : params_of(*models_.back())) params_.push_back(p);
        }
        for (Param* p : params_)  // norms and biases too, so that every gradient is exercised
            if (p->init.kind == Init::Kind::constant) p->init = {Init::Kind::normal, 0.3};
    }
    Exec exec() { return workspace_.ctx().temp; }
    int share() const { return t_.micro_batches / layout_.mesh.dp; }
    PipelineShape shape() const {
        return {.stages = layout_.mesh.pp, .chunks = layout_.chunks, .micro_batches = share(), .group = layout_.group};
    }
    void begin(int step) {
        batches_.clear();
        for (int m = 0; m < share(); ++m)
            batches_.push_back(random_batch(t_, step, m * layout_.mesh.dp + mesh_.place().dp));
        next_ = 0;
    }
    const MicroBatch& next() { return batches_[next_++].view; }

    const ParityTraining& t_;
    const ParityLayout& layout_;
    Comm& world_;
    const Mesh mesh_;
    ParityRecord& record_;
    ThreadPool pool_{1};
    Workspace workspace_;
    Arena weights_, states_;
    std::vector<std::unique_ptr<Decoder>> models_;
    std::vector<Decoder*> chunks_;
    std::vector<Param*> params_;
    std::optional<GradSync> sync_;
    std::optional<Optimizer> optimizer_;
    std::optional<LossScaler> no_scaler_;
    BatchUpload upload_;
    Timers timers_{0};
    std::optional<Pipeline> pipeline_;
    std::vector<RandomBatch> batches_;
    std::size_t next_ = 0;
};

}  // namespace

std::string ParityLayout::name() const {
    constexpr const char* kinds[] = {"", "_selective", "_uniform", "_block"};
    return cat("tp", mesh.tp, sequence_parallel ? "sp" : "", "_cp", mesh.cp,
               cp_comm == CpComm::all_gather ? "gathered" : "", "_dp", mesh.dp, distributed_optimizer ? "zero" : "",
               overlap ? "_overlapped" : "", gather_in_update ? "_in_update" : "", "_pp", mesh.pp,
               chunks > 1 ? cat("x", chunks) : "", kinds[static_cast<int>(recompute.kind)],
               deferral ? cat("_deferred", *deferral) : "");
}

void train_rank(const ParityTraining& training, const ParityLayout& layout, Comm& world, const Engine& engine,
                ParityRecord& record) {
    TERA_CHECK(training.micro_batches % layout.mesh.dp == 0, training.micro_batches, " micro-batches on ",
               layout.mesh.dp, " ranks");
    ParityRank(training, layout, world, engine, record).run();
}

void train_on_threads(const ParityTraining& training, const ParityLayout& layout, ParityRecord& record) {
    const Engine cpu;
    run_on_threads(layout.mesh.size(), [&](Comm& world) { train_rank(training, layout, world, cpu, record); });
}

}  // namespace tera
