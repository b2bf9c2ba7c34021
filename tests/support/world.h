// A single rank to run ops and layers on: three arenas, a pool of threads, and random tensors.
#pragma once

#include <random>
#include <vector>

#include "core/exec.h"

namespace tera::test {

struct World {
    Arena keep_arena, temp_arena, redo_arena, store;
    ThreadPool pool;
    Ctx ctx;

    explicit World(int threads = 2)
        : pool(threads),
          ctx{{Device::cpu, &keep_arena, &pool}, {Device::cpu, &temp_arena, &pool}, {Device::cpu, &redo_arena, &pool}} {
    }

    void reset() {
        keep_arena.reset();
        temp_arena.reset();
        redo_arena.reset();
    }

    std::mt19937_64 engine{12345};

    /// A tensor of uniform values in [-scale, scale], kept until the World goes.
    Tensor random(DType dtype, Shape shape, double scale = 1) {
        Tensor t = store.tensor(dtype, shape);
        fill_random(t, scale);
        return t;
    }
    Tensor zeros(DType dtype, Shape shape) { return store.zeros(dtype, shape); }
    void fill_random(Tensor t, double scale = 1) {
        std::uniform_real_distribution<double> uniform(-scale, scale);
        dispatch_float(t.dtype, [&](auto zero) {
            using T = decltype(zero);
            for (std::int64_t i = 0; i < t.numel(); ++i)
                t.ptr<T>()[i] = static_cast<T>(static_cast<acc_t<T>>(uniform(engine)));
        });
    }
    std::vector<std::int32_t> random_ints(std::int64_t n, std::int32_t below) {
        std::uniform_int_distribution<std::int32_t> uniform(0, below - 1);
        std::vector<std::int32_t> v(static_cast<std::size_t>(n));
        for (auto& x : v) x = uniform(engine);
        return v;
    }
};

/// Any float tensor as doubles.
inline std::vector<double> values(ConstTensor t) {
    std::vector<double> v(static_cast<std::size_t>(t.numel()));
    dispatch_float(t.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(static_cast<acc_t<T>>(t.ptr<T>()[i]));
    });
    return v;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double s = 0;
    for (std::size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
    return s;
}

/// Σ (a-b)² / Σ b².
inline double nmse(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return size > 0 ? difference / size : difference;
}

/// Largest |a-b| relative to the largest |b|.
inline double worst(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        difference = std::max(difference, std::abs(a[i] - b[i]));
        size = std::max(size, std::abs(b[i]));
    }
    return size > 0 ? difference / size : difference;
}

inline bool same_bits(ConstTensor a, ConstTensor b) {
    return a.dtype == b.dtype && a.shape == b.shape && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

}  // namespace tera::test
