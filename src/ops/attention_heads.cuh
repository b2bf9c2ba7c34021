// What our attention kernels share: sizes and masks, and where rows of heads lie.
#pragma once

#include "ops/attention.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {

struct Heads {
    std::int64_t B, Sq, Sk, H, G, K;
    double scale;
    bool causal;
    const std::int32_t* doc_start;
    double dropout;
    std::uint32_t threshold;
    DropoutSite site;
    const std::int64_t* sample;
    AttentionSpec::Whole whole;

    __device__ std::int64_t first_key(std::int64_t b, std::int64_t q) const {
        return doc_start ? whole.key.before(doc_start[q * B + b]) : 0;
    }
    __device__ std::int64_t end_key(std::int64_t q) const { return causal ? q + (Sk - Sq) + 1 : Sk; }
    /// The generator's calls for a row of probabilities are numbered from here, one for each four keys of the whole.
    __device__ std::uint64_t first_call(std::int64_t h, std::int64_t q) const {
        const std::int64_t keys = whole.length ? whole.length : Sk, queries = whole.length ? whole.length : Sq;
        return static_cast<std::uint64_t>((whole.head + h) * queries + whole.query.at(q)) *
               static_cast<std::uint64_t>((keys + 3) / 4);
    }
    /// Factor on the probability: 0 or 1/(1-p).
    __device__ double keep(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
        const std::int64_t key = whole.key.at(k);
        const U32x4 words = dropout_words(site, sample[b], first_call(h, q) + static_cast<std::uint64_t>(key / 4));
        return words.v[key % 4] < threshold ? 0.0 : 1.0 / (1.0 - dropout);
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
    return {s.B,
            s.Sq,
            s.Sk,
            s.H,
            s.G,
            s.K,
            s.scale,
            s.causal,
            s.doc_start,
            s.dropout,
            dropout_threshold(s.dropout),
            s.site,
            s.sample,
            s.whole};
}

template <class T>
Rows<const device_t<T>> rows(const HeadRows<ConstTensor>& r) {
    return {dptr<T>(r.data) + r.offset, r.data.cols()};
}
template <class T>
Rows<device_t<T>> rows(const HeadRows<Tensor>& r) {
    return {dptr<T>(r.data) + r.offset, r.data.cols()};
}

}  // namespace tera::ops::cuda
