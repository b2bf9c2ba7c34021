// What cuDNN wants to know of documents that are sequences of their own, and the log-sum-exp as it has them then.
#pragma once

#include <array>

#include "ops/attention.h"

namespace tera::ops::cuda {

/// Of the matrices whose rows documents are runs of.
struct RowWidths {
    static constexpr int most = 9;
    std::array<std::int64_t, most> width = {};
    int count = 0;

    int index_of(std::int64_t w) {
        for (int i = 0; i < count; ++i)
            if (width[static_cast<std::size_t>(i)] == w) return i;
        width[static_cast<std::size_t>(count)] = w;
        return count++;
    }
};

/// Writes lengths [n] and, for each of the widths, starts [widths, n + 1]: the element with which each document begins.
/// Of the n places those behind the list's have length 0.
void document_places(const Exec& exec, const AttentionSpec& spec, const RowWidths& widths, Tensor lengths,
                     Tensor starts);

/// [S,B,H] to [B,H,S] and back.
void lse_from_rows(const Exec& exec, Tensor lse, ConstTensor rows);
void lse_to_rows(const Exec& exec, Tensor rows, ConstTensor lse);

}  // namespace tera::ops::cuda
