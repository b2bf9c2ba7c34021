// The instruction sets we know of: X(compiler macro, name for __builtin_cpu_supports, name to print).
// In the order in which processors got them, so that the last missing one is the most telling.
#pragma once

#include <cstdint>

namespace tera {
/// Bit i is set when the compiler was allowed to use the i-th of TERA_X86_FEATURES. A constant, so that it can be read
/// before any other code of the program has run.
extern const uint32_t cpu_features_built_for;
}  // namespace tera

#define TERA_X86_FEATURES(X)                                      \
    X(__SSE3__, "sse3", "sse3")                                   \
    X(__SSSE3__, "ssse3", "ssse3")                                \
    X(__SSE4_1__, "sse4.1", "sse4_1")                             \
    X(__SSE4_2__, "sse4.2", "sse4_2")                             \
    X(__POPCNT__, "popcnt", "popcnt")                             \
    X(__AVX__, "avx", "avx")                                      \
    X(__AVX2__, "avx2", "avx2")                                   \
    X(__FMA__, "fma", "fma")                                      \
    X(__BMI__, "bmi", "bmi1")                                     \
    X(__BMI2__, "bmi2", "bmi2")                                   \
    X(__AVX512F__, "avx512f", "avx512f")                          \
    X(__AVX512CD__, "avx512cd", "avx512cd")                       \
    X(__AVX512DQ__, "avx512dq", "avx512dq")                       \
    X(__AVX512BW__, "avx512bw", "avx512bw")                       \
    X(__AVX512VL__, "avx512vl", "avx512vl")                       \
    X(__AVX512IFMA__, "avx512ifma", "avx512ifma")                 \
    X(__AVX512VBMI__, "avx512vbmi", "avx512vbmi")                 \
    X(__AVX512VBMI2__, "avx512vbmi2", "avx512_vbmi2")             \
    X(__AVX512VNNI__, "avx512vnni", "avx512_vnni")                \
    X(__AVX512BITALG__, "avx512bitalg", "avx512_bitalg")          \
    X(__AVX512VPOPCNTDQ__, "avx512vpopcntdq", "avx512_vpopcntdq") \
    X(__AVX512BF16__, "avx512bf16", "avx512_bf16")
