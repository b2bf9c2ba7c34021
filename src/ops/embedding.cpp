#include "ops/embedding.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void embedding(const Exec& exec, Tensor x, ConstTensor word, ConstTensor position,
                             const std::int32_t* tokens, const std::int32_t* positions))
TERA_BACKENDS(void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices))

Tensor embedding(const Exec& exec, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
                 const std::int32_t* positions, std::int64_t T) {
    TERA_CHECK(!position || (position.cols() == word.cols() && positions), "position table ", position.shape);
    Tensor x = exec.tensor(word.dtype, {T, word.cols()});
    TERA_DISPATCH(exec, embedding(exec, x, word, position, tokens, positions));
    return x;
}

void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices) {
    TERA_CHECK(table_grad.cols() == dx.cols(), table_grad.shape, dx.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, embedding_backward(exec, table_grad, dx, indices));
}

}  // namespace tera::ops
