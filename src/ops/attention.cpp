#include "ops/attention.h"

#include "ops/dispatch.h"

namespace tera::ops {

TERA_BACKENDS(void attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out,
                             HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v))
TERA_BACKENDS(void attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads,
                                      ConstTensor d_o, HeadRows<ConstTensor> q, HeadRows<ConstTensor> k,
                                      HeadRows<ConstTensor> v, const AttentionOut& out))

TERA_BACKENDS(void merge_attention(const Exec& exec, const AttentionOut& all, const AttentionOut& part,
                                   std::int64_t first))

namespace {

void check(const AttentionSpec& s, const HeadRows<ConstTensor>& q, const HeadRows<ConstTensor>& k,
           const HeadRows<ConstTensor>& v) {
    TERA_CHECK(s.G > 0 && s.H % s.G == 0, s.H, " heads, ", s.G, " kv heads");
    TERA_CHECK(q.data.rows() >= s.Sq * s.B && q.offset + s.H * s.K <= q.data.cols(), "q ", q.data.shape);
    TERA_CHECK(k.data.rows() >= s.Sk * s.B && k.offset + s.G * s.K <= k.data.cols(), "k ", k.data.shape);
    TERA_CHECK(v.data.rows() >= s.Sk * s.B && v.offset + s.G * s.K <= v.data.cols(), "v ", v.data.shape);
    TERA_CHECK(s.dropout == 0 || s.sample, "dropout needs sample numbers");
    TERA_CHECK(!s.causal || s.Sk >= s.Sq, s.Sq, " queries, ", s.Sk, " keys");
}

}  // namespace

AttentionOut attention(const Exec& exec, const AttentionSpec& spec, HeadRows<ConstTensor> q, HeadRows<ConstTensor> k,
                       HeadRows<ConstTensor> v) {
    check(spec, q, k, v);
    AttentionOut out{exec.tensor(q.data.dtype, {spec.Sq * spec.B, spec.H * spec.K}),
                     exec.tensor(acc_dtype(q.data.dtype), {spec.B, spec.H, spec.Sq})};
    TERA_DISPATCH_WITH_SCRATCH(exec, attention(exec, spec, out, q, k, v));
    return out;
}

void merge_attention(const Exec& exec, const AttentionOut& all, const AttentionOut& part, std::int64_t first) {
    const Shape &a = all.lse.shape, &p = part.lse.shape;
    TERA_CHECK(all.lse.dtype == all.o.dtype && part.lse.dtype == all.o.dtype && acc_dtype(part.o.dtype) == all.o.dtype,
               name_of(part.o.dtype), " into ", name_of(all.o.dtype));
    TERA_CHECK(a[0] == p[0] && a[1] == p[1] && first >= 0 && first + p[2] <= a[2] && part.o.cols() == all.o.cols(), p,
               " into ", a, " from ", first);
    TERA_CHECK(all.o.rows() == a[0] * a[2] && part.o.rows() == p[0] * p[2] && all.o.cols() % a[1] == 0, all.o.shape,
               part.o.shape);
    TERA_DISPATCH(exec, merge_attention(exec, all, part, first));
}

void attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                        HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                        const AttentionOut& out) {
    check(spec, q, k, v);
    TERA_CHECK(d_o.shape == out.o.shape, d_o.shape, out.o.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, attention_backward(exec, spec, grads, d_o, q, k, v, out));
}

}  // namespace tera::ops
