// The tensors of cuDNN's attention graphs: where they are in our matrices, as whole samples or as documents.
#pragma once

#include <cudnn_frontend.h>

#include "ops/attention_documents.h"

namespace tera::ops::cuda {

namespace fe = cudnn_frontend;
using Attributes = fe::graph::Tensor_attributes;
using Graph = fe::graph::Graph;

enum Uid : std::int64_t {
    uid_q = 1,
    uid_k,
    uid_v,
    uid_o,
    uid_stats,
    uid_do,
    uid_dq,
    uid_dk,
    uid_dv,
    uid_lengths,
    uid_starts  ///< of documents; starts in rows of the first width, the second ...
};

/// Documents are sequences of their own to the library. A plan is made for so many of such lengths or less: for powers
/// of two, so that there are few.
struct Ragged {
    std::int64_t documents = 0, longest = 0;
    explicit operator bool() const { return documents > 0; }
    auto operator<=>(const Ragged&) const = default;
};
inline Ragged ragged(const AttentionSpec& s) {
    if (!s.doc_start) return {};
    const auto rounded = [](std::int64_t n, std::int64_t least) {
        while (least < n) least *= 2;
        return least;
    };
    return {rounded(s.documents.count, 4), std::min(s.Sq, rounded(s.documents.longest, 128))};
}

using Placed = std::shared_ptr<Attributes>;

inline std::shared_ptr<Graph> new_graph(DType dtype) {
    auto graph = std::make_shared<Graph>();
    graph->set_io_data_type(dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    return graph;
}

/// Tensors of a graph: [B, heads, S, K] inside rows s·B + b of a width; of documents [documents, heads, longest, K]
/// inside the same rows, and where each begins.
class Matrices {
  public:
    Matrices(Graph& graph, const AttentionSpec& s, RowWidths& widths)
        : graph_(graph), s_(s), ragged_(ragged(s)), widths_(widths) {}

    Placed input(std::int64_t uid, std::int64_t heads, std::int64_t S, std::int64_t width) {
        Attributes t;
        return graph_.tensor(shaped(t, uid, heads, S, width));
    }
    void output(Attributes& t, std::int64_t uid, std::int64_t heads, std::int64_t S, std::int64_t width) {
        shaped(t, uid, heads, S, width).set_output(true);
    }
    /// In rows of documents the heads of a token are neighbours.
    Attributes& stats(Attributes& t) {
        t.set_uid(uid_stats).set_data_type(fe::DataType_t::FLOAT);
        if (!ragged_) return t.set_dim({s_.B, s_.H, s_.Sq, 1}).set_stride({s_.H * s_.Sq, s_.Sq, 1, 1});
        return t.set_dim({ragged_.documents, s_.H, ragged_.longest, 1})
            .set_stride({s_.H, 1, s_.B * s_.H, 1})
            .set_ragged_offset(starts(s_.H));
    }
    Placed lengths() {
        if (!lengths_) lengths_ = graph_.tensor(numbers(uid_lengths, ragged_.documents, fe::DataType_t::INT32));
        return lengths_;
    }

  private:
    Attributes& shaped(Attributes& t, std::int64_t uid, std::int64_t heads, std::int64_t S, std::int64_t width) {
        t.set_uid(uid).set_stride({width, s_.K, s_.B * width, 1});
        if (!ragged_) return t.set_dim({s_.B, heads, S, s_.K});
        return t.set_dim({ragged_.documents, heads, ragged_.longest, s_.K}).set_ragged_offset(starts(width));
    }
    Placed starts(std::int64_t width) {
        const auto i = static_cast<std::size_t>(widths_.index_of(width));
        if (!starts_[i])
            starts_[i] = graph_.tensor(
                numbers(uid_starts + static_cast<std::int64_t>(i), ragged_.documents + 1, fe::DataType_t::INT64));
        return starts_[i];
    }
    static Attributes numbers(std::int64_t uid, std::int64_t n, fe::DataType_t type) {
        return Attributes().set_uid(uid).set_dim({n, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(type);
    }

    Graph& graph_;
    const AttentionSpec& s_;
    Ragged ragged_;
    RowWidths& widths_;
    Placed lengths_;
    std::array<Placed, RowWidths::most> starts_;
};

}  // namespace tera::ops::cuda
