// What a GPU kernel is for, told by its name, and a name short enough for a line.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tera {

enum class KernelKind : std::uint8_t {
    gemm,
    attention,
    norm,
    activation,
    residual,
    rope,
    bias_gradient,
    cross_entropy,
    embedding,
    optimizer,
    gradient_norm,
    copy,
    other
};
inline constexpr std::size_t kernel_kinds = static_cast<std::size_t>(KernelKind::other) + 1;

/// "GEMM", "attention", "cross entropy", ...
const char* name_of(KernelKind kind);

/// name: demangled. Our own kernels (namespace tera) go by the table of their names, libraries' by what vendors call
/// theirs.
KernelKind kind_of_kernel(std::string_view name);

/// Kernels whose name, in lower case, has `part` in it.
struct KernelRule {
    const char* part;
    KernelKind kind;
};
/// The one that decides; nullptr: none does.
const KernelRule* rule_of_kernel(std::string_view name);
std::span<const KernelRule> own_kernel_rules();

/// Without return type, arguments and namespaces; cut to `most` characters.
///   void tera::ops::cuda::(anonymous namespace)::norm_kernel<float, 8>(float*, long)   ->   norm_kernel<float, 8>
std::string short_kernel_name(std::string_view name, std::size_t most = 72);

}  // namespace tera
