#include "ops/embedding.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void embedding(const Exec& exec, Tensor x, ConstTensor word, ConstTensor position,
                             const std::int32_t* tokens, const std::int32_t* positions))
TERA_BACKENDS(void embedding_part(const Exec& exec, Tensor x, ConstTensor table, TableRows rows,
                                  const std::int32_t* tokens))
TERA_BACKENDS(void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices,
                                      TableRows rows))

namespace {

TableRows known(TableRows rows, std::int64_t here) {
    if (rows.total == 0) rows.total = here;
    TERA_CHECK(rows.first >= 0 && rows.first + here <= rows.total, "rows from ", rows.first, " of ", rows.total);
    return rows;
}

}  // namespace

Tensor embedding(const Exec& exec, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
                 const std::int32_t* positions, std::int64_t T) {
    TERA_CHECK(!position || (position.cols() == word.cols() && positions), "position table ", position.shape);
    Tensor x = exec.tensor(word.dtype, {T, word.cols()});
    TERA_DISPATCH(exec, embedding(exec, x, word, position, tokens, positions));
    return x;
}

Tensor embedding_part(const Exec& exec, ConstTensor table, TableRows rows, const std::int32_t* tokens, std::int64_t T) {
    Tensor x = exec.tensor(table.dtype, {T, table.cols()});
    TERA_DISPATCH(exec, embedding_part(exec, x, table, known(rows, table.rows()), tokens));
    return x;
}

void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices,
                        TableRows rows) {
    TERA_CHECK(table_grad.cols() == dx.cols(), table_grad.shape, dx.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, embedding_backward(exec, table_grad, dx, indices, known(rows, table_grad.rows())));
}

}  // namespace tera::ops
