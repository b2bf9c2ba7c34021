# Writes updates.txt: a few steps of PyTorch's optimizers on small tensors. Run with any Python that has torch:
#     python tests/golden/optim/make_golden.py
# One line per array: name, count, values (repr, so nothing is lost). Gradients of the steps follow each other.
import os

import torch

STEPS, SIZE = 10, 37
out = []


def put(name, values):
    values = [float(v) for v in values]
    out.append(f"{name} {len(values)} " + " ".join(repr(v) for v in values))


torch.manual_seed(3)
start = torch.randn(SIZE, dtype=torch.float64).float().double()
# Large, small and zero gradients.
grads = [(torch.randn(SIZE, dtype=torch.float64) * 10.0 ** torch.randint(-4, 2, (SIZE,))).float().double()
         for _ in range(STEPS)]
for g in grads:
    g[5] = 0.0
rates = [1e-2 * (i + 1) / STEPS for i in range(STEPS)]
put("start", start)
put("rates", rates)
put("grads", torch.cat(grads))


def run(name, make, dtype, clip=0.0):
    w = torch.nn.Parameter(start.to(dtype).clone())
    optimizer = make([w])
    norms = []
    for lr, g in zip(rates, grads):
        w.grad = g.to(dtype).clone()
        if clip:
            norms.append(torch.nn.utils.clip_grad_norm_([w], clip))
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
    put(name + ".weight", w.detach())
    for key, value in optimizer.state[w].items():
        if key != "step":
            put(f"{name}.{key}", value)
    if clip:
        put(name + ".norms", norms)


for dtype, suffix in ((torch.float64, "f64"), (torch.float32, "f32")):
    run(f"adamw.{suffix}", lambda p: torch.optim.AdamW(p, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1), dtype)
    run(f"adamw_clipped.{suffix}", lambda p: torch.optim.AdamW(p, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01),
        dtype, clip=1.0)
    run(f"adam_l2.{suffix}", lambda p: torch.optim.Adam(p, betas=(0.8, 0.99), eps=1e-8, weight_decay=0.1), dtype)
    run(f"sgd.{suffix}", lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9, weight_decay=0.1), dtype)
    run(f"sgd_plain.{suffix}", lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.0, weight_decay=0.1), dtype)

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "updates.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
