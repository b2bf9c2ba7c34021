// What cuDNN wants to know of documents that are sequences of their own, and the log-sum-exp as it has them then.
#pragma once

#include <array>

#include "ops/attention.h"

namespace tera::ops::cuda {

/// The matrices whose rows documents are runs of: how wide they are, and whether rows of a sample are neighbours or
/// those of a position.
struct RowKinds {
    struct Kind {
        std::int64_t width = 0;
        bool by_sample = false;
        bool operator==(const Kind&) const = default;
    };
    static constexpr int most = 9;
    std::array<Kind, most> kind = {};
    int count = 0;

    int index_of(Kind k) {
        for (int i = 0; i < count; ++i)
            if (kind[static_cast<std::size_t>(i)] == k) return i;
        kind[static_cast<std::size_t>(count)] = k;
        return count++;
    }
};

/// Writes lengths [n] and, for each of the kinds, starts [kinds, n + 1]: the element with which each document begins.
/// Of the n places those behind the list's have length 0.
void document_places(const Exec& exec, const AttentionSpec& spec, const RowKinds& kinds, Tensor lengths, Tensor starts);

/// Columns of `out`, rows s·B + b, from x, rows b·S + s, of 16-bit elements in eights.
void put_rows_of_samples(const Exec& exec, HeadRows<Tensor> out, ConstTensor x, std::int64_t S);

/// [S,B,H] to [B,H,S] and back.
void lse_from_rows(const Exec& exec, Tensor lse, ConstTensor rows);
void lse_to_rows(const Exec& exec, Tensor rows, ConstTensor lse);

}  // namespace tera::ops::cuda
