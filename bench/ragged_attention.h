// cuDNN's attention where each document is a sequence of its own ("ragged"): what bench/attention.cpp sets ours beside.
// The tokens of all documents stand one after another, rows of q, k and v in matrices of their own, as the library
// likes them best.
#pragma once

#if defined(TERA_WITH_CUDNN)
#include <cudnn_frontend.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/gpu.h"
#include "core/exec.h"
#include "ops/attention.h"

namespace tera::bench {

class RaggedCudnn {
  public:
    /// Of q, o and their gradients [T, H K], of k and v [T, G K].
    struct Rows {
        Tensor q, k, v, o, d_o, dq, dk, dv;
    };

    RaggedCudnn(const Exec& exec, const ops::AttentionSpec& spec, const std::vector<std::int32_t>& lengths,
                const Rows& rows)
        : exec_(exec), spec_(spec), count_(static_cast<std::int64_t>(lengths.size())), rows_(rows) {
        longest_ = *std::max_element(lengths.begin(), lengths.end());
        tokens_ = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
        if (cudnnCreate(&handle_) != CUDNN_STATUS_SUCCESS ||
            cudnnSetStream(handle_, exec.gpu->stream) != CUDNN_STATUS_SUCCESS) {
            why_ = "no handle";
            return;
        }
        std::vector<std::int64_t> first{0};
        for (const std::int32_t n : lengths) first.push_back(first.back() + n);
        for (auto [uid, width] :
             {std::pair{q_starts, spec.H * spec.K}, {k_starts, spec.G * spec.K}, {lse_starts, spec.H}}) {
            std::vector<std::int64_t> at;
            for (const std::int64_t row : first) at.push_back(row * width);
            of_both_[uid] = up(at);
        }
        of_both_[q_lengths] = of_both_[k_lengths] = up(lengths);
        of_both_[lse] = exec.tensor(DType::f32, {tokens_, spec.H}).data;
        of_both_.insert({{q, rows.q.data}, {k, rows.k.data}, {v, rows.v.data}, {o, rows.o.data}});
        prepare(forward_, false);
        prepare(backward_, true);
    }
    ~RaggedCudnn() {
        forward_ = backward_ = {};
        if (handle_) cudnnDestroy(handle_);
    }
    RaggedCudnn(const RaggedCudnn&) = delete;
    RaggedCudnn& operator=(const RaggedCudnn&) = delete;

    /// Why it cannot do these; empty if it can.
    const std::string& why() const { return why_; }
    bool forward() { return run(forward_); }
    bool backward() { return run(backward_); }

  private:
    using Attributes = cudnn_frontend::graph::Tensor_attributes;
    using Graph = cudnn_frontend::graph::Graph;
    using Placed = std::shared_ptr<Attributes>;
    enum Uid : std::int64_t {
        q = 1,
        k,
        v,
        o,
        lse,
        d_o,
        dq,
        dk,
        dv,
        q_starts,
        k_starts,
        lse_starts,
        q_lengths,
        k_lengths
    };

    using Pointers = std::unordered_map<std::int64_t, void*>;

    struct Pass {
        std::shared_ptr<Graph> graph;
        Pointers pointers;
        void* workspace = nullptr;
    };

    template <class T>
    void* up(const std::vector<T>& values) {
        const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
        void* const to = exec_.tensor(DType::u8, {bytes}).data;
        TERA_CUDA(cudaMemcpy(to, values.data(), static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice));
        return to;
    }

