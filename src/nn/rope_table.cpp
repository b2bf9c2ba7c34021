#include "nn/rope_table.h"

#include <cmath>
#include <numbers>

#include "core/transfer.h"

namespace tera {

std::vector<double> rope_frequencies(const RopeConfig& c, std::int64_t head_dim, bool single) {
    auto rounded = [&](double x) { return single ? static_cast<double>(static_cast<float>(x)) : x; };
    auto r = static_cast<std::int64_t>(static_cast<double>(head_dim) * c.percent);
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < r / 2; ++i) {
        double f = rounded(1.0 / rounded(std::pow(c.base, static_cast<double>(2 * i) / static_cast<double>(r))));
        if (c.scaling) {
            auto length = static_cast<double>(c.original_max_positions);
            double wavelength = 2 * std::numbers::pi / f;
            if (wavelength > length / c.low_freq_factor) {
                f /= c.scaling_factor;
            } else if (wavelength >= length / c.high_freq_factor) {
                double s = (length / wavelength - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
                f *= (1 - s) / c.scaling_factor + s;
            }
        }
        frequencies.push_back(rounded(f));
    }
    return frequencies;
}

template <class A>
void RopeCache::build(const Exec& exec, std::int64_t positions) {
    constexpr bool single = std::is_same_v<A, float>;
    memory_ = std::make_unique<Arena>(exec.arena->kind(), exec.arena->source());
    std::vector<double> f = rope_frequencies(config_, head_dim_, single);
    Shape shape{positions, static_cast<std::int64_t>(f.size())};
    memory_->reserve(2 * (static_cast<std::size_t>(shape.numel()) * sizeof(A) + Arena::alignment));
    table_ = {memory_->tensor(dtype_of<A>, shape), memory_->tensor(dtype_of<A>, shape), config_.interleaved};
    if (exec.counts()) return;
    std::vector<A> cos, sin;
    for (std::int64_t p = 0; p < positions; ++p)
        for (double frequency : f) {
            double angle = static_cast<double>(p) / config_.interpolation * frequency;
            if (single) angle = static_cast<float>(angle);
            cos.push_back(static_cast<A>(std::cos(angle)));
            sin.push_back(static_cast<A>(std::sin(angle)));
        }
    copy_from_host(exec, table_.cos, cos.data());
    copy_from_host(exec, table_.sin, sin.data());
}

const ops::RopeTable& RopeCache::table(const Exec& exec, DType dtype, std::int64_t positions) {
    if (!table_.cos || table_.cos.dtype != dtype || table_.cos.device != exec.device || table_.cos.rows() < positions) {
        if (dtype == DType::f64)
            build<double>(exec, positions);
        else
            build<float>(exec, positions);
    }
    return table_;
}

}  // namespace tera
