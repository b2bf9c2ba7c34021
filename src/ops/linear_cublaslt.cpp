// Matrix products on the GPU through cuBLASLt. Ours are row-major, cuBLAS's column-major, so C = A B is handed over as
// Cᵀ = Bᵀ Aᵀ. The plan for a shape is made once per process: for large products the library's best candidates are timed
// when the shape is met first, unless always the same bits are asked for (Gpu::deterministic), when its first is taken.
#include <compare>
#include <map>
#include <optional>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/cuda/time_in_turns.h"
#include "ops/column_sum.h"
#include "ops/linear_backends.h"

namespace tera::ops::cuda {
namespace {

struct Operand {
    const std::byte* data;
    DType dtype;
    std::int64_t stride;
    bool transposed;
};

/// Output [M,N] = product + addend, then the epilogue.
struct Output {
    std::byte* data;
    DType dtype;
    std::int64_t stride;
    const std::byte* addend = nullptr;  ///< like the output, or the output itself: it is added to
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const std::byte* bias = nullptr;  ///< [N]
    const std::byte* aux = nullptr;   ///< like the output: receives the input of GELU
};

struct Product {
    std::int64_t M, N, K;
    Operand a, b;
    Output out;

    bool f64() const { return a.dtype == DType::f64; }
    bool accumulates() const { return out.addend == out.data; }
};

/// What a plan depends on.
struct Key {
    std::int64_t M, N, K, a_stride, b_stride, out_stride;
    DType in, out;
    bool a_transposed, b_transposed, adds;
    int epilogue;
    std::uint32_t alignment;
    auto operator<=>(const Key&) const = default;
};

/// The largest power of two up to 16 that divides every address.
std::uint32_t alignment_of(const Product& p) {
    auto all = reinterpret_cast<std::uintptr_t>(p.a.data) | reinterpret_cast<std::uintptr_t>(p.b.data) |
               reinterpret_cast<std::uintptr_t>(p.out.data) | reinterpret_cast<std::uintptr_t>(p.out.addend) | 16;
    return static_cast<std::uint32_t>(all & ~(all - 1));
}

Key key_of(const Product& p) {
    return {p.M,
            p.N,
            p.K,
            p.a.stride,
            p.b.stride,
            p.out.stride,
            p.a.dtype,
            p.out.dtype,
            p.a.transposed,
            p.b.transposed,
            p.out.addend != nullptr,
            static_cast<int>(p.out.epilogue),
            alignment_of(p)};
}

cudaDataType_t type_of(DType t) {
    switch (t) {
        case DType::f64:
            return CUDA_R_64F;
        case DType::f32:
            return CUDA_R_32F;
        case DType::bf16:
            return CUDA_R_16BF;
        case DType::f16:
            return CUDA_R_16F;
        default:
            throw Error(cat("no matrix product in ", name_of(t)));
    }
}

struct Plan {
    cublasLtMatmulDesc_t op = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algo{};
    bool supported = false;
    float ms = -1;               ///< of one product; < 0: not timed
    std::optional<bool> pays{};  ///< of a product that does more: whether that is faster than doing it apart

    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() {
        if (op) cublasLtMatmulDescDestroy(op);
        for (auto layout : {a, b, c})
            if (layout) cublasLtMatrixLayoutDestroy(layout);
    }
    template <class T>
    void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
        TERA_CUBLAS(cublasLtMatmulDescSetAttribute(op, attribute, &value, sizeof value));
    }
};
using Plans = std::map<Key, Plan>;

void describe(Plan& plan, const Product& p) {
    TERA_CUBLAS(cublasLtMatmulDescCreate(&plan.op, p.f64() ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                         p.f64() ? CUDA_R_64F : CUDA_R_32F));
    plan.set(CUBLASLT_MATMUL_DESC_TRANSA, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    plan.set(CUBLASLT_MATMUL_DESC_TRANSB, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.out.epilogue);
    if (p.out.bias) plan.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.out.dtype));
    if (p.out.aux) plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.out.stride);
    auto layout = [](cublasLtMatrixLayout_t& made, DType t, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
        TERA_CUBLAS(cublasLtMatrixLayoutCreate(&made, type_of(t), static_cast<std::uint64_t>(rows),
                                               static_cast<std::uint64_t>(cols), ld));
    };
    layout(plan.a, p.b.dtype, p.b.transposed ? p.K : p.N, p.b.transposed ? p.N : p.K, p.b.stride);
    layout(plan.b, p.a.dtype, p.a.transposed ? p.M : p.K, p.a.transposed ? p.K : p.M, p.a.stride);
    layout(plan.c, p.out.dtype, p.N, p.M, p.out.stride);
}

