// What an algorithm of cuBLASLt is made of: its kind of kernel, tile, order of tiles.
#pragma once

#include <cublasLt.h>

namespace tera {

template <class T>
T config_of(const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t attribute) {
    T value{};
    std::size_t written = 0;
    (void)cublasLtMatmulAlgoConfigGetAttribute(&algo, attribute, &value, sizeof value, &written);
    return value;
}

/// Whether the library can do it shows when the algorithm is checked.
template <class T>
void set_config(cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t attribute, T value) {
    (void)cublasLtMatmulAlgoConfigSetAttribute(&algo, attribute, &value, sizeof value);
}

}  // namespace tera
