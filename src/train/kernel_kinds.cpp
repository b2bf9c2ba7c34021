#include "train/kernel_kinds.h"

#include <algorithm>
#include <cctype>

namespace tera {
namespace {

// First match wins, so the particular stands before the general.
constexpr KernelRule own_rules[] = {
    {"cross_entropy", KernelKind::cross_entropy},
    {"masked_sum", KernelKind::cross_entropy},
    {"embedding", KernelKind::embedding},
    {"sum_runs", KernelKind::embedding},  // rows of the word embedding's gradient, sorted by token
    {"join_runs", KernelKind::embedding},
    {"count_digits", KernelKind::embedding},
    {"counts_to_places", KernelKind::embedding},
    {"move_elements", KernelKind::embedding},
    {"update", KernelKind::optimizer},
    {"measure", KernelKind::gradient_norm},
    {"ops::cuda::(anonymous namespace)::add_pieces", KernelKind::bias_gradient},
    {"add_pieces", KernelKind::gradient_norm},  // of the optimizer's own
    {"norm", KernelKind::norm},
    {"add_head_partials", KernelKind::norm},
    {"rope", KernelKind::rope},
    {"attention", KernelKind::attention},
    {"forward_kernel", KernelKind::attention},
    {"query_gradient", KernelKind::attention},
    {"key_gradient", KernelKind::attention},
    {"merge_kernel", KernelKind::attention},
    {"dropout", KernelKind::residual},
    {"sum_piece", KernelKind::bias_gradient},
    {"plain", KernelKind::activation},
    {"gated", KernelKind::activation},
    {"product_kernel", KernelKind::gemm},  // with SwiGLU in it
    {"activation", KernelKind::activation},
    {"convert", KernelKind::copy},
    {"add_kernel", KernelKind::copy},
    {"constant_kernel", KernelKind::copy},
};

// Attention first: its kernels are built from the same parts as matrix products and carry their names too.
constexpr KernelRule library_rules[] = {
    {"sdpa", KernelKind::attention},      {"flash", KernelKind::attention}, {"fmha", KernelKind::attention},
    {"attention", KernelKind::attention}, {"cudnn", KernelKind::attention}, {"softmax", KernelKind::attention},
    {"gemm", KernelKind::gemm},           {"cutlass", KernelKind::gemm},    {"nvjet", KernelKind::gemm},
    {"cublas", KernelKind::gemm},         {"splitk", KernelKind::gemm},     {"gemv", KernelKind::gemm},
    {"memcpy", KernelKind::copy},         {"memset", KernelKind::copy},
};

/// Where the template or argument list begins, leaving "(anonymous namespace)" alone.
std::size_t end_of_name(std::string_view name) {
    constexpr std::string_view anonymous = "(anonymous namespace)";
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name.substr(i, anonymous.size()) == anonymous)
            i += anonymous.size() - 1;
        else if (name[i] == '<' || name[i] == '(')
            return i;
    }
    return name.size();
}

std::string_view last_part(std::string_view qualified) {
    if (const auto colon = qualified.rfind("::"); colon != qualified.npos) qualified.remove_prefix(colon + 2);
    if (const auto space = qualified.rfind(' '); space != qualified.npos) qualified.remove_prefix(space + 1);
    return qualified;
}

const KernelRule* first_match(std::span<const KernelRule> rules, std::string_view name) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto at = std::find_if(rules.begin(), rules.end(),
                                 [&](const KernelRule& rule) { return lower.find(rule.part) != lower.npos; });
    return at == rules.end() ? nullptr : &*at;
}

/// Past the matching '>' of a template list that begins at `open`.
std::size_t after_templates(std::string_view name, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < name.size(); ++i) {
        if (name[i] == '<') ++depth;
        if (name[i] == '>' && --depth == 0) return i + 1;
    }
    return name.size();
}

}  // namespace

const char* name_of(KernelKind kind) {
    constexpr const char* names[kernel_kinds] = {
        "GEMM",          "attention", "norm",      "activation",    "residual", "rope", "bias gradient",
        "cross entropy", "embedding", "optimizer", "gradient norm", "copies",   "other"};
    return names[static_cast<std::size_t>(kind)];
}

std::span<const KernelRule> own_kernel_rules() { return own_rules; }

const KernelRule* rule_of_kernel(std::string_view name) {
    const std::string_view qualified = name.substr(0, end_of_name(name));
    if (qualified.find("tera::") != qualified.npos) return first_match(own_rules, qualified);
    return first_match(library_rules, name);
}

KernelKind kind_of_kernel(std::string_view name) {
    const KernelRule* rule = rule_of_kernel(name);
    return rule == nullptr ? KernelKind::other : rule->kind;
}

std::string short_kernel_name(std::string_view name, std::size_t most) {
    const std::size_t end = end_of_name(name);
    std::string out(last_part(name.substr(0, end)));
    if (end < name.size() && name[end] == '<') out += name.substr(end, after_templates(name, end) - end);
    for (const std::string_view noise : {"tera::", "(anonymous namespace)::", "ops::cuda::"}) {
        for (auto at = out.find(noise); at != out.npos; at = out.find(noise)) out.erase(at, noise.size());
    }
    if (out.size() > most) out = out.substr(0, most - 3) + "...";
    return out;
}

}  // namespace tera