using Candidates = std::vector<cublasLtMatmulHeuristicResult_t>;

/// Adds the library's candidates for this product, what it thinks best first, to those there are.
void add_candidates(Candidates& found, Gpu& gpu, const Plan& plan, const Product& p, int wanted,
                    std::size_t workspace) {
    cublasLtMatmulPreference_t preference;
    TERA_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
        TERA_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    for (auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        prefer(attribute, alignment_of(p));
    int count = 0;
    const std::size_t before = found.size();
    found.resize(before + static_cast<std::size_t>(wanted));
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(gpu.blas, plan.op, plan.a, plan.b, plan.c, plan.c,
                                                                 preference, wanted, &found[before], &count);
    cublasLtMatmulPreferenceDestroy(preference);
    found.resize(before + static_cast<std::size_t>(status == CUBLAS_STATUS_SUCCESS ? count : 0));
}

cublasStatus_t multiply(Gpu& gpu, Plan& plan, const Product& p, const cublasLtMatmulAlgo_t& algo, std::byte* to) {
    if (p.out.bias) plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.out.bias);
    if (p.out.aux) plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.out.aux);
    const float one = 1, beta = p.out.addend ? 1.0f : 0.0f;
    const double one64 = 1, beta64 = beta;
    const void* addend = p.out.addend ? p.out.addend : to;
    return cublasLtMatmul(gpu.blas, plan.op, p.f64() ? static_cast<const void*>(&one64) : &one, p.b.data, plan.a,
                          p.a.data, plan.b, p.f64() ? static_cast<const void*>(&beta64) : &beta, addend, plan.c, to,
                          plan.c, &algo, gpu.workspace, Gpu::workspace_bytes, gpu.stream);
}

/// Takes the fastest candidate. The output is about to be overwritten anyway, so it serves as scratch memory; one that
/// is added to must stay as it is, and the trials go to memory of their own, or are left out if there is none.
void take_fastest(Gpu& gpu, Plan& plan, const Product& p, const Candidates& found) {
    std::byte* to = p.out.data;
    void* scratch = nullptr;
    if (p.accumulates()) {
        std::size_t bytes = static_cast<std::size_t>(p.M * p.out.stride) * size_of(p.out.dtype);
        if (cudaMalloc(&scratch, bytes) != cudaSuccess) {
            cudaGetLastError();
            return;
        }
        to = static_cast<std::byte*>(scratch);
    }
    constexpr float clearly = 0.99f;  // a tie goes to what the library thinks best
    const std::vector<float> times = time_in_turns(found.size(), gpu.stream, [&](std::size_t i) {
        return multiply(gpu, plan, p, found[i].algo, to) == CUBLAS_STATUS_SUCCESS;
    });
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i] < 0 || (plan.ms >= 0 && times[i] >= plan.ms * clearly)) continue;
        plan.ms = times[i];
        plan.algo = found[i].algo;
    }
    if (scratch) cudaFree(scratch);
}

// Below this a product takes less than the launch of the next kernel, and shapes of generated text keep changing.
constexpr double worth_timing = 1e9;  // multiplications

/// The plan for this product; made if there is none yet. A plan may say that the library cannot do it.
Plan& plan_for(Gpu& gpu, const Product& p) {
    if (!gpu.gemm_plans) gpu.gemm_plans = std::make_shared<Plans>();
    auto [at, fresh] = static_cast<Plans*>(gpu.gemm_plans.get())->try_emplace(key_of(p));
    Plan& plan = at->second;
    if (!fresh) return plan;
    describe(plan, p);
    bool search = !gpu.deterministic &&
                  static_cast<double>(p.M) * static_cast<double>(p.N) * static_cast<double>(p.K) >= worth_timing;
    constexpr int many = 8;  // the library has no more
    Candidates found;
    add_candidates(found, gpu, plan, p, search ? many : 1, Gpu::workspace_bytes);
    plan.supported = !found.empty();
    if (!plan.supported) return plan;
    plan.algo = found[0].algo;
    if (!search) return plan;
    // With memory it prefers kernels that share out their work by a counter, which must be zeroed before each product.
    add_candidates(found, gpu, plan, p, many, 0);
    take_fastest(gpu, plan, p, found);
    return plan;
}

