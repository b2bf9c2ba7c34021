#!/usr/bin/env python3
"""PyTorch's attention kernels for what bench/attention.cpp times: the same shapes, documents and ways of counting.

    torch_attention.py [--seconds T] BATCHxSEQUENCExHEADS/KEY_HEADSxWIDTH ...

Causal: cuDNN and FlashAttention-2. In documents: varlen_attn (FlashAttention-2, told where documents end) and
flex_attention (compiled, with the blocks that nobody sees left out). With dropout 0.1: cuDNN and FlashAttention-2.
"""
import argparse
import re
import sys
import time

import torch
import torch._functorch.config
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

torch._functorch.config.donated_buffer = False  # gradients are taken more than once


def document_lengths(batch, length):
    """As in bench/attention.cpp: of each sample, S/4 on average."""
    state, samples = 7, []

    def draw():
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return 1 + (state >> 8) % (length // 2)

    for _ in range(batch):
        lengths, left = [], length
        while left > 0:
            lengths.append(min(draw(), left))
            left -= lengths[-1]
        samples.append(lengths)
    return samples


def milliseconds(call, seconds):
    call()
    torch.cuda.synchronize()
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for _ in range(8):
            call()
        torch.cuda.synchronize()
        calls += 8
    return 1e3 * (time.perf_counter() - begin) / calls


class Bench:
    def __init__(self, word, seconds):
        match = re.fullmatch(r"(\d+)x(\d+)x(\d+)/(\d+)x(\d+)", word)
        if not match:
            print(f"torch_attention.py: '{word}' is no shape; 8x2048x24/24x96 is one", file=sys.stderr)
            sys.exit(2)
        self.B, self.S, self.H, self.G, self.K = map(int, match.groups())
        self.seconds = seconds

    def random(self, *shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    def show(self, what, name, pairs, inputs, d_o, call):
        """inputs: q, k and v; call makes of them the output."""
        for x in inputs:
            x.requires_grad_()
        try:
            with torch.no_grad():
                forward = milliseconds(call, self.seconds)
            out = call()
            backward = milliseconds(lambda: torch.autograd.grad(out, inputs, d_o, retain_graph=True), self.seconds)
        except Exception as e:  # no kernel for it
            print(f"  {what:<9} {name:<11} not there: {str(e).splitlines()[0][:100]}", flush=True)
            return
        flops = 2e-9 * pairs * self.H * self.K
        print(f"  {what:<9} {name:<11} forward {forward:7.3f} ms {2 * flops / forward:4.0f} TFLOP/s, "
              f"backward {backward:7.3f} ms {5 * flops / backward:4.0f} TFLOP/s", flush=True)

    def heads_first(self):
        """[B, heads, S, K] as PyTorch's models have them: inside rows of tokens."""
        return [self.random(self.B, self.S, n, self.K).transpose(1, 2) for n in (self.H, self.G, self.G, self.H)]

    def dense(self, what, dropout):
        pairs = self.B * self.S * (self.S + 1) / 2
        for name, backend in ("cuDNN", SDPBackend.CUDNN_ATTENTION), ("Flash 2", SDPBackend.FLASH_ATTENTION):
            q, k, v, d_o = self.heads_first()

            def call():
                with sdpa_kernel(backend):
                    return scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout,
                                                        enable_gqa=self.H != self.G)

            self.show(what, name, pairs, (q, k, v), d_o, call)

    def documents(self):
        lengths = document_lengths(self.B, self.S)
        pairs = sum(n * (n + 1) / 2 for sample in lengths for n in sample)
        self.varlen(lengths, pairs)
        self.flex(lengths, pairs)

    def varlen(self, lengths, pairs):
        try:
            from torch.nn.attention.varlen import varlen_attn
        except ImportError:
            print("  documents varlen_attn is not in this PyTorch", flush=True)
            return
        flat = [n for sample in lengths for n in sample]
        ends = torch.tensor([0, *flat], device="cuda").cumsum(0).to(torch.int32)
        q, k, v, d_o = (self.random(self.B * self.S, n, self.K) for n in (self.H, self.G, self.G, self.H))
        if self.H != self.G:  # it has no key heads of several query heads
            k, v = (x.repeat_interleave(self.H // self.G, 1) for x in (k, v))
        longest = max(flat)
        last = {}
        try:
            varlen_attn(q, k, v, ends, ends, longest, longest, is_causal=True)
            last = {"is_causal": True}
        except TypeError:
            last = {"window_size": (-1, 0)}
        self.show("documents", "varlen", pairs, (q, k, v), d_o,
                  lambda: varlen_attn(q, k, v, ends, ends, longest, longest, **last))

    def flex(self, lengths, pairs):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        document = torch.tensor([[i for i, n in enumerate(sample) for _ in range(n)] for sample in lengths],
                                device="cuda")
        mask = create_block_mask(lambda b, h, i, j: (i >= j) & (document[b, i] == document[b, j]), self.B, None,
                                 self.S, self.S, device="cuda", _compile=True)
        compiled = torch.compile(flex_attention, dynamic=False)
        q, k, v, d_o = self.heads_first()
        self.show("documents", "flex", pairs, (q, k, v), d_o,
                  lambda: compiled(q, k, v, block_mask=mask, enable_gqa=self.H != self.G))

    def run(self):
        print(f"{self.B}x{self.S}x{self.H}/{self.G}x{self.K}", flush=True)
        self.dense("causal", 0.0)
        self.documents()
        self.dense("dropout", 0.1)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--seconds", type=float, default=0.3)
parser.add_argument("shapes", nargs="+")
arguments = parser.parse_args()
for shape in arguments.shapes:
    Bench(shape, arguments.seconds).run()