    Placed numbers(Graph& g, Uid uid, std::int64_t n, cudnn_frontend::DataType_t type) const {
        return g.tensor(Attributes().set_uid(uid).set_dim({n, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(type));
    }
    Placed starts(Graph& g, Uid uid) const { return numbers(g, uid, count_ + 1, cudnn_frontend::DataType_t::INT64); }
    void shape(Attributes& t, Uid uid, std::int64_t heads, std::int64_t width, const Placed& first) const {
        t.set_uid(uid).set_dim({count_, heads, longest_, width});
        t.set_stride({longest_ * heads * width, width, heads * width, 1}).set_ragged_offset(first);
    }
    Placed input(Graph& g, Uid uid, std::int64_t heads, const Placed& first) const {
        Attributes t;
        shape(t, uid, heads, spec_.K, first);
        return g.tensor(t);
    }
    template <class Options>
    Options options(Graph& g, const char* name) const {
        Options options;
        const auto type = cudnn_frontend::DataType_t::INT32;
        options.set_name(name).set_attn_scale(static_cast<float>(spec_.scale)).set_padding_mask(true);
        options.set_seq_len_q(numbers(g, q_lengths, count_, type)).set_seq_len_kv(numbers(g, k_lengths, count_, type));
        options.set_diagonal_alignment(cudnn_frontend::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
        return options;
    }

    void prepare(Pass& pass, bool backward) {
        if (!why_.empty()) return;
        auto graph = std::make_shared<Graph>();
        Graph& g = *graph;
        g.set_io_data_type(rows_.q.dtype == DType::bf16 ? cudnn_frontend::DataType_t::BFLOAT16
                                                        : cudnn_frontend::DataType_t::HALF)
            .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
            .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
        const Placed of_q = starts(g, q_starts), of_k = starts(g, k_starts), of_lse = starts(g, lse_starts);
        const Placed in_q = input(g, q, spec_.H, of_q), in_k = input(g, k, spec_.G, of_k),
                     in_v = input(g, v, spec_.G, of_k);
        if (!backward) {
            auto how = options<cudnn_frontend::graph::SDPA_attributes>(g, "forward");
            how.set_generate_stats(true);
            auto [out, stats] = g.sdpa(in_q, in_k, in_v, how);
            shape(out->set_output(true), o, spec_.H, spec_.K, of_q);
            shape(stats->set_output(true).set_data_type(cudnn_frontend::DataType_t::FLOAT), lse, spec_.H, 1, of_lse);
        } else {
            auto how = options<cudnn_frontend::graph::SDPA_backward_attributes>(g, "backward");
            how.set_max_total_seq_len_q(tokens_).set_max_total_seq_len_kv(tokens_);
            Attributes stats;
            shape(stats.set_data_type(cudnn_frontend::DataType_t::FLOAT), lse, spec_.H, 1, of_lse);
            auto [to_q, to_k, to_v] = g.sdpa_backward(in_q, in_k, in_v, input(g, o, spec_.H, of_q),
                                                      input(g, d_o, spec_.H, of_q), g.tensor(stats), how);
            shape(to_q->set_output(true), dq, spec_.H, spec_.K, of_q);
            shape(to_k->set_output(true), dk, spec_.G, spec_.K, of_k);
            shape(to_v->set_output(true), dv, spec_.G, spec_.K, of_k);
        }
        std::int64_t bytes = 0;
        auto status = g.build(handle_, {cudnn_frontend::HeurMode_t::A});
        if (status.is_good()) status = g.get_workspace_size(bytes);
        if (status.is_bad()) {
            why_ = (backward ? "backward: " : "forward: ") + status.err_msg;
            return;
        }
        pass = {graph, of_both_, exec_.tensor(DType::u8, {std::max<std::int64_t>(bytes, 1)}).data};
        if (backward)
            pass.pointers.insert(
                {{d_o, rows_.d_o.data}, {dq, rows_.dq.data}, {dk, rows_.dk.data}, {dv, rows_.dv.data}});
    }

    bool run(Pass& pass) {
        if (!pass.graph) return false;
        const auto status = pass.graph->execute(handle_, pass.pointers, pass.workspace);
        if (status.is_bad()) why_ = status.err_msg;
        return status.is_good();
    }

    const Exec& exec_;
    ops::AttentionSpec spec_;
    std::int64_t count_, longest_ = 0, tokens_ = 0;
    Rows rows_;
    cudnnHandle_t handle_ = nullptr;
    Pointers of_both_;
    Pass forward_, backward_;
    std::string why_;
};

}  // namespace tera::bench
#endif
