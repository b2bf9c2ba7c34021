// The parameters and optimizer tensors of a model without the model: every tensor of ModelConfig, filled with numbers
// that follow from its name.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "model/hf_names.h"
#include "train/checkpoint.h"
#include "train/host_rows.h"

namespace tera {

class FakeModel {
  public:
    /// seed 0 leaves everything zero.
    FakeModel(const ModelConfig& config, DType dtype, std::uint64_t seed) : config_(config) {
        ModelConfig padded = config;
        padded.true_vocab = config.vocab;
        for (const HfTensor& t : hf_tensors(padded, HfArchitecture::teratron)) {
            owned_.push_back(std::make_unique<Param>(Param{.name = t.name,
                                                           .full_shape = t.shape,
                                                           .shard = {},
                                                           .sum_grad_over = {},
                                                           .weight_decay = false,
                                                           .init = {}}));
            Param& p = *owned_.back();
            p.value = arena_.zeros(dtype, t.shape);
            if (dtype == DType::bf16) {
                const SplitTensor master(p.value, arena_.zeros(DType::u16, t.shape));
                const Tensor numbers = arena_.zeros(DType::f32, t.shape);
                if (seed != 0) fill(numbers, t.name, seed);
                for (std::int64_t i = 0; seed != 0 && i < numbers.numel(); ++i)
                    Halves(master).set(i, with_ties(numbers.ptr<float>()[i], i));
                state_.push_back({p.name, "master", master});
            } else if (seed != 0) {
                fill(p.value, t.name, seed);
            }
            for (const char* kind : {"exp_avg", "exp_avg_sq"}) {
                state_.push_back({p.name, kind, arena_.zeros(DType::f32, t.shape)});
                if (seed != 0) fill(state_.back().tensor.tensor, p.name + kind, seed);
            }
        }
    }

    const ModelConfig& config() const { return config_; }
    std::vector<Param*> params() const {
        std::vector<Param*> list;
        for (const auto& p : owned_) list.push_back(p.get());
        return list;
    }
    std::vector<OptimizerTensor> optimizer() const { return state_; }
    const Param& param(const std::string& name) const {
        for (const auto& p : owned_) {
            if (p->name == name) return *p;
        }
        throw Error("no parameter " + name);
    }
    /// A copy of it, whole.
    Tensor state(const std::string& name, const std::string& kind) const {
        for (const OptimizerTensor& t : state_) {
            if (t.param != name || t.kind != kind) continue;
            const Exec exec{Device::cpu, &arena_, nullptr};
            const HostView view(exec, t.tensor);
            const Tensor copy = arena_.tensor(view.tensor().dtype, t.tensor.shape());
            std::memcpy(copy.data, view.tensor().data, copy.bytes());
            return copy;
        }
        throw Error("no " + kind + " of " + name);
    }
    LoadTarget target() const { return {config_, params(), state_}; }

    /// Name of the first tensor whose bytes differ, or "".
    std::string first_difference(const FakeModel& other, bool with_optimizer = true) const {
        for (std::size_t i = 0; i < owned_.size(); ++i) {
            if (differ(owned_[i]->value, other.owned_[i]->value)) return owned_[i]->name;
        }
        for (std::size_t i = 0; with_optimizer && i < state_.size(); ++i) {
            const SplitTensor &a = state_[i].tensor, &b = other.state_[i].tensor;
            if (a.is_split() != b.is_split() || differ(a.tensor, b.tensor) || (a.is_split() && differ(a.rest, b.rest)))
                return state_[i].param + " " + state_[i].kind;
        }
        return "";
    }

  private:
    static bool differ(const Tensor& a, const Tensor& b) {
        return a.dtype != b.dtype || a.shape != b.shape || std::memcmp(a.data, b.data, a.bytes()) != 0;
    }
    static void fill(Tensor t, const std::string& name, std::uint64_t seed) {
        for (std::int64_t i = 0; i < t.numel(); ++i) {
            const float x = normals(weight_words(seed, hash_name(name), static_cast<std::uint64_t>(i))).v[0] * 0.2f;
            if (t.dtype == DType::f64) {
                t.ptr<double>()[i] = x / 3.0;
            } else {
                t.ptr<float>()[i] = x;
            }
        }
    }
    /// Some main weights lie halfway between two values.
    static float with_ties(float x, std::int64_t i) {
        if (i % 7 != 0) return x;
        return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) & 0xffff0000u) | 0x8000u);
    }

    ModelConfig config_;
    mutable Arena arena_;
    std::vector<std::unique_ptr<Param>> owned_;
    std::vector<OptimizerTensor> state_;
};

}  // namespace tera
