#include "train/evaluate.h"

namespace tera {

LossSum evaluate(const Decoder& model, Workspace& workspace, const MicroBatchSource& next,
                 const EvaluationRequest& request) {
    LossSum sum;
    for (std::int64_t i = 1; i <= request.iterations; ++i) {
        if (request.progress) request.progress(i);
        for (std::int64_t m = 0; m < request.micro_batches; ++m) {
            Ctx ctx = workspace.ctx();
            const LossSum loss = model.evaluate(ctx, next());
            workspace.reset();
            sum.loss += loss.loss;
            sum.tokens += loss.tokens;
        }
    }
    return sum;
}

}  // namespace tera
