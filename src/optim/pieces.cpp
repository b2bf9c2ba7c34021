#include "optim/pieces.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

std::vector<Piece> cut_into_pieces(const std::vector<SplitTensor>& tensors, std::int64_t elements) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::int64_t n = tensors[i].numel();
        for (std::int64_t begin = 0; begin < n; begin += elements) {
            pieces.push_back({static_cast<std::int64_t>(i), begin, std::min(n, begin + elements)});
        }
    }
    return pieces;
}

PieceGroups cut_into_pieces(const std::vector<SplitTensor>& tensors, const SliceGroups& groups, std::int64_t elements) {
    PieceGroups cut{cut_into_pieces(tensors, elements), {0}};
    const auto group_of = [&](const Piece& p) {
        return groups.of.empty() ? 0 : groups.of[static_cast<std::size_t>(p.tensor)];
    };
    std::stable_sort(cut.pieces.begin(), cut.pieces.end(),
                     [&](const Piece& a, const Piece& b) { return group_of(a) < group_of(b); });
    std::size_t at = 0;
    for (int g = 0; g < groups.count; ++g) {
        while (at < cut.pieces.size() && group_of(cut.pieces[at]) == g) ++at;
        cut.begins.push_back(static_cast<std::int64_t>(at));
    }
    TERA_CHECK(at == cut.pieces.size(), "slices in groups that are not there");
    return cut;
}

}  // namespace tera
