#include "ops/vocab_cross_entropy.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void vocab_max(const Exec& exec, Tensor top, ConstTensor logits))
TERA_BACKENDS(void vocab_sums(const Exec& exec, const VocabStats& stats, ConstTensor logits, LocalLabels labels))
TERA_BACKENDS(void vocab_cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const VocabStats& stats,
                                       LocalLabels labels, LossWeight weight))

void vocab_max(const Exec& exec, Tensor top, ConstTensor logits) {
    TERA_CHECK(top.numel() == logits.rows() && top.dtype == acc_dtype(logits.dtype), top.shape, logits.shape);
    TERA_DISPATCH(exec, vocab_max(exec, top, logits));
}

void vocab_sums(const Exec& exec, const VocabStats& stats, ConstTensor logits, LocalLabels labels) {
    TERA_CHECK(stats.sums.numel() == 2 * logits.rows() && stats.sums.dtype == stats.top.dtype, stats.sums.shape,
               logits.shape);
    TERA_DISPATCH(exec, vocab_sums(exec, stats, logits, labels));
}

void vocab_cross_entropy(const Exec& exec, Tensor loss, Tensor logits, const VocabStats& stats, LocalLabels labels,
                         LossWeight weight) {
    TERA_CHECK(loss.numel() == logits.rows() && loss.dtype == stats.sums.dtype, loss.shape, logits.shape);
    TERA_DISPATCH(exec, vocab_cross_entropy(exec, loss, logits, stats, labels, weight));
}

}  // namespace tera::ops
