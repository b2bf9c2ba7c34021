// Embedding: word table plus learned positions, then dropout.
#pragma once

#include <optional>

#include "nn/attention.h"
#include "nn/param.h"
#include "ops/embedding.h"
#include "ops/residual.h"

namespace tera {

class Embedding {
  public:
    Embedding(const ModelConfig& config, const TpRegion& tp);

    template <class F>
    void visit(F&& f) {
        f(word);
        if (position) f(*position);
    }

    /// x [T,D], or this rank's rows of it, in ctx.keep.
    Tensor forward(Ctx& ctx, const BlockInput& in, const std::int32_t* tokens) const;
    void backward(const Exec& exec, const BlockInput& in, const std::int32_t* tokens, ConstTensor dx);

    Param word;
    std::optional<Param> position;

  private:
    ops::Dropout dropout(const BlockInput& in) const;
    Tensor lookup(Ctx& ctx, const BlockInput& in, const std::int32_t* tokens) const;
    ops::TableRows rows() const;
    TpRegion tp_;
    double p_;
};

}  // namespace tera
