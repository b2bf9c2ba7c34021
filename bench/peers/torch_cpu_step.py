#!/usr/bin/env python3
"""Peer of bench/cpu_step: one training step of GPT-2 124M in PyTorch eager, f32, on the CPU.

    python3 bench/peers/torch_cpu_step.py --batch 4 --sequence 64 --threads 2 --steps 8 [--optimizer fused]

The model a PyTorch user would write: nn.Linear, F.scaled_dot_product_attention, F.gelu, F.cross_entropy, tied output
matrix, dropout 0, vocabulary padded to 50304. A step is forward, loss, backward, clip_grad_norm_ 1.0, AdamW, zero_grad.
Prints one line of JSON: the seconds of every step after the warm-up, and the peak resident memory of the process.
"""

import argparse
import json
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HIDDEN, HEADS, VOCAB, TRUE_VOCAB, POSITIONS = 12, 768, 12, 50304, 50257, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.proj = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (t.view(b, s, HEADS, HIDDEN // HEADS).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).split(HIDDEN, dim=-1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, s, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.position = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(POSITIONS, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        x = self.word(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.word.weight)
        return F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--optimizer", choices=["default", "fused"], default="default")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1234)

    model = Gpt2()
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=0.1),
              dict(params=[p for p in model.parameters() if p.dim() <= 1], weight_decay=0.0)]
    adam = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=True if a.optimizer == "fused" else None)
    seconds, losses = [], []
    for step in range(a.warmup + a.steps):
        stream = torch.randint(TRUE_VOCAB, (a.batch, a.sequence + 1))
        tokens, labels = stream[:, :-1].contiguous(), stream[:, 1:].contiguous()
        begin = time.perf_counter()
        loss = model(tokens, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step >= a.warmup:
            seconds.append(time.perf_counter() - begin)
        del loss
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(dict(program=f"PyTorch {torch.__version__} eager, {a.optimizer} AdamW", batch=a.batch,
                          sequence=a.sequence, threads=a.threads, seconds=seconds, first_loss=losses[0],
                          last_loss=losses[-1], peak_rss_bytes=peak)))


if __name__ == "__main__":
    main()
