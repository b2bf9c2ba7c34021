// Matrix products on the GPU through cuBLASLt. Ours are row-major, cuBLAS's column-major, so C = A B is handed over as
// Cᵀ = Bᵀ Aᵀ. The plan for a shape is made once per process: for large products the library's best candidates are timed
// when the shape is met first, unless always the same bits are asked for (Gpu::deterministic), when its first is taken.
#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/cublaslt_algo.h"
#include "core/cuda/gpu.h"
#include "core/cuda/time_in_turns.h"
#include "ops/column_sum.h"
#include "ops/gemm_tiles.h"
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
    int multiprocessors;
    auto operator<=>(const Key&) const = default;
};

/// The largest power of two up to 16 that divides every address.
std::uint32_t alignment_of(const Product& p) {
    auto all = reinterpret_cast<std::uintptr_t>(p.a.data) | reinterpret_cast<std::uintptr_t>(p.b.data) |
               reinterpret_cast<std::uintptr_t>(p.out.data) | reinterpret_cast<std::uintptr_t>(p.out.addend) | 16;
    return static_cast<std::uint32_t>(all & ~(all - 1));
}

Key key_of(const Gpu& gpu, const Product& p) {
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
            alignment_of(p),
            gpu.product_multiprocessors};
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

void describe(const Gpu& gpu, Plan& plan, const Product& p) {
    TERA_CUBLAS(cublasLtMatmulDescCreate(&plan.op, p.f64() ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                         p.f64() ? CUDA_R_64F : CUDA_R_32F));
    plan.set(CUBLASLT_MATMUL_DESC_TRANSA, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    plan.set(CUBLASLT_MATMUL_DESC_TRANSB, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.out.epilogue);
    if (gpu.product_multiprocessors > 0)
        plan.set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{gpu.product_multiprocessors});
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

/// The algorithm in another tile, in an order of tiles that shares what neighbours read; nothing if it has none such.
std::optional<cublasLtMatmulHeuristicResult_t> with_tile(Gpu& gpu, const Plan& plan, cublasLtMatmulAlgo_t algo,
                                                         std::uint32_t tile) {
    cublasLtMatmulHeuristicResult_t checked{};
    set_config(algo, CUBLASLT_ALGO_CONFIG_TILE_ID, tile);
    set_config(algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, std::uint32_t{1});
    if (cublasLtMatmulAlgoCheck(gpu.blas, plan.op, plan.a, plan.b, plan.c, plan.c, &algo, &checked) !=
            CUBLAS_STATUS_SUCCESS ||
        checked.state != CUBLAS_STATUS_SUCCESS || checked.workspaceSize > Gpu::workspace_bytes)
        return {};
    checked.algo = algo;
    return checked;
}

/// Adds each kind of kernel among the candidates in some tiles that suit the output.
void add_tiles(Candidates& found, Gpu& gpu, const Plan& plan, const Product& p) {
    constexpr int of_a_kind = 4;
    const std::vector<GemmTile> tiles =
        gemm_tiles_for(p.N, p.M, gpu.product_multiprocessors > 0 ? gpu.product_multiprocessors : gpu.multiprocessors);
    std::set<std::pair<int, std::uint32_t>> kinds;
    for (const cublasLtMatmulHeuristicResult_t& c : Candidates(found)) {
        const auto kind = std::pair{config_of<int>(c.algo, CUBLASLT_ALGO_CONFIG_ID),
                                    config_of<std::uint32_t>(c.algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)};
        if (!kinds.insert(kind).second) continue;
        int added = 0;
        for (const GemmTile& tile : tiles) {
            if (added == of_a_kind) break;
            if (const auto other = with_tile(gpu, plan, c.algo, tile.id)) found.push_back(*other), ++added;
        }
    }
}

void leave_out_what_is_there_twice(Candidates& found) {
    Candidates once;
    for (const cublasLtMatmulHeuristicResult_t& c : found) {
        const bool known = std::any_of(once.begin(), once.end(), [&](const cublasLtMatmulHeuristicResult_t& o) {
            return std::equal(std::begin(o.algo.data), std::end(o.algo.data), std::begin(c.algo.data));
        });
        if (!known) once.push_back(c);
    }
    found = std::move(once);
}

double flops_of(const Product& p) {
    return 2 * static_cast<double>(p.M) * static_cast<double>(p.N) * static_cast<double>(p.K);
}

/// The plan takes the fastest of the candidates: all of them run once, small ones more often, and the best of these
/// several times.
void take_fastest(Gpu& gpu, Plan& plan, const Product& p, Candidates found, std::byte* to) {
    const auto times_of = [&](std::size_t rounds) {
        return time_in_turns(found.size(), rounds, gpu.stream, [&](std::size_t i) {
            return multiply(gpu, plan, p, found[i].algo, to) == CUBLAS_STATUS_SUCCESS;
        });
    };
    constexpr std::size_t finalists = 5;
    constexpr double small = 3e11;
    const std::vector<float> once = times_of(flops_of(p) < small ? 3 : 1);
    std::vector<float> sorted = once;
    std::erase_if(sorted, [](float ms) { return ms < 0; });
    std::sort(sorted.begin(), sorted.end());
    const float limit = sorted.empty() ? 0 : sorted[std::min(finalists, sorted.size()) - 1];
    Candidates best;
    for (std::size_t i = 0; i < found.size(); ++i)
        if (once[i] >= 0 && once[i] <= limit) best.push_back(found[i]);
    found = std::move(best);
    constexpr float clearly = 0.99f;  // a tie goes to what the library thinks best
    const std::vector<float> times = times_of(4);
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i] < 0 || (plan.ms >= 0 && times[i] >= plan.ms * clearly)) continue;
        plan.ms = times[i];
        plan.algo = found[i].algo;
    }
}

