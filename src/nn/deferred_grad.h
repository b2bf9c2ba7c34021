// DeferredGrad: products of a weight's gradient that are put off until nothing waits for the rank that computes them.
// The last stage of a pipeline has nothing to do while the others finish a step; the gradient of the output matrix, its
// largest product, can wait until then.
#pragma once

#include <vector>

#include "nn/param.h"

namespace tera {

class DeferredGrad {
  public:
    /// limit: of how many micro-batches of a step they are put off, at most; 0: of all.
    explicit DeferredGrad(std::int64_t limit) : limit_(limit) {}

    /// False: the products of this micro-batch are not put off.
    bool begin_micro_batch() {
        if (limit_ > 0 && put_off_ >= limit_) return false;
        ++put_off_;
        return true;
    }
    /// Both must live until finish().
    void add(ConstTensor dy, ConstTensor x) { products_.push_back({dy, x}); }
    /// weight.grad += Σ dyᵀ x in the order in which they came; all of it is forgotten.
    void finish(const Exec& exec, Param& weight);

  private:
    struct Product {
        ConstTensor dy, x;
    };
    std::int64_t limit_, put_off_ = 0;
    std::vector<Product> products_;
};

}  // namespace tera
