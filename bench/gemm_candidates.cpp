// Which of cuBLASLt's kernels is the fastest for the products of a layer, in a short trial and under the GPU's power
// limit: what the search of ops/linear_cublaslt.cpp would take, against all that the library can be configured to.
//
//   gemm_candidates [--ms N] ROWS OUT IN [ROWS OUT IN ...]
//
// For each triple the products of a bf16 linear layer: forward x·Wᵀ, dgrad dy·W, wgrad W' += dyᵀ·x in fp32. Tried are
// the library's own proposals, and each of their kinds of kernel in all tiles of ops/gemm_tiles.h; then the best of
// these with other clusters and orders of tiles. Prints those that were fastest in the trial, each then run alone for N
// ms (default 150), so that the clock settles: that is what a training step sees.
#include <cstdio>

#ifdef TERA_WITH_CUDA
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/cublaslt_algo.h"
#include "core/cuda/gpu.h"
#include "core/cuda/time_in_turns.h"
#include "ops/gemm_tiles.h"

namespace {

using namespace tera;

struct Machine {
    Gpu gpu{0};
    std::byte *a = nullptr, *b = nullptr, *c = nullptr;

    void reserve(std::size_t elements) {
        for (std::byte** p : {&a, &b, &c}) {
            if (*p) TERA_CUDA(cudaFree(*p));
            TERA_CUDA(cudaMalloc(p, elements * 4));
            // Numbers like those of a model: what a product costs in power depends on them.
            std::vector<std::uint16_t> row(1 << 20);
            std::uint32_t state = 1;
            for (std::uint16_t& x : row) {
                state = state * 1664525u + 1013904223u;
                x = static_cast<std::uint16_t>((state >> 31) << 15 | 0x3c00 | (state >> 22 & 0xff));
            }
            for (std::size_t at = 0; at < elements * 4; at += row.size() * 2)
                TERA_CUDA(cudaMemcpy(*p + at, row.data(), std::min(row.size() * 2, elements * 4 - at),
                                     cudaMemcpyHostToDevice));
        }
    }
};

struct Candidate {
    cublasLtMatmulAlgo_t algo{};
    bool proposed = false;  ///< by the library
    float trial = 0, sustained = 0;
    int place = -1;  ///< of its tile in the order of gemm_tiles_for
};

/// In the library's terms: D[m,n] = op(A) op(B), column-major.
struct Product {
    std::string name;
    std::int64_t m, n, k;
    bool transposed_a, transposed_b, accumulates;
    cublasLtMatmulDesc_t op = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;

    void describe() {
        TERA_CUBLAS(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        const cublasOperation_t ta = transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                tb = transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N;
        TERA_CUBLAS(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta));
        TERA_CUBLAS(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb));
        const auto layout = [](cublasLtMatrixLayout_t& made, cudaDataType_t type, std::int64_t rows,
                               std::int64_t cols) {
            TERA_CUBLAS(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                                   static_cast<std::uint64_t>(cols), rows));
        };
        layout(a, CUDA_R_16BF, transposed_a ? k : m, transposed_a ? m : k);
        layout(b, CUDA_R_16BF, transposed_b ? n : k, transposed_b ? k : n);
        layout(d, output(), m, n);
    }
    cudaDataType_t output() const { return accumulates ? CUDA_R_32F : CUDA_R_16BF; }
    double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }

    bool run(Machine& machine, const Candidate& c) const {
        const float one = 1, beta = accumulates ? 1.0f : 0.0f;
        return cublasLtMatmul(machine.gpu.blas, op, &one, machine.a, a, machine.b, b, &beta, machine.c, d, machine.c, d,
                              &c.algo, machine.gpu.workspace, Gpu::workspace_bytes,
                              machine.gpu.stream) == CUBLAS_STATUS_SUCCESS;
    }
};

