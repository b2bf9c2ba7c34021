// The tiles in which cuBLASLt's kernels for matrix units compute an output, and which of them suit its size. The
// library proposes a few; another may fill the last round of a GPU's multiprocessors better, or move less for each
// product.
#pragma once

#include <cstdint>
#include <vector>

namespace tera::ops::cuda {

struct GemmTile {
    std::uint32_t id;  ///< cublasLtMatmulTile_t
    int rows, cols;    ///< of the library's column-major output
};

/// All that are worth a trial for outputs of [rows, cols], what should be fastest first.
std::vector<GemmTile> gemm_tiles_for(std::int64_t rows, std::int64_t cols, int multiprocessors);

}  // namespace tera::ops::cuda
