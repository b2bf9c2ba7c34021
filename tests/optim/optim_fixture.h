// Parameters over plain vectors, and the golden arrays of tests/golden/optim.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "nn/param.h"
#include "optim/optimizer.h"

namespace tera {

/// A list of 1-D parameters with memory of their own.
class ParamSet {
  public:
    Param& add(const std::string& name, std::int64_t n, DType value, DType grad, bool weight_decay = true) {
        params_.push_back(std::make_unique<Param>(Param{name, Shape{n}, ShardSpec{}, AxisSet{}, weight_decay, Init{}}));
        params_.back()->value = arena_.zeros(value, Shape{n});
        params_.back()->grad = arena_.zeros(grad, Shape{n});
        return *params_.back();
    }
    std::vector<Param*> list() const {
        std::vector<Param*> out;
        for (auto& p : params_) out.push_back(p.get());
        return out;
    }
    Arena& arena() { return arena_; }

  private:
    Arena arena_;
    std::vector<std::unique_ptr<Param>> params_;
};

inline void fill(const Tensor& t, const std::vector<double>& values) {
    ASSERT_EQ(static_cast<std::size_t>(t.numel()), values.size());
    dispatch_float(t.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (std::size_t i = 0; i < values.size(); ++i) t.ptr<T>()[i] = static_cast<T>(values[i]);
    });
}

inline std::vector<double> values_of(const SplitTensor& given) {
    std::vector<double> out(static_cast<std::size_t>(given.numel()));
    if (given.is_split()) {
        const Halves halves(given);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = halves.get(static_cast<std::int64_t>(i));
        return out;
    }
    const Tensor& t = given.tensor;
    dispatch_float(t.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = static_cast<double>(static_cast<acc_t<T>>(t.ptr<T>()[i]));
        }
    });
    return out;
}

inline bool same_bits(const SplitTensor& a, const SplitTensor& b) {
    const auto same = [](const Tensor& s, const Tensor& t) {
        return s.bytes() == t.bytes() && (s.data == t.data || std::memcmp(s.data, t.data, s.bytes()) == 0);
    };
    return a.is_split() == b.is_split() && same(a.tensor, b.tensor) && (!a.is_split() || same(a.rest, b.rest));
}

inline const std::map<std::string, std::vector<double>>& golden_updates() {
    static const auto arrays = [] {
        std::map<std::string, std::vector<double>> all;
        std::ifstream in(TERA_SOURCE_DIR "/tests/golden/optim/updates.txt");
        std::string line;
        while (std::getline(in, line)) {
            std::istringstream words(line);
            std::string name;
            std::size_t count = 0;
            words >> name >> count;
            std::vector<double> values(count);
            for (double& v : values) words >> v;
            if (words) all[name] = values;
        }
        return all;
    }();
    return arrays;
}

/// A step without looking at the gradients first.
inline void take_step(Optimizer& optimizer, const Exec& exec, const StepArgs& args) {
    optimizer.step(exec, args);
    EXPECT_FALSE(optimizer.finish(exec).skipped);
}

/// One thread pool for all tests of the program.
inline ThreadPool& test_pool() {
    static ThreadPool pool(3);
    return pool;
}

}  // namespace tera
