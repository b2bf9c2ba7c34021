#!/usr/bin/env python3
"""Peer of `teratron bench step`: training steps of a GPT or Llama in PyTorch on one GPU.

    python3 bench/peers/torch_gpu_step.py --layers 24 --hidden 2304 --heads 24 --ffn 9216 --vocab 51200 \\
        --sequence 2048 --batch 16 [--micro-batches 4] [--dropout 0.1] [--llama [--kv-heads 8] [--qkv-bias] [--tied]] \\
        [--eager]

What a PyTorch user would run: torch.compile, cuDNN attention, fp32 weights under bf16 autocast, fused AdamW, clipping at
norm 1, random tokens; dropout, if any, as Megatron has it: of the embedding, of attention's probabilities and of what both
halves of a layer add. Prints one line of JSON: seconds of every timed step, peak memory, and when the first
step was done after the process began. Without room for the model the line has an "error" instead.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


def since_process_start():
    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


def drop(x, p):
    return F.dropout(x, p) if p > 0 else x


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.dim = c, c.hidden // c.heads
        bias, norm = not c.llama, RmsNorm if c.llama else nn.LayerNorm
        self.norm1, self.norm2 = norm(c.hidden), norm(c.hidden)
        self.sizes = [c.heads * self.dim, c.kv_heads * self.dim, c.kv_heads * self.dim]
        self.qkv = nn.Linear(c.hidden, sum(self.sizes), bias=bias or c.qkv_bias)
        self.proj = nn.Linear(c.hidden, c.hidden, bias=bias)
        self.up = nn.Linear(c.hidden, c.ffn * (2 if c.llama else 1), bias=bias)
        self.down = nn.Linear(c.ffn, c.hidden, bias=bias)

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        q, k, v = (t.view(b, s, -1, self.dim).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(self.sizes, -1))
        if self.c.llama:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        dropout = self.c.dropout
        a = F.scaled_dot_product_attention(
            q, k, v, dropout_p=dropout, is_causal=True, enable_gqa=self.c.kv_heads != self.c.heads)
        x = x + drop(self.proj(a.transpose(1, 2).reshape(b, s, h)), dropout)
        y = self.up(self.norm2(x))
        if self.c.llama:
            gate, up = y.chunk(2, -1)
            return x + drop(self.down(F.silu(gate) * up), dropout)
        return x + drop(self.down(F.gelu(y, approximate="tanh")), dropout)


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.word = nn.Embedding(c.vocab, c.hidden)
        self.position = None if c.llama else nn.Embedding(c.sequence, c.hidden)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = (RmsNorm if c.llama else nn.LayerNorm)(c.hidden)
        self.head = nn.Linear(c.hidden, c.vocab, bias=False)
        if c.tied:
            self.head.weight = self.word.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        dim = c.hidden // c.heads
        angle = torch.outer(torch.arange(c.sequence).float(), 500000 ** -(torch.arange(0, dim, 2).float() / dim))
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos().to(torch.bfloat16))
        self.register_buffer("sin", angle.sin().to(torch.bfloat16))

    def forward(self, tokens, labels):
        x = self.word(tokens)
        if self.position is not None:
            x = x + self.position.weight[: tokens.shape[1]]
        x = drop(x, self.c.dropout)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, self.c.vocab), labels.view(-1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("layers", "hidden", "heads", "ffn", "vocab", "sequence", "batch"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--kv-heads", type=int)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--llama", action="store_true", help="RMSNorm, RoPE, SwiGLU, no biases, own output matrix")
    parser.add_argument("--qkv-bias", action="store_true")
    parser.add_argument("--tied", action="store_true", help="output matrix = word embedding (always without --llama)")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8)
    a = parser.parse_args()
    if not 0 <= a.dropout < 1:
        parser.error(f"--dropout {a.dropout}: must be at least 0 and below 1")
    a.kv_heads = a.kv_heads or a.heads
    a.tied = a.tied or not a.llama
    return a


def run(a):
    torch.manual_seed(1234)
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.device("cuda"):
        model = Decoder(a)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    forward = model if a.eager else torch.compile(model)
    seconds, losses, first_step = [], [], None
    for step in range(a.warmup + a.steps):
        streams = torch.randint(a.vocab, (a.micro_batches, a.batch, a.sequence + 1), device="cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for stream in streams:
            with torch.autocast("cuda", torch.bfloat16):
                loss = forward(stream[:, :-1].contiguous(), stream[:, 1:].contiguous()) / a.micro_batches
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        adam.step()
        adam.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if step >= a.warmup:
            seconds.append(time.perf_counter() - begin)
        if first_step is None:
            first_step = since_process_start()
        losses.append(loss.item() * a.micro_batches)
        del loss
    tokens = a.batch * a.micro_batches * a.sequence
    return dict(seconds=seconds, tokens_per_s=tokens / statistics.median(seconds), first_step_s=first_step,
                peak_bytes=torch.cuda.max_memory_allocated(), first_loss=losses[0], last_loss=losses[-1],
                parameters=sum(p.numel() for p in model.parameters()))


def main():
    a = arguments()
    out = dict(program=f"PyTorch {torch.__version__} {'eager' if a.eager else 'torch.compile'}, cuDNN attention")
    try:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out.update(run(a))
    except torch.cuda.OutOfMemoryError:
        out["error"] = "out of memory"
    print(json.dumps(out))


if __name__ == "__main__":
    main()