/// Memory for trials: the output is about to be overwritten anyway; one that is added to must stay as it is.
class TrialOutput {
  public:
    explicit TrialOutput(const Product& p) : data_(p.out.data) {
        if (!p.accumulates()) return;
        const std::size_t bytes = static_cast<std::size_t>(p.M * p.out.stride) * size_of(p.out.dtype);
        if (cudaMalloc(&own_, bytes) != cudaSuccess) cudaGetLastError();
        data_ = static_cast<std::byte*>(own_);
    }
    ~TrialOutput() { cudaFree(own_); }
    TrialOutput(const TrialOutput&) = delete;
    TrialOutput& operator=(const TrialOutput&) = delete;
    std::byte* data() const { return data_; }  ///< null: there is none

  private:
    std::byte* data_;
    void* own_ = nullptr;
};

/// A product that is added to its output takes the algorithm that was found for one that overwrites it, if there is
/// one: no trials, and no memory for them.
bool like_overwriting(Gpu& gpu, Plan& plan, const Product& p) {
    Product overwriting = p;
    overwriting.out.addend = nullptr;
    const Plans& plans = *static_cast<Plans*>(gpu.gemm_plans.get());
    const auto at = plans.find(key_of(gpu, overwriting));
    if (at == plans.end() || !at->second.supported) return false;
    plan.supported = true;
    plan.algo = at->second.algo;
    plan.ms = at->second.ms;
    return true;
}

// Below this a product takes less than the launch of the next kernel, and shapes of generated text keep changing.
constexpr double worth_timing = 2e9;  // operations

/// The plan for this product; made if there is none yet. A plan may say that the library cannot do it.
Plan& plan_for(Gpu& gpu, const Product& p) {
    if (!gpu.gemm_plans) gpu.gemm_plans = std::make_shared<Plans>();
    auto [at, fresh] = static_cast<Plans*>(gpu.gemm_plans.get())->try_emplace(key_of(gpu, p));
    Plan& plan = at->second;
    if (!fresh) return plan;
    describe(gpu, plan, p);
    if (p.accumulates() && like_overwriting(gpu, plan, p)) return plan;
    const bool search = !gpu.deterministic && flops_of(p) >= worth_timing;
    constexpr int many = 8;  // the library has no more
    Candidates found;
    add_candidates(found, gpu, plan, p, search ? many : 1, Gpu::workspace_bytes);
    plan.supported = !found.empty();
    if (!plan.supported) return plan;
    plan.algo = found[0].algo;
    if (!search) return plan;
    // With memory it prefers kernels that share out their work by a counter, which must be zeroed before each product.
    add_candidates(found, gpu, plan, p, many, 0);
    if (size_of(p.a.dtype) == 2) add_tiles(found, gpu, plan, p);
    leave_out_what_is_there_twice(found);
    if (const TrialOutput trial(p); trial.data()) take_fastest(gpu, plan, p, std::move(found), trial.data());
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
