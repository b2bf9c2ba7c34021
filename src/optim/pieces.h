// Tensors cut into pieces of a fixed size. The cut depends on the tensors only, never on the number of threads, so sums
// taken piece by piece and in order are the same bits for 1 thread and for N.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/param.h"
#include "optim/main_weights.h"

namespace tera {

struct Piece {
    std::int64_t tensor;      ///< index in the list the pieces were cut from
    std::int64_t begin, end;  ///< elements of it
};

constexpr std::int64_t piece_elements = 65536;

std::vector<Piece> cut_into_pieces(const std::vector<SplitTensor>& tensors, std::int64_t elements = piece_elements);

/// Pieces of tensors in groups, one group after the other.
struct PieceGroups {
    std::vector<Piece> pieces;
    std::vector<std::int64_t> begins;  ///< of each group, and the end of the last
};
PieceGroups cut_into_pieces(const std::vector<SplitTensor>& tensors, const SliceGroups& groups,
                            std::int64_t elements = piece_elements);

}  // namespace tera
