// cuBLASLt of the GPU in software: its descriptors, and what it knows of algorithms. There is one way to multiply; what
// it offers as algorithms are names for it, which give the same bits. What is not known here is refused.
#include <cublasLt.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <type_traits>

#include "soft_gpu/cublaslt_product.h"
#include "soft_gpu/guard.h"
#include "soft_gpu/memory.h"
#include "soft_gpu/recording.h"
#include "soft_gpu/streams.h"

struct cublasLtContext {};

namespace soft_gpu::blas {
namespace {

struct Operation {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    std::int32_t a_op = CUBLAS_OP_N, b_op = CUBLAS_OP_N;
    std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    std::int32_t bias_type = -1, multiprocessors = 0;  ///< -1: D's; 0: all
    const std::byte* bias = nullptr;
    std::byte* aux = nullptr;
    std::int64_t aux_ld = 0;

    bool adds_bias() const { return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
    bool has_gelu() const {
        return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    }
    bool knows_epilogue() const { return adds_bias() || has_gelu() || epilogue == CUBLASLT_EPILOGUE_DEFAULT; }
};

/// The least alignment of each matrix, in bytes.
struct Alignments {
    std::uint32_t a = 256, b = 256, c = 256, d = 256;
};

struct Preference {
    std::uint64_t workspace = 0;
    Alignments alignments;
};

struct Algorithm {
    static constexpr std::uint64_t mark_of_ours = 0x736f667447505521;
    std::uint64_t mark = mark_of_ours;
    std::int32_t id = 1;
    std::uint32_t tile = CUBLASLT_MATMUL_TILE_UNDEFINED;
    std::int32_t splits = 1;
    std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE, swizzling = 0, custom_option = 0, stages = 0;
    std::uint16_t inner_shape = 0, cluster_shape = 0;
    Alignments alignments;  ///< that were promised when it was asked for

