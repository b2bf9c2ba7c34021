// DocumentList: the documents of packed samples as a list, for attention that takes each as a sequence of its own.
#pragma once

#include <cstdint>
#include <vector>

namespace tera::ops {

/// Each is rows first, first + B, first + 2 B ... of [S,B].
struct DocumentList {
    std::int64_t count = 0, longest = 0;  ///< count 0: there is none, go by where each token's document begins
    const std::int32_t* rows = nullptr;   ///< [count,2]: first, and how many; where attention runs
};

/// Beyond so many in a micro-batch there is no list: sequences of some tens of tokens are better taken together.
constexpr std::int64_t most_documents(std::int64_t S, std::int64_t B) { return B * (S / 64 > 16 ? S / 64 : 16); }

/// From doc_start [S,B], the position at which each token's document begins; the list's rows are in `rows`. There is
/// none of too many, nor where a token's document does not begin at or after the one of the token before it.
DocumentList list_documents(const std::int32_t* doc_start, std::int64_t S, std::int64_t B,
                            std::vector<std::int32_t>& rows);

}  // namespace tera::ops