void run(const Exec& exec, Plan& plan, const Product& p) {
    TERA_CUBLAS(multiply(*exec.gpu, plan, p, plan.algo, p.out.data));
}

/// A dry run passes over it: all scratch memory is the library's workspace.
void gemm(const Exec& exec, const Product& p) {
    if (p.M == 0 || p.N == 0 || exec.counts()) return;
    Plan& plan = plan_for(*exec.gpu, p);
    if (!plan.supported)
        throw Error(
            cat("cuBLASLt has no algorithm for [", p.M, ",", p.K, "] x [", p.K, ",", p.N, "] in ", name_of(p.a.dtype)));
    run(exec, plan, p);
}

/// Runs a product that does more than `plain`, unless the library cannot or its kernels for that are so much slower
/// that moving `bytes` once more in a pass of its own is faster: then false.
bool fused_gemm(const Exec& exec, const Product& p, const Product& plain, std::size_t bytes) {
    constexpr double bytes_per_ms = 3.5e9, launch_ms = 0.004;
    if (p.M == 0 || p.N == 0) return false;
    Plan& plan = plan_for(*exec.gpu, p);
    if (!plan.pays) {
        float apart = plan.supported && plan.ms >= 0 ? plan_for(*exec.gpu, plain).ms : -1;
        plan.pays =
            plan.supported && (apart < 0 || plan.ms <= apart + launch_ms + static_cast<double>(bytes) / bytes_per_ms);
    }
    if (*plan.pays) run(exec, plan, p);
    return *plan.pays;
}

Operand operand(const ConstTensor& t, bool transposed) { return {t.data, t.dtype, t.cols(), transposed}; }
Output output(const Tensor& t) { return {t.data, t.dtype, t.cols()}; }

/// x Wᵀ and dy W.
Product forward_product(Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias) {
    Product p{x.rows(), w.shape[0], w.shape[1], operand(x, false), operand(w, true), output(y)};
    p.out.bias = bias.data;
    if (bias) p.out.epilogue = CUBLASLT_EPILOGUE_BIAS;
    return p;
}
Product dgrad_product(Tensor dx, ConstTensor dy, ConstTensor w) {
    return {dy.rows(), w.shape[1], w.shape[0], operand(dy, false), operand(w, false), output(dx)};
}

bool is_half(DType t) { return t == DType::bf16 || t == DType::f16; }

/// Epilogues with GELU exist for half precision, and want rows of whole sixteen bytes.
bool has_gelu_epilogue(ActivationKind kind, ConstTensor h, ConstTensor w) {
    return kind == ActivationKind::gelu_tanh && is_half(h.dtype) && h.cols() % 8 == 0 && w.cols() % 8 == 0;
}

}  // namespace

void linear(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias) {
    gemm(exec, forward_product(y, x, w, bias));
}

void linear_residual(const Exec& exec, Tensor out, ConstTensor x, ConstTensor w, ConstTensor bias,
                     const Residual& residual) {
    Product p = forward_product(out, x, w, bias);
    if (residual.dropout.p == 0) {
        p.out.addend = residual.x.data;
        return gemm(exec, p);
    }
    linear(exec, out, x, w, {});
    if (!exec.counts()) dropout_add(exec, out, residual.x, out, bias, residual.dropout);
}

void linear_activation(const Exec& exec, ActivationKind kind, Tensor a, Tensor h, ConstTensor x, ConstTensor w,
                       ConstTensor bias) {
    if (exec.counts()) return;
    if (has_gelu_epilogue(kind, h, w)) {
        Product plain = forward_product(a, x, w, bias), p = plain;
        p.out.epilogue = bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        p.out.aux = h.data;
        if (fused_gemm(exec, p, plain, 2 * h.bytes())) return;
    }
    linear(exec, h, x, w, bias);
    activation(exec, kind, a, h);
}

void linear_dgrad(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w) { gemm(exec, dgrad_product(dx, dy, w)); }

void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x, Tensor db, Before before) {
    Product p{dw.shape[0], dw.shape[1], x.rows(), operand(dy, true), operand(x, false), output(dw)};
    if (before == Before::sum) p.out.addend = dw.data;
    if (!exec.counts()) gemm(exec, p);
    if (db) column_sum(exec, db, dy);
}

}  // namespace tera::ops::cuda
