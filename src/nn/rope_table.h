// RopeCache: cosines and sines of the rotary angles, grown to as many positions as have been asked for.
//   f_i = base^(-2i/r), i < r/2, r = percent·K;  angle = (position / interpolation) f_i
// Llama 3 scaling, with wavelength λ = 2π/f: λ > L0/low -> f/factor; λ < L0/high -> f; between them the two are blended
// by s = (L0/λ - low)/(high - low):  f ((1-s)/factor + s).
#pragma once

#include <vector>

#include "nn/model_config.h"
#include "ops/rope.h"

namespace tera {

/// The r/2 frequencies, scaling applied; rounded to float when single is set, as the models are trained with.
std::vector<double> rope_frequencies(const RopeConfig& config, std::int64_t head_dim, bool single);

class RopeCache {
  public:
    RopeCache(const RopeConfig& config, std::int64_t head_dim) : config_(config), head_dim_(head_dim) {}

    /// A table of at least `positions` rows in `dtype` (f32 or f64).
    const ops::RopeTable& table(DType dtype, std::int64_t positions);

  private:
    template <class A>
    void build(std::int64_t positions, std::vector<A>& memory);

    RopeConfig config_;
    std::int64_t head_dim_;
    ops::RopeTable table_;
    std::vector<float> single_;
    std::vector<double> double_;
};

}  // namespace tera
