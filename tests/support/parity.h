// Expects a layout to train as one rank does (train/parity.h).
#pragma once

#include <gtest/gtest.h>

#include "support/models.h"
#include "train/parity.h"

namespace tera::test {

using Layout = ParityLayout;
using Training = ParityTraining;

inline void expect_same(const WholeTensors& got, const WholeTensors& wanted, const char* what, double bound) {
    for (const auto& [name, difference] : got.differing())
        ADD_FAILURE() << what << " of " << name << " differ between ranks by " << difference;
    ASSERT_EQ(got.all().size(), wanted.all().size()) << what;
    for (const auto& [name, tensor] : wanted.all()) {
        const auto found = got.all().find(name);
        ASSERT_NE(found, got.all().end()) << what << " of " << name;
        ASSERT_EQ(found->second.size(), tensor.size());
        EXPECT_LE(largest_difference(found->second, tensor), bound) << what << " of " << name;
    }
}

/// Compares everything.
inline void expect_same_training(const Training& training, const ParityRecord& many, const ParityRecord& one,
                                 double bound = 1e-12) {
    EXPECT_TRUE(many.agreed) << "ranks have seen different losses or norms";
    expect_same(many.grads, one.grads, "gradients", bound);
    expect_same(many.weights, one.weights, "weights", bound);
    ASSERT_EQ(many.steps.size(), one.steps.size());
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
        EXPECT_NEAR(many.steps[i].mean_loss(), one.steps[i].mean_loss(), bound * one.steps[i].mean_loss());
        EXPECT_EQ(many.steps[i].loss.tokens, one.steps[i].loss.tokens);
        EXPECT_NEAR(*many.steps[i].grad_norm, *one.steps[i].grad_norm, bound * *one.steps[i].grad_norm);
        // The gradient by the bias of the keys is zero but for rounding, which may or may not hit it exactly.
        if (!training.model.qkv_bias) {
            EXPECT_EQ(*many.steps[i].grad_zeros, *one.steps[i].grad_zeros);
        }
    }
    EXPECT_NEAR(many.evaluation.loss, one.evaluation.loss, bound * one.evaluation.loss);
}

/// Trains on the layout and on one rank.
inline void expect_parity(const Training& training, const Layout& layout) {
    ParityRecord one, many;
    train_on_threads(training, {}, one);
    train_on_threads(training, layout, many);
    expect_same_training(training, many, one);
}

}  // namespace tera::test
