#include "optim/pieces.h"

#include <algorithm>

namespace tera {

std::vector<Piece> cut_into_pieces(const std::vector<Param*>& params) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < params.size(); ++i) {
        const std::int64_t n = params[i]->value.numel();
        for (std::int64_t begin = 0; begin < n; begin += piece_elements) {
            pieces.push_back({static_cast<std::int64_t>(i), begin, std::min(n, begin + piece_elements)});
        }
    }
    return pieces;
}

}  // namespace tera
