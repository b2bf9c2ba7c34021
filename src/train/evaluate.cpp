#include "train/evaluate.h"

namespace tera {

LossSum evaluate(const Decoder& model, Workspace& workspace, BatchUpload& upload, const MicroBatchSource& next,
                 const EvaluationRequest& request) {
    Arena arena(Arena::Kind::real, workspace.engine().memory());
    const Exec exec = workspace.engine().exec(arena, workspace.pool());
    const Tensor sums = loss_sums(exec);
    for (std::int64_t i = 1; i <= request.iterations; ++i) {
        if (request.progress) request.progress(i);
        for (std::int64_t m = 0; m < request.micro_batches; ++m) {
            Ctx ctx = workspace.ctx();
            model.evaluate(ctx, upload.put(next()), sums);
            workspace.reset();
        }
    }
    return read_loss(exec, sums);
}

}  // namespace tera
