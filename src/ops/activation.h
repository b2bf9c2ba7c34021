// MLP activations, h [T,F] -> [T,F]; gated ones h = [gate, up] [T,2F] -> [T,F].
//   gelu_tanh     x σ(2u), u = sqrt(2/π)(x + 0.044715 x³)     (= x (1 + tanh u) / 2)
//   gelu_erf      x Φ(x)
//   squared_relu  max(x,0)²
//   swiglu        g σ(g) up          geglu  gelu_tanh(g) up
#pragma once

#include "core/exec.h"

namespace tera::ops {

enum class ActivationKind : std::uint8_t { gelu_tanh, gelu_erf, squared_relu, swiglu, geglu };

inline bool is_gated(ActivationKind kind) { return kind == ActivationKind::swiglu || kind == ActivationKind::geglu; }

Tensor activation(const Exec& exec, ActivationKind kind, ConstTensor h);
/// Gradient by h, given that of the output; db [columns of h] += Σ_t dh_t, if it is there.
Tensor activation_backward(const Exec& exec, ActivationKind kind, ConstTensor da, ConstTensor h, Tensor db = {});
/// The same, and in the same pass over memory the output itself once more, written over da: it need not be kept.
Tensor activation_backward_again(const Exec& exec, ActivationKind kind, Tensor da_then_a, ConstTensor h, Tensor db);

}  // namespace tera::ops
