#include "train/evaluate.h"

namespace tera {

LossSum evaluate(Pipeline& pipeline, const MicroBatchSource& next, const EvaluationRequest& request) {
    Workspace& workspace = pipeline.workspace();
    Arena arena(Arena::Kind::real, workspace.engine().memory());
    const Exec exec = workspace.engine().exec(arena, workspace.pool());
    const Tensor sums = loss_sums(exec);
    for (std::int64_t i = 1; i <= request.iterations; ++i) {
        if (request.progress) request.progress(i);
        pipeline.evaluate({next, request.micro_batches, sums});
    }
    pipeline.share(exec, sums);
    return read_loss(exec, sums);
}

}  // namespace tera
