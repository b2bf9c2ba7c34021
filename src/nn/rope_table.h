// RopeCache: cosines and sines of the rotary angles, grown to as many positions as have been asked for.
//   f_i = base^(-2i/r), i < r/2, r = percent·K;  angle = (position / interpolation) f_i
// Llama 3 scaling, with wavelength λ = 2π/f: λ > L0/low -> f/factor; λ < L0/high -> f; between them the two are blended
// by s = (L0/λ - low)/(high - low):  f ((1-s)/factor + s).
#pragma once

#include <memory>
#include <vector>

#include "nn/model_config.h"
#include "ops/rope.h"

namespace tera {

/// The r/2 frequencies, scaling applied; rounded to float when single is set, as the models are trained with.
std::vector<double> rope_frequencies(const RopeConfig& config, std::int64_t head_dim, bool single);

class RopeCache {
  public:
    RopeCache(const RopeConfig& config, std::int64_t head_dim) : config_(config), head_dim_(head_dim) {}

    /// A table of at least `positions` rows in `dtype` (f32 or f64), on exec's device.
    const ops::RopeTable& table(const Exec& exec, DType dtype, std::int64_t positions);

    /// Bytes the table takes.
    std::size_t bytes() const { return memory_ ? memory_->used() : 0; }

  private:
    template <class A>
    void build(const Exec& exec, std::int64_t positions);

    RopeConfig config_;
    std::int64_t head_dim_;
    ops::RopeTable table_;
    std::unique_ptr<Arena> memory_;
};

}  // namespace tera
