#include "optim/pieces.h"

#include <algorithm>

namespace tera {

std::vector<Piece> cut_into_pieces(const std::vector<Tensor>& tensors, std::int64_t elements) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::int64_t n = tensors[i].numel();
        for (std::int64_t begin = 0; begin < n; begin += elements) {
            pieces.push_back({static_cast<std::int64_t>(i), begin, std::min(n, begin + elements)});
        }
    }
    return pieces;
}

}  // namespace tera