    /// Few exist: whoever looks for the fastest tries them all, and here each takes its time.
    bool has_tile() const {
        return tile == CUBLASLT_MATMUL_TILE_128x128 || tile == CUBLASLT_MATMUL_TILE_128x64 ||
               tile == CUBLASLT_MATMUL_TILE_128x192;
    }
    bool runs() const {
        return mark == mark_of_ours && id == 1 && has_tile() && splits == 1 && reduction == 0 && swizzling <= 1 &&
               custom_option == 0 && stages < CUBLASLT_MATMUL_STAGES_END &&
               inner_shape < CUBLASLT_MATMUL_INNER_SHAPE_END && cluster_shape < CUBLASLT_CLUSTER_SHAPE_END;
    }
};
constexpr std::uint32_t proposed_tiles[] = {CUBLASLT_MATMUL_TILE_128x128, CUBLASLT_MATMUL_TILE_128x64};

/// Ours inside the library's opaque structs of plain words.
template <class Ours, class Opaque>
Ours load(const Opaque& opaque) {
    static_assert(sizeof(Ours) <= sizeof(Opaque) && std::is_trivially_copyable_v<Ours>);
    Ours ours;
    std::memcpy(static_cast<void*>(&ours), &opaque, sizeof ours);
    return ours;
}
template <class Ours, class Opaque>
void store(Opaque& opaque, const Ours& ours) {
    static_assert(sizeof(Ours) <= sizeof(Opaque) && std::is_trivially_copyable_v<Ours>);
    opaque = {};
    std::memcpy(&opaque, &ours, sizeof ours);
}
template <class Ours, class Opaque>
cublasStatus_t create(Opaque** made, const Ours& ours) {
    if (!made) return CUBLAS_STATUS_INVALID_VALUE;
    *made = new (std::nothrow) Opaque;
    if (!*made) return CUBLAS_STATUS_ALLOC_FAILED;
    store(**made, ours);
    return CUBLAS_STATUS_SUCCESS;
}

/// The value of an attribute, taken if it has the right size.
class Value {
  public:
    Value(const void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
    template <class T>
    cublasStatus_t into(T& to) const {
        if (!data_ || bytes_ != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
        std::memcpy(&to, data_, sizeof to);
        return CUBLAS_STATUS_SUCCESS;
    }

  private:
    const void* data_;
    std::size_t bytes_;
};

cublasStatus_t set(Operation& op, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return value.into(op.a_op);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return value.into(op.b_op);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return value.into(op.epilogue);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return value.into(op.bias);
        case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
            return value.into(op.bias_type);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
            return value.into(op.aux);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
            return value.into(op.aux_ld);
        case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
            return value.into(op.multiprocessors);
        default:
            return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t set(Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    switch (attribute) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
            return value.into(preference.workspace);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
            return value.into(preference.alignments.a);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
            return value.into(preference.alignments.b);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
            return value.into(preference.alignments.c);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
            return value.into(preference.alignments.d);
        default:
            return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/// Calls f with the part of an algorithm that the attribute names.
template <class F>
cublasStatus_t with_part(Algorithm& algo, cublasLtMatmulAlgoConfigAttributes_t attribute, const F& f) {
    switch (attribute) {
        case CUBLASLT_ALGO_CONFIG_ID:
            return f(algo.id);
        case CUBLASLT_ALGO_CONFIG_TILE_ID:
            return f(algo.tile);
        case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
            return f(algo.splits);
        case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
            return f(algo.reduction);
        case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING:
            return f(algo.swizzling);
        case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
            return f(algo.custom_option);
        case CUBLASLT_ALGO_CONFIG_STAGES_ID:
            return f(algo.stages);
        case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
            return f(algo.inner_shape);
        case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID:
            return f(algo.cluster_shape);
        default:
            return CUBLAS_STATUS_INVALID_VALUE;
    }
}

struct Problem {
    Operation op;
    Layout a, b, c, d;
};

struct Descriptors {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c, d;
};

std::optional<Problem> problem_of(const Descriptors& from) {
    if (!from.op || !from.a || !from.b || !from.c || !from.d) return {};
    return Problem{load<Operation>(*from.op), load<Layout>(*from.a), load<Layout>(*from.b), load<Layout>(*from.c),
                   load<Layout>(*from.d)};
}

/// Whether there is code for it: types, transposes, epilogue.
bool is_known(const Problem& p) {
    const Operation& op = p.op;
    const bool f64 = p.a.type == CUDA_R_64F, half = size_of(p.a.type) == 2;
    const auto is_known_op = [](std::int32_t o) { return o == CUBLAS_OP_N || o == CUBLAS_OP_T; };
    return op.compute == (f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) &&
           op.scale == (f64 ? CUDA_R_64F : CUDA_R_32F) && p.a.type == p.b.type && p.c.type == p.d.type &&
           has_product(p.a.type, p.d.type) && is_known_op(op.a_op) && is_known_op(op.b_op) && op.knows_epilogue() &&
           op.multiprocessors >= 0 &&
           (!op.adds_bias() || op.bias_type == -1 || op.bias_type == static_cast<std::int32_t>(p.d.type)) &&
           (!op.has_gelu() || (half && p.d.type == p.a.type && op.aux_ld % 8 == 0));
}

/// Whether the shapes belong together.
bool fits(const Problem& p) {
    const bool at = p.op.a_op == CUBLAS_OP_T, bt = p.op.b_op == CUBLAS_OP_T;
    return (at ? p.a.cols : p.a.rows) == p.d.rows && (bt ? p.b.rows : p.b.cols) == p.d.cols &&
           (at ? p.a.rows : p.a.cols) == (bt ? p.b.cols : p.b.rows) && p.c.rows == p.d.rows && p.c.cols == p.d.cols &&
           (!p.op.has_gelu() || p.op.aux_ld >= static_cast<std::int64_t>(p.d.rows));
}

cublasStatus_t check(const std::optional<Problem>& p) {
    if (!p) return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_known(*p)) return CUBLAS_STATUS_NOT_SUPPORTED;
    return fits(*p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

bool is_aligned(const void* data, std::size_t to) { return reinterpret_cast<std::uintptr_t>(data) % to == 0; }

/// What the caller promised when it asked for the algorithm, and that elements lie where their type wants them.
bool is_aligned(const Product& p, const Alignments& least) {
    const std::size_t in = size_of(p.a.layout.type), out = size_of(p.d.layout.type);
    const auto at_least = [](std::uint32_t promised, std::size_t size) {
        return std::max<std::size_t>(promised, size);
    };
    return is_aligned(p.a.data, at_least(least.a, in)) && is_aligned(p.b.data, at_least(least.b, in)) &&
           (p.beta == 0 || is_aligned(p.c.data, at_least(least.c, out))) &&
           is_aligned(p.d.data, at_least(least.d, out)) && is_aligned(p.bias, out) &&
           is_aligned(p.gelu_input.data, out);
}

double scale_of(const void* at, cudaDataType_t type) {
    if (type == CUDA_R_64F) return *static_cast<const double*>(at);
    return static_cast<double>(*static_cast<const float*>(at));
}

struct Room {
    void* data;
    std::size_t bytes;
};

/// Alone on the device, and no exception leaves it: those who call speak C.
cublasStatus_t run(const Product& p, Room workspace, cudaStream_t stream) {
    const cudaError_t error = Recording::give(stream, [=] {
        char who[96];
        std::snprintf(who, sizeof who, "cuBLASLt: product of m %zu n %zu k %zu", p.m(), p.n(), p.k());
        return guarded(who, [&] {
            if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
            const StreamOrder::Working here(queue_of(stream), "a product of cuBLASLt");
            multiply(p);
            if (workspace.bytes > 0)  // of no use here; another algorithm would write there
                Memory::get()
                    .must_find(workspace.data, workspace.bytes, "workspace")
                    .touch(workspace.data, workspace.bytes, true);
            return cudaSuccess;
        });
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/// The bytes are only read where the library's interface says const.
Matrix matrix(const void* data, const Layout& layout) {
    return {static_cast<std::byte*>(const_cast<void*>(data)), layout};
}

}  // namespace
}  // namespace soft_gpu::blas

using namespace soft_gpu::blas;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    *handle = new (std::nothrow) cublasLtContext;
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "success";
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return "the library was not initialized";
        case CUBLAS_STATUS_ALLOC_FAILED:
            return "the resource allocation failed";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "an invalid value was passed";
        case CUBLAS_STATUS_EXECUTION_FAILED:
            return "the product failed on the GPU in software";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "the GPU in software does not have this";
        default:
            return "unknown status";
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t cols, std::int64_t ld) {
    if (size_of(type) == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (rows == 0 || cols == 0 || ld < 0 || static_cast<std::uint64_t>(ld) < rows) return CUBLAS_STATUS_INVALID_VALUE;
    return create(made, Layout{type, rows, cols, static_cast<std::size_t>(ld)});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale) {
    return create(made, Operation{.compute = compute, .scale = scale});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t op) {
    delete op;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* data, std::size_t bytes) {
    if (!desc) return CUBLAS_STATUS_INVALID_VALUE;
    auto op = load<Operation>(*desc);
    const cublasStatus_t status = set(op, attribute, {data, bytes});
    store(*desc, op);
    return status;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) { return create(made, Preference{}); }

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* data,
                                                    std::size_t bytes) {
    if (!to) return CUBLAS_STATUS_INVALID_VALUE;
    auto preference = load<Preference>(*to);
    const cublasStatus_t status = set(preference, attribute, {data, bytes});
    store(*to, preference);
    return status;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!preference || wanted <= 0 || !found || !count) return CUBLAS_STATUS_INVALID_VALUE;
    *count = 0;
    if (const cublasStatus_t status = check(problem_of({op, a, b, c, d})); status != CUBLAS_STATUS_SUCCESS)
        return status;
    for (std::uint32_t tile : proposed_tiles) {
        if (*count == wanted) break;
        cublasLtMatmulHeuristicResult_t& result = found[(*count)++];
        result = {};
        store(result.algo, Algorithm{.tile = tile, .alignments = load<Preference>(*preference).alignments});
        result.state = CUBLAS_STATUS_SUCCESS;
        result.wavesCount = 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!algo || !result) return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check(problem_of({op, a, b, c, d}));
    if (status == CUBLAS_STATUS_SUCCESS && !load<Algorithm>(*algo).runs()) status = CUBLAS_STATUS_NOT_SUPPORTED;
    result->state = status;
    result->workspaceSize = 0;
    result->wavesCount = 1;
    return status;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* from,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* data,
                                                    std::size_t bytes, std::size_t* written) {
    if (!from || (bytes == 0 ? !written : !data)) return CUBLAS_STATUS_INVALID_VALUE;
    auto algo = load<Algorithm>(*from);
    return with_part(algo, attribute, [&](const auto& part) {
        if (bytes != 0 && bytes != sizeof part) return CUBLAS_STATUS_INVALID_VALUE;
        if (bytes != 0) std::memcpy(data, &part, sizeof part);
        if (written) *written = sizeof part;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* to,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, const void* data,
                                                    std::size_t bytes) {
    if (!to || attribute == CUBLASLT_ALGO_CONFIG_ID) return CUBLAS_STATUS_INVALID_VALUE;
    auto algo = load<Algorithm>(*to);
    const Value value(data, bytes);
    const cublasStatus_t status = with_part(algo, attribute, [&](auto& part) { return value.into(part); });
    store(*to, algo);
    return status;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op_desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_desc, const void* b, cublasLtMatrixLayout_t b_desc,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_desc, void* d,
                              cublasLtMatrixLayout_t d_desc, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    const std::optional<Problem> problem = problem_of({op_desc, a_desc, b_desc, c_desc, d_desc});
    if (const cublasStatus_t status = check(problem); status != CUBLAS_STATUS_SUCCESS) return status;
    const Operation& op = problem->op;
    if (!alpha || !a || !b || !beta || !d) return CUBLAS_STATUS_INVALID_VALUE;
    if ((op.adds_bias() && !op.bias) || (op.has_gelu() && !op.aux)) return CUBLAS_STATUS_INVALID_VALUE;
    Layout aux = problem->d;
    if (op.has_gelu()) aux.ld = static_cast<std::size_t>(op.aux_ld);
    const Product p{.a = matrix(a, problem->a),
                    .b = matrix(b, problem->b),
                    .c = matrix(c, problem->c),
                    .d = matrix(d, problem->d),
                    .a_transposed = op.a_op == CUBLAS_OP_T,
                    .b_transposed = op.b_op == CUBLAS_OP_T,
                    .alpha = scale_of(alpha, op.scale),
                    .beta = scale_of(beta, op.scale),
                    .bias = op.adds_bias() ? op.bias : nullptr,
                    .gelu_input = {op.has_gelu() ? op.aux : nullptr, aux}};
    if (p.beta != 0 && (!c || (c == d && problem->c.ld != problem->d.ld))) return CUBLAS_STATUS_INVALID_VALUE;
    const Algorithm chosen =
        algo ? load<Algorithm>(*algo) : Algorithm{.tile = proposed_tiles[0], .alignments = {1, 1, 1, 1}};
    if (!chosen.runs()) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!is_aligned(p, chosen.alignments)) return CUBLAS_STATUS_INVALID_VALUE;
    return run(p, {workspace, workspace_bytes}, stream);
}

}  // extern "C"
