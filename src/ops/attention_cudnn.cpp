#include "ops/attention_cudnn.h"

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"

#ifdef TERA_WITH_CUDNN
#include <cudnn_frontend.h>

#include <map>
#include <tuple>

#include "core/cuda/time_in_turns.h"

namespace tera::ops::cuda {
namespace {

namespace fe = cudnn_frontend;
using Attributes = fe::graph::Tensor_attributes;
using Graph = fe::graph::Graph;

enum Uid : std::int64_t { uid_q = 1, uid_k, uid_v, uid_o, uid_stats, uid_do, uid_dq, uid_dk, uid_dv };

/// Everything a plan depends on: sizes, row widths, dtype, causal, scale, backward, deterministic.
using Key = std::tuple<std::array<std::int64_t, 6>, std::array<std::int64_t, 7>, DType, bool, double, bool, bool>;

/// A graph and which of its plans is used: the library's choice until they were timed.
struct Planned {
    std::shared_ptr<Graph> graph;
    std::int64_t fastest = -1;
    bool refused = false;  ///< by the library: this GPU or this version of it has no kernel for it
};

struct Plans {
    cudnnHandle_t handle = nullptr;
    std::map<Key, Planned> graphs;
    ~Plans() {
        graphs.clear();
        if (handle) cudnnDestroy(handle);
    }
};

void check(const fe::error_t& status, const char* what) {
    if (status.is_bad()) throw Error(cat("cuDNN attention, ", what, ": ", status.err_msg));
}

Plans& plans_of(Gpu& gpu) {
    if (!gpu.attention_plans) {
        auto plans = std::make_shared<Plans>();
        if (cudnnStatus_t s = cudnnCreate(&plans->handle); s != CUDNN_STATUS_SUCCESS)
            throw Error(cat("cudnnCreate: ", cudnnGetErrorString(s)));
        if (cudnnStatus_t s = cudnnSetStream(plans->handle, gpu.stream); s != CUDNN_STATUS_SUCCESS)
            throw Error(cat("cudnnSetStream: ", cudnnGetErrorString(s)));
        gpu.attention_plans = plans;
    }
    return *static_cast<Plans*>(gpu.attention_plans.get());
}

/// What the library's gradients take if they are to be the same bits in every run: the probabilities' in tiles of
/// 64 x 128.
std::int64_t deterministic_bytes(const AttentionSpec& s) {
    const auto whole = [](std::int64_t n, std::int64_t tile) { return (n + tile - 1) / tile * tile; };
    return s.B * s.H * whole(s.Sq, 64) * whole(s.Sk, 128) * 2;
}

/// Beyond so much our own kernels, which are slower and take nothing, are the better gradients.
bool takes_too_much(const Gpu& gpu, const AttentionSpec& s) {
    return gpu.deterministic && deterministic_bytes(s) > std::int64_t{8} << 30;
}

bool applies(const AttentionSpec& s, DType dtype) {
    return (dtype == DType::bf16 || dtype == DType::f16) && s.dropout == 0 && !s.doc_start && s.K % 8 == 0 &&
           s.K <= 256 && (s.Sq == s.Sk || !s.causal);
}

/// [B, heads, S, K] inside rows s·B + b of the given width.
std::shared_ptr<Attributes> tensor(Graph& graph, std::int64_t uid, const AttentionSpec& s, std::int64_t heads,
                                   std::int64_t S, std::int64_t width) {
    return graph.tensor(
        Attributes().set_uid(uid).set_dim({s.B, heads, S, s.K}).set_stride({width, s.K, s.B * width, 1}));
}
void as_output(const std::shared_ptr<Attributes>& t, std::int64_t uid, const AttentionSpec& s, std::int64_t heads,
               std::int64_t S, std::int64_t width) {
    t->set_uid(uid).set_output(true).set_dim({s.B, heads, S, s.K}).set_stride({width, s.K, s.B * width, 1});
}
Attributes& as_stats(Attributes& t, const AttentionSpec& s) {
    return t.set_uid(uid_stats)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({s.B, s.H, s.Sq, 1})
        .set_stride({s.H * s.Sq, s.Sq, 1, 1});
}

std::shared_ptr<Graph> new_graph(DType dtype) {
    auto graph = std::make_shared<Graph>();
    graph->set_io_data_type(dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    return graph;
}

using Pointers = std::unordered_map<std::int64_t, void*>;

/// The faster of the library's first plans that need no more memory than was set aside, its own choice among them.
std::int64_t fastest_plan(const Exec& exec, Plans& plans, Graph& graph, Pointers& pointers, void* workspace,
                          std::int64_t bytes) {
    constexpr std::size_t most = 2;
    std::vector<std::int64_t> able;
    for (std::int64_t i = 0; i < graph.get_execution_plan_count() && able.size() < most; ++i)
        if (graph.build_plan_at_index(plans.handle, i).is_good() && graph.get_workspace_size_plan_at_index(i) <= bytes)
            able.push_back(i);
    TERA_CHECK(!able.empty(), "cuDNN's plans need more memory than it said");
    const std::vector<float> ms = time_in_turns(able.size(), 4, exec.gpu->stream, [&](std::size_t i) {
        return graph.execute_plan_at_index(plans.handle, pointers, workspace, able[i]).is_good();
    });
    std::size_t best = 0;
    for (std::size_t i = 1; i < ms.size(); ++i)
        if (ms[i] >= 0 && (ms[best] < 0 || ms[i] < ms[best])) best = i;
    return able[best];
}

void run(const Exec& exec, Plans& plans, Planned& planned, Pointers pointers) {
    ArenaScope scope(*exec.arena);
    Graph& graph = *planned.graph;
    std::int64_t bytes = 0;
    if (planned.fastest >= 0)
        bytes = graph.get_workspace_size_plan_at_index(planned.fastest);
    else
        check(graph.get_workspace_size(bytes), "workspace size");
    void* workspace = bytes > 0 ? exec.tensor(DType::u8, {bytes}).data : nullptr;
    if (exec.counts()) return;
    if (exec.gpu->deterministic) return check(graph.execute(plans.handle, pointers, workspace), "execution");
    if (planned.fastest < 0) planned.fastest = fastest_plan(exec, plans, graph, pointers, workspace, bytes);
    check(graph.execute_plan_at_index(plans.handle, pointers, workspace, planned.fastest), "execution");
}

/// What the library asks for in backward, for a GPU on paper, which it cannot be asked about: a sum for each query in
/// fp32, and the gradient of the queries in fp32 or, where the same bits are wanted in every run, that of the
/// probabilities. Forward needs none.
void take_expected_workspace(const Exec& exec, const AttentionSpec& s) {
    const std::int64_t queries = s.B * s.H * s.Sq, size_of_f32 = 4;
    ArenaScope scope(*exec.arena);
    exec.tensor(DType::u8, {queries * size_of_f32 +
                            (exec.gpu->deterministic ? deterministic_bytes(s) : queries * s.K * size_of_f32)});
}

void* pointer(const HeadRows<ConstTensor>& r) {
    return const_cast<std::byte*>(r.data.data) + static_cast<std::size_t>(r.offset) * size_of(r.data.dtype);
}
void* pointer(const HeadRows<Tensor>& r) {
    return r.data.data + static_cast<std::size_t>(r.offset) * size_of(r.data.dtype);
}

/// What forward and backward are asked with.
struct Operands {
    const Exec& exec;
    const AttentionSpec& s;
    HeadRows<ConstTensor> q, k, v;
    const AttentionOut& out;

    std::shared_ptr<Attributes> q_of(Graph& g) const { return tensor(g, uid_q, s, s.H, s.Sq, q.data.cols()); }
    std::shared_ptr<Attributes> k_of(Graph& g) const { return tensor(g, uid_k, s, s.G, s.Sk, k.data.cols()); }
    std::shared_ptr<Attributes> v_of(Graph& g) const { return tensor(g, uid_v, s, s.G, s.Sk, v.data.cols()); }

    template <class Options>
    Options options(const char* name) const {
        Options options;
        options.set_name(name).set_attn_scale(static_cast<float>(s.scale));
        if (s.causal)
            options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
        return options;
    }

    /// What every version of the library does: if it does not, something is wrong, and nobody shall wonder about speed.
    bool common() const { return s.K <= 128 && s.Sq > 1 && s.Sk > 1; }

    /// Runs the graph that build(graph) makes, or made when it was met first; backward has gradients, each with its
    /// uid. False if the library has no kernel for it.
    template <class Build>
    bool run(std::array<std::int64_t, 3> gradient_widths, const Pointers& gradients, const Build& build) const {
        const DType dtype = q.data.dtype;
        const bool backward = !gradients.empty();
        Plans& plans = plans_of(*exec.gpu);
        const auto [dq, dk, dv] = gradient_widths;
        Planned& planned = plans.graphs[{{s.B, s.Sq, s.Sk, s.H, s.G, s.K},
                                         {q.data.cols(), k.data.cols(), v.data.cols(), out.o.cols(), dq, dk, dv},
                                         dtype,
                                         s.causal,
                                         s.scale,
                                         backward,
                                         exec.gpu->deterministic}];
        if (!planned.graph && !planned.refused) {
            auto graph = new_graph(dtype);
            build(*graph);
            const fe::error_t status = graph->build(plans.handle, {fe::HeurMode_t::A});
            if (common()) check(status, backward ? "planning backward" : "planning forward");
            planned.refused = status.is_bad();
            if (planned.refused)
                cudaGetLastError();  // what the attempt left is not the next kernel's
            else
                planned.graph = graph;
        }
        if (planned.refused) return false;
        Pointers pointers{{uid_q, pointer(q)},
                          {uid_k, pointer(k)},
                          {uid_v, pointer(v)},
                          {uid_o, out.o.data},
                          {uid_stats, out.lse.data}};
        pointers.insert(gradients.begin(), gradients.end());
        cuda::run(exec, plans, planned, pointers);
        return true;
    }
};

}  // namespace

bool has_cudnn_attention() { return true; }

bool cudnn_attention(const Exec& exec, const AttentionSpec& s, const AttentionOut& out, HeadRows<ConstTensor> q,
                     HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (!applies(s, q.data.dtype)) return false;
    if (exec.gpu->on_paper) return true;
    const Operands operands{exec, s, q, k, v, out};
    return operands.run({}, {}, [&](Graph& g) {
        auto options = operands.options<fe::graph::SDPA_attributes>("attention");
        options.set_generate_stats(true);
        auto [o, stats] = g.sdpa(operands.q_of(g), operands.k_of(g), operands.v_of(g), options);
        as_output(o, uid_o, s, s.H, s.Sq, out.o.cols());
        as_stats(*stats, s).set_output(true);
    });
}

bool cudnn_attention_backward(const Exec& exec, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o,
                              HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                              const AttentionOut& out) {
    if (!applies(s, q.data.dtype) || takes_too_much(*exec.gpu, s)) return false;
    if (exec.gpu->on_paper) {
        take_expected_workspace(exec, s);
        return true;
    }
    const Operands operands{exec, s, q, k, v, out};
    const std::int64_t dq_width = grads.dq.data.cols(), dk_width = grads.dk.data.cols(),
                       dv_width = grads.dv.data.cols();
    const Pointers gradients{{uid_do, const_cast<std::byte*>(d_o.data)},
                             {uid_dq, pointer(grads.dq)},
                             {uid_dk, pointer(grads.dk)},
                             {uid_dv, pointer(grads.dv)}};
    return operands.run({dq_width, dk_width, dv_width}, gradients, [&](Graph& g) {
        auto options = operands.options<fe::graph::SDPA_backward_attributes>("attention_backward");
        options.set_deterministic_algorithm(exec.gpu->deterministic);
        Attributes stats;
        auto [dq, dk, dv] = g.sdpa_backward(
            operands.q_of(g), operands.k_of(g), operands.v_of(g), tensor(g, uid_o, s, s.H, s.Sq, out.o.cols()),
            tensor(g, uid_do, s, s.H, s.Sq, d_o.cols()), g.tensor(as_stats(stats, s)), options);
        as_output(dq, uid_dq, s, s.H, s.Sq, dq_width);
        as_output(dk, uid_dk, s, s.G, s.Sk, dk_width);
        as_output(dv, uid_dv, s, s.G, s.Sk, dv_width);
    });
}

}  // namespace tera::ops::cuda

#else

namespace tera::ops::cuda {

bool has_cudnn_attention() { return false; }
bool cudnn_attention(const Exec&, const AttentionSpec&, const AttentionOut&, HeadRows<ConstTensor>,
                     HeadRows<ConstTensor>, HeadRows<ConstTensor>) {
    return false;
}
bool cudnn_attention_backward(const Exec&, const AttentionSpec&, const AttentionGrads&, ConstTensor,
                              HeadRows<ConstTensor>, HeadRows<ConstTensor>, HeadRows<ConstTensor>,
                              const AttentionOut&) {
    return false;
}

}  // namespace tera::ops::cuda

#endif