std::vector<Candidate> proposals(Machine& machine, const Product& p) {
    std::vector<Candidate> all;
    for (const std::size_t workspace : {Gpu::workspace_bytes, std::size_t{0}}) {
        cublasLtMatmulPreference_t preference;
        TERA_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
        TERA_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                         &workspace, sizeof workspace));
        cublasLtMatmulHeuristicResult_t found[8];
        int count = 0;
        (void)cublasLtMatmulAlgoGetHeuristic(machine.gpu.blas, p.op, p.a, p.b, p.d, p.d, preference, 8, found, &count);
        cublasLtMatmulPreferenceDestroy(preference);
        for (int i = 0; i < count; ++i) all.push_back({found[i].algo, true});
    }
    return all;
}

std::string text_of(const cublasLtMatmulAlgo_t& algo) {
    char text[160];
    std::snprintf(text, sizeof text, "algo %d tile %u stages %u cluster %u swizzle %u custom %u split %d",
                  config_of<int>(algo, CUBLASLT_ALGO_CONFIG_ID),
                  config_of<std::uint32_t>(algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
                  config_of<std::uint32_t>(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                  config_of<std::uint16_t>(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                  config_of<std::uint32_t>(algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
                  config_of<std::uint32_t>(algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
                  config_of<int>(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
    return text;
}

using Bits = std::array<std::uint64_t, 8>;
Bits bits_of(const cublasLtMatmulAlgo_t& algo) {
    Bits bits;
    std::copy_n(algo.data, bits.size(), bits.begin());
    return bits;
}

/// All candidates, each once, and those the library can run.
class Pool {
  public:
    Pool(Machine& machine, const Product& p) : machine_(machine), p_(p) {}

    void add(const Candidate& c) {
        cublasLtMatmulHeuristicResult_t result{};
        if (!known_.insert(bits_of(c.algo)).second) return;
        if (cublasLtMatmulAlgoCheck(machine_.gpu.blas, p_.op, p_.a, p_.b, p_.d, p_.d, &c.algo, &result) ==
                CUBLAS_STATUS_SUCCESS &&
            result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= Gpu::workspace_bytes)
            all.push_back(c);
    }
    void add_tiles(const Candidate& kind) {
        int place = 0;
        for (const ops::cuda::GemmTile& tile : ops::cuda::gemm_tiles_for(p_.m, p_.n, machine_.gpu.multiprocessors)) {
            Candidate c{kind.algo};
            c.place = place++;
            set_config(c.algo, CUBLASLT_ALGO_CONFIG_TILE_ID, tile.id);
            set_config(c.algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, std::uint32_t{1});
            add(c);
        }
    }
    void add_orders(Candidate c) {
        c.proposed = false;
        for (const std::uint16_t cluster :
             {CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1, CUBLASLT_CLUSTER_SHAPE_1x2x1})
            for (std::uint32_t swizzle = 0; swizzle <= 1; ++swizzle) {
                set_config(c.algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster);
                set_config(c.algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle);
                add(c);
            }
    }

    std::vector<Candidate> all;

  private:
    Machine& machine_;
    const Product& p_;
    std::set<Bits> known_;
};

float ms_of(Machine& machine, const Product& p, const Candidate& c, double least_ms) {
    constexpr std::size_t begin = 0, end = 1;
    Marks marks(2);
    if (!p.run(machine, c)) return -1;
    int runs = 0;
    const double guess = p.flops() / 7e11;
    marks.set(begin, machine.gpu.stream);
    do {
        (void)p.run(machine, c);
        ++runs;
    } while (runs * guess < least_ms);
    marks.set(end, machine.gpu.stream);
    return marks.ms(begin, end) / static_cast<float>(runs);
}

/// The fastest first; those that cannot run are gone.
void try_all(Machine& machine, const Product& p, std::vector<Candidate>& all, double least_ms) {
    for (Candidate& c : all) c.trial = ms_of(machine, p, c, least_ms);
    std::erase_if(all, [](const Candidate& c) { return c.trial < 0; });
    std::stable_sort(all.begin(), all.end(), [](const Candidate& x, const Candidate& y) { return x.trial < y.trial; });
}

void examine(Machine& machine, Product p, double sustained_ms) {
    std::printf("%s: m %lld n %lld k %lld\n", p.name.c_str(), static_cast<long long>(p.m), static_cast<long long>(p.n),
                static_cast<long long>(p.k));
    p.describe();
    Pool pool(machine, p);
    std::vector<Candidate>& all = pool.all;
    for (const Candidate& c : proposals(machine, p)) pool.add(c);
    try_all(machine, p, all, 2);
    std::set<std::pair<int, std::uint32_t>> kinds;
    for (const Candidate& c : std::vector<Candidate>(all))
        if (kinds
                .emplace(config_of<int>(c.algo, CUBLASLT_ALGO_CONFIG_ID),
                         config_of<std::uint32_t>(c.algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION))
                .second)
            pool.add_tiles(c);
    try_all(machine, p, all, 0);
    if (all.empty()) return (void)std::printf("  nothing runs\n");
    constexpr std::size_t best_tiles = 4, most = 12;
    for (std::size_t i = 0; i < std::min(best_tiles, all.size()); ++i) pool.add_orders(Candidate(all[i]));
    const float soon = 1.1f * all[0].trial;
    std::printf("  %zu candidates of %zu kinds\n", all.size(), kinds.size());
    std::erase_if(all, [&](const Candidate& c) { return c.trial > soon && !c.proposed; });
    try_all(machine, p, all, 2);
    std::vector<Candidate> best;
    for (const Candidate& c : all) {
        const bool first_proposed =
            c.proposed && std::none_of(best.begin(), best.end(), [](auto& b) { return b.proposed; });
        if (best.size() < most || first_proposed) best.push_back(c);
    }
    constexpr int rounds = 5;  // in turns; the clock of the first is still settling
    for (int round = 0; round <= rounds; ++round)
        for (Candidate& c : best) {
            const float ms = ms_of(machine, p, c, sustained_ms / rounds);
            if (round > 0) c.sustained += ms / rounds;
        }
    const Candidate* ours = nullptr;
    const Candidate* fastest = &best[0];
    for (const Candidate& c : best) {
        if (c.proposed && ours == nullptr) ours = &c;
        if (c.sustained < fastest->sustained) fastest = &c;
        std::printf("    %s %3d trial %8.4f ms %6.1f TFLOP/s, sustained %8.4f ms %6.1f TFLOP/s  %s\n",
                    c.proposed ? "proposed" : "        ", c.place, c.trial, p.flops() / c.trial / 1e9, c.sustained,
                    p.flops() / c.sustained / 1e9, text_of(c.algo).c_str());
    }
    if (ours != nullptr)
        std::printf("  %s: fastest of all %.4f ms sustained, %.2f %% less than the best proposal\n", p.name.c_str(),
                    fastest->sustained, 100 * (1 - fastest->sustained / ours->sustained));
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
    std::vector<std::int64_t> sizes;
    double sustained_ms = 150;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--ms" && i + 1 < argc)
            sustained_ms = std::atof(argv[++i]);
        else
            sizes.push_back(std::atoll(argv[i]));
    }
    if (sizes.empty() || sizes.size() % 3 != 0 || *std::min_element(sizes.begin(), sizes.end()) < 1) {
        std::fprintf(stderr, "usage: gemm_candidates [--ms N] ROWS OUT IN [ROWS OUT IN ...]\n");
        return 2;
    }
    Machine machine;
    std::size_t most = 0;
    for (std::size_t i = 0; i < sizes.size(); i += 3) {
        const auto rows = static_cast<std::size_t>(sizes[i]), out = static_cast<std::size_t>(sizes[i + 1]),
                   in = static_cast<std::size_t>(sizes[i + 2]);
        most = std::max({most, rows * out, rows * in, out * in});
    }
    machine.reserve(most);
    for (std::size_t i = 0; i < sizes.size(); i += 3) {
        const std::int64_t rows = sizes[i], out = sizes[i + 1], in = sizes[i + 2];
        examine(machine, {"forward", out, rows, in, true, false, false}, sustained_ms);
        examine(machine, {"dgrad", in, rows, out, false, false, false}, sustained_ms);
        examine(machine, {"wgrad", in, out, rows, false, true, true}, sustained_ms);
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "gemm_candidates: %s\n", e.what());
    return 1;
}
#else
int main() {
    std::fprintf(stderr, "gemm_candidates: built without CUDA\n");
    return 2;
}
#endif
