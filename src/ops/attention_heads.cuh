// What our attention kernels share: sizes and masks, and where rows of heads lie.
#pragma once

#include "ops/attention_dropout.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {

struct Heads {
    std::int64_t B, Sq, Sk, H, G, K;
    double scale;
    bool causal;
    const std::int32_t* doc_start;
    AttentionDropout dropout;
    const std::int64_t* sample;

    __device__ std::int64_t first_key(std::int64_t b, std::int64_t q) const {
        return doc_start ? dropout.whole.key.before(doc_start[q * B + b]) : 0;
    }
    __device__ std::int64_t end_key(std::int64_t q) const { return causal ? q + (Sk - Sq) + 1 : Sk; }
    __device__ bool drops() const { return dropout.threshold > 0; }
    /// A probability's random number.
    __device__ std::uint32_t number(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
        return dropout.number(dropout.words(sample[b], dropout.first_call(h, q), dropout.four(dropout.whole.key.at(k))),
                              q, k);
    }
    /// Factor on the probability: 0 or 1/(1-p).
    __device__ double keep(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
        return number(b, h, q, k) < dropout.threshold ? 0.0 : dropout.factor();
    }
};

/// Rows of heads: element (s, b, h, k) at base[(s·B + b)·width + h·K + k].
template <class T>
struct Rows {
    T* base;
    std::int64_t width;
    __device__ T* at(const Heads& n, std::int64_t s, std::int64_t b, std::int64_t h) const {
        return base + (s * n.B + b) * width + h * n.K;
    }
};

inline Heads heads_of(const AttentionSpec& s) {
    return {s.B, s.Sq, s.Sk, s.H, s.G, s.K, s.scale, s.causal, s.doc_start, AttentionDropout(s), s.sample};
}

/// Whether two neighbours that begin at an even place can be written as one word.
inline bool takes_words(const HeadRows<Tensor>& r) { return r.offset % 2 == 0 && r.data.cols() % 2 == 0; }
inline bool take_words(const AttentionGrads& g) { return takes_words(g.dq) && takes_words(g.dk) && takes_words(g.dv); }

template <class T>
Rows<const device_t<T>> rows(const HeadRows<ConstTensor>& r) {
    return {dptr<T>(r.data) + r.offset, r.data.cols()};
}
template <class T>
Rows<device_t<T>> rows(const HeadRows<Tensor>& r) {
    return {dptr<T>(r.data) + r.offset, r.data.cols()};
}

}  // namespace tera::ops::cuda
