// Matrix products on the GPU through cuBLASLt. Ours are row-major, cuBLAS's column-major, so C = A B is handed over as
// Cᵀ = Bᵀ Aᵀ. The plan for a shape is looked up once per process.
#include <map>
#include <tuple>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"

namespace tera::ops::cuda {
namespace {

struct Operand {
    const std::byte* data;
    DType dtype;
    std::int64_t stride;
    bool transposed;
};

struct Output {
    std::byte* data;
    DType dtype;
    std::int64_t stride;
    bool accumulate;
    const std::byte* bias;
};

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

using Key =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int, int>;

struct Plan {
    cublasLtMatmulDesc_t op = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algo;
    ~Plan() {
        if (op) cublasLtMatmulDescDestroy(op);
        for (auto layout : {a, b, c})
            if (layout) cublasLtMatrixLayoutDestroy(layout);
    }
};
using Plans = std::map<Key, Plan>;

void make_plan(Gpu& gpu, Plan& plan, std::int64_t M, std::int64_t N, std::int64_t K, const Operand& a, const Operand& b,
               const Output& c) {
    bool f64 = a.dtype == DType::f64;
    TERA_CUBLAS(cublasLtMatmulDescCreate(&plan.op, f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                         f64 ? CUDA_R_64F : CUDA_R_32F));
    cublasOperation_t first = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      second = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    TERA_CUBLAS(cublasLtMatmulDescSetAttribute(plan.op, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    TERA_CUBLAS(cublasLtMatmulDescSetAttribute(plan.op, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    if (c.bias) {
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        TERA_CUBLAS(cublasLtMatmulDescSetAttribute(plan.op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
        cudaDataType_t type = type_of(c.dtype);
        TERA_CUBLAS(cublasLtMatmulDescSetAttribute(plan.op, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    }
    auto layout = [](cublasLtMatrixLayout_t& out, DType t, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
        TERA_CUBLAS(cublasLtMatrixLayoutCreate(&out, type_of(t), static_cast<std::uint64_t>(rows),
                                               static_cast<std::uint64_t>(cols), ld));
    };
    layout(plan.a, b.dtype, b.transposed ? K : N, b.transposed ? N : K, b.stride);
    layout(plan.b, a.dtype, a.transposed ? M : K, a.transposed ? K : M, a.stride);
    layout(plan.c, c.dtype, N, M, c.stride);
    cublasLtMatmulPreference_t preference;
    TERA_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    std::size_t workspace = Gpu::workspace_bytes;
    TERA_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                     sizeof workspace));
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(gpu.blas, plan.op, plan.a, plan.b, plan.c, plan.c,
                                                           preference, 1, &result, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0)
        throw Error(cat("cuBLASLt has no algorithm for [", M, ",", K, "] x [", K, ",", N, "] in ", name_of(a.dtype),
                        ": ", cublasLtGetStatusString(status)));
    plan.algo = result.algo;
}

/// C [M,N] = A [M,K] B [K,N] (+ C) (+ bias over N).
void gemm(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, const Operand& a, const Operand& b,
          const Output& c) {
    if (M == 0 || N == 0) return;
    Gpu& gpu = *exec.gpu;
    if (!gpu.gemm_plans) gpu.gemm_plans = std::make_shared<Plans>();
    Plans& plans = *static_cast<Plans*>(gpu.gemm_plans.get());
    Key key{M,
            N,
            K,
            a.stride,
            b.stride,
            c.stride,
            static_cast<int>(a.dtype) * 16 + static_cast<int>(c.dtype),
            a.transposed * 2 + b.transposed,
            c.accumulate * 2 + (c.bias != nullptr)};
    auto [at, fresh] = plans.try_emplace(key);
    if (fresh) make_plan(gpu, at->second, M, N, K, a, b, c);
    Plan& plan = at->second;
    if (c.bias) {
        const void* bias = c.bias;
        TERA_CUBLAS(cublasLtMatmulDescSetAttribute(plan.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    }
    float one = 1, beta = c.accumulate ? 1.0f : 0.0f;
    double one64 = 1, beta64 = beta;
    bool f64 = a.dtype == DType::f64;
    TERA_CUBLAS(cublasLtMatmul(gpu.blas, plan.op, f64 ? static_cast<void*>(&one64) : &one, b.data, plan.a, a.data,
                               plan.b, f64 ? static_cast<void*>(&beta64) : &beta, c.data, plan.c, c.data, plan.c,
                               &plan.algo, gpu.workspace, Gpu::workspace_bytes, gpu.stream));
}

}  // namespace

void linear(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias) {
    gemm(exec, x.rows(), w.shape[0], w.shape[1], {x.data, x.dtype, x.cols(), false}, {w.data, w.dtype, w.cols(), true},
         {y.data, y.dtype, y.cols(), false, bias.data});
}

void linear_dgrad(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w) {
    gemm(exec, dy.rows(), w.shape[1], w.shape[0], {dy.data, dy.dtype, dy.cols(), false},
         {w.data, w.dtype, w.cols(), false}, {dx.data, dx.dtype, dx.cols(), false, nullptr});
}

void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x) {
    gemm(exec, dw.shape[0], dw.shape[1], x.rows(), {dy.data, dy.dtype, dy.cols(), true},
         {x.data, x.dtype, x.cols(), false}, {dw.data, dw.dtype, dw.cols(), true, nullptr});
}

}  // namespace tera::ops::cuda
