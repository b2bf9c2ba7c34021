// Embedding: word table plus learned positions, then dropout.
#pragma once

#include <optional>

#include "nn/attention.h"
#include "nn/param.h"
#include "ops/residual.h"

namespace tera {

class Embedding {
  public:
    explicit Embedding(const ModelConfig& config);

    template <class F>
    void visit(F&& f) {
        f(word);
        if (position) f(*position);
    }

    /// x [T,D] in exec.
    Tensor forward(const Exec& exec, const BlockInput& in, const std::int32_t* tokens) const;
    void backward(const Exec& exec, const BlockInput& in, const std::int32_t* tokens, ConstTensor dx);

    Param word;
    std::optional<Param> position;

  private:
    ops::Dropout dropout(const BlockInput& in) const;
    double p_;
};

}  // namespace tera
