#include "ops/attention_cudnn.h"

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"

#ifdef TERA_WITH_CUDNN
#include <map>
#include <tuple>

#include "core/cuda/time_in_turns.h"
#include "ops/attention_matrices_cudnn.h"
#include "ops/convert.h"

namespace tera::ops::cuda {
namespace {

/// Everything a plan depends on: sizes, row widths, dtype, causal, scale, backward, deterministic, documents.
using Key =
    std::tuple<std::array<std::int64_t, 6>, std::array<std::int64_t, 7>, DType, bool, double, bool, bool, Ragged>;

/// A graph and which of its plans is used: the library's choice until they were timed.
struct Planned {
    std::shared_ptr<Graph> graph;
    RowWidths widths;  ///< in which documents begin
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

bool applies(const Gpu& gpu, const AttentionSpec& s, DType dtype) {
    if ((dtype != DType::bf16 && dtype != DType::f16) || s.dropout != 0) return false;
    if (!s.doc_start) return s.K % 8 == 0 && s.K <= 256 && (s.Sq == s.Sk || !s.causal);
    // Without a causal mask a query sees also what follows its document, which is no sequence of its own then. Of heads
    // wider than 128 the library's gradients of keys and values were wrong (9.19, an H200), of 64 to 128 right;
    // narrower ones have not been tried.
    return s.documents.count > 0 && s.Sq == s.Sk && gpu.hopper && !gpu.deterministic && s.causal && s.K % 8 == 0 &&
           s.K >= 64 && s.K <= 128;
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

/// What the library is told of documents.
struct DocumentNumbers {
    Tensor lengths, starts, lse;
    DocumentNumbers(const Exec& exec, const AttentionSpec& s, int widths)
        : lengths(exec.tensor(DType::i32, {ragged(s).documents})),
          starts(exec.tensor(DType::i64, {widths, ragged(s).documents + 1})),
          lse(exec.tensor(DType::f32, {s.Sq * s.B, s.H})) {}
};

/// What is taken for a GPU on paper, whose library cannot be asked: in backward a sum for each query in fp32, and the
/// gradient of the queries in fp32 or, where the same bits are wanted in every run, that of the probabilities. Of
/// documents that gradient is as wide as its rows; and where heads share keys, theirs are made for each head first.
void take_on_paper(const Exec& exec, const AttentionSpec& s, bool backward, std::int64_t dq_width) {
    ArenaScope scope(*exec.arena);
    const std::int64_t tokens = s.B * s.Sq, queries = tokens * s.H;
    if (s.doc_start) DocumentNumbers(exec, s, RowWidths::most);
    if (!backward) return;
    exec.tensor(DType::f32, {queries});
    if (exec.gpu->deterministic)
        exec.tensor(DType::u8, {deterministic_bytes(s)});
    else
        exec.tensor(DType::f32, {s.doc_start ? tokens * dq_width : queries * s.K});
    if (s.doc_start && s.H != s.G) exec.tensor(DType::f32, {2, queries * s.K});
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

    Placed q_of(Matrices& m) const { return m.input(uid_q, s.H, s.Sq, q.data.cols()); }
    Placed k_of(Matrices& m) const { return m.input(uid_k, s.G, s.Sk, k.data.cols()); }
    Placed v_of(Matrices& m) const { return m.input(uid_v, s.G, s.Sk, v.data.cols()); }

    template <class Options>
    Options options(const char* name, Matrices& m) const {
        Options options;
        options.set_name(name).set_attn_scale(static_cast<float>(s.scale));
        if (s.doc_start) options.set_padding_mask(true).set_seq_len_q(m.lengths()).set_seq_len_kv(m.lengths());
        if (s.causal)
            options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
        return options;
    }

    /// What every version of the library does: if it does not, something is wrong, and nobody shall wonder about speed.
    bool common() const { return s.K <= 128 && s.Sq > 1 && s.Sk > 1 && !s.doc_start; }

    /// Runs the graph that build(graph, its matrices) makes, or made when it was met first; backward has gradients,
    /// each with its uid. False if the library has no kernel for it.
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
                                         exec.gpu->deterministic,
                                         ragged(s)}];
        if (!planned.graph && !planned.refused) {
            auto graph = new_graph(dtype);
            Matrices matrices(*graph, s, planned.widths);
            build(*graph, matrices);
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
        if (!s.doc_start) {
            cuda::run(exec, plans, planned, pointers);
            return true;
        }
        ArenaScope scope(*exec.arena);
        const DocumentNumbers numbers(exec, s, planned.widths.count);
        pointers[uid_lengths] = numbers.lengths.data;
        for (int i = 0; i < planned.widths.count; ++i)
            pointers[uid_starts + i] = numbers.starts.ptr<std::int64_t>() + i * numbers.starts.cols();
        pointers[uid_stats] = numbers.lse.data;
        const bool works = !exec.counts();
        if (works) document_places(exec, s, planned.widths, numbers.lengths, numbers.starts);
        if (works && backward) lse_to_rows(exec, numbers.lse, out.lse);
        cuda::run(exec, plans, planned, pointers);
        if (works && !backward) lse_from_rows(exec, out.lse, numbers.lse);
        return true;
    }
};

bool backward(const Operands& of, const AttentionGrads& grads, ConstTensor d_o) {
    const AttentionSpec& s = of.s;
    const std::int64_t dq_width = grads.dq.data.cols(), dk_width = grads.dk.data.cols(),
                       dv_width = grads.dv.data.cols();
    if (of.exec.gpu->on_paper) {
        take_on_paper(of.exec, s, true, dq_width);
        return true;
    }
    const Pointers gradients{{uid_do, const_cast<std::byte*>(d_o.data)},
                             {uid_dq, pointer(grads.dq)},
                             {uid_dk, pointer(grads.dk)},
                             {uid_dv, pointer(grads.dv)}};
    return of.run({dq_width, dk_width, dv_width}, gradients, [&](Graph& g, Matrices& m) {
        auto options = of.options<fe::graph::SDPA_backward_attributes>("attention_backward", m);
        options.set_deterministic_algorithm(of.exec.gpu->deterministic);
        // What is added up in has so many rows, each of the length of a row of all samples: one more than there are
        // positions, since the last sample begins behind the first.
        if (s.doc_start) options.set_max_total_seq_len_q(s.Sq + 1).set_max_total_seq_len_kv(s.Sk + 1);
        Attributes stats;
        auto [to_q, to_k, to_v] =
            g.sdpa_backward(of.q_of(m), of.k_of(m), of.v_of(m), m.input(uid_o, s.H, s.Sq, of.out.o.cols()),
                            m.input(uid_do, s.H, s.Sq, d_o.cols()), g.tensor(m.stats(stats)), options);
        m.output(*to_q, uid_dq, s.H, s.Sq, dq_width);
        m.output(*to_k, uid_dk, s.G, s.Sk, dk_width);
        m.output(*to_v, uid_dv, s.G, s.Sk, dv_width);
    });
}

}  // namespace

bool has_cudnn_attention() { return true; }

bool cudnn_attention(const Exec& exec, const AttentionSpec& s, const AttentionOut& out, HeadRows<ConstTensor> q,
                     HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (!applies(*exec.gpu, s, q.data.dtype)) return false;
    if (exec.gpu->on_paper) {
        take_on_paper(exec, s, false, 0);
        return true;
    }
    const Operands operands{exec, s, q, k, v, out};
    return operands.run({}, {}, [&](Graph& g, Matrices& m) {
        auto options = operands.options<fe::graph::SDPA_attributes>("attention", m);
        options.set_generate_stats(true);
        auto [o, stats] = g.sdpa(operands.q_of(m), operands.k_of(m), operands.v_of(m), options);
        m.output(*o, uid_o, s.H, s.Sq, out.o.cols());
        m.stats(*stats).set_output(true);
    });
}

bool cudnn_attention_backward(const Exec& exec, const AttentionSpec& s, const AttentionGrads& grads, ConstTensor d_o,
                              HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                              const AttentionOut& out) {
    if (!applies(*exec.gpu, s, q.data.dtype) || takes_too_much(*exec.gpu, s)) return false;
    if (!s.doc_start) return backward({exec, s, q, k, v, out}, grads, d_o);
    // Of documents the library goes from row to row of a gradient with the steps of what it is of: where these are
    // others it writes to wrong places, even outside.
    const std::int64_t width = k.data.cols();
    if (grads.dq.data.cols() != q.data.cols() || v.data.cols() != width || grads.dk.data.cols() != width ||
        grads.dv.data.cols() != width)
        return false;
    if (s.H == s.G) return backward({exec, s, q, k, v, out}, grads, d_o);
    // Where heads share keys it makes gradients for each head first, in rows so many times as wide as those of the
    // keys: these stand alone, then.
    ArenaScope scope(*exec.arena);
    const auto alone = [&] { return exec.tensor(q.data.dtype, {s.Sk * s.B, s.G * s.K}); };
    const Tensor keys = alone(), values = alone(), dk = alone(), dv = alone();
    const bool works = !exec.counts();
    if (works) copy_columns(exec, keys, k.data, k.offset), copy_columns(exec, values, v.data, v.offset);
    const Operands operands{exec, s, q, {keys, 0}, {values, 0}, out};
    if (!backward(operands, {grads.dq, {dk, 0}, {dv, 0}}, d_o)) return false;
    if (works)
        put_columns(exec, grads.dk.data, grads.dk.offset, dk), put_columns(exec, grads.dv.data, grads.dv.offset, dv);
    return true;
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
