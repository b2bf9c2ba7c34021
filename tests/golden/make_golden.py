#!/usr/bin/env python3
"""Writes the golden models of tests/golden/<case>/ with transformers and PyTorch.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/golden/make_golden.py [case ...]           # without names: all cases

Every case is a tiny model with all its weights (norms and biases too) drawn at random, trained for 10 steps:

    config.json, generation_config.json, model.safetensors   as save_pretrained writes them, f32
    expected.json         the recipe, then "loss" and "grad_norm" of every step (doubles; the norm before clipping)
    expected.safetensors  tokens, labels   i32 [steps, B, S]
                          logits           f32 [B, S, V]  of step 0, before any update
                          grad.<name>      f32  of step 0, before clipping; Hugging Face names and layouts
                          param.<name>     f32  after the last step

A step: loss = mean over all tokens of the cross entropy of logits[b, s] with labels[b, s]; gradients; clipping by
c = min(1, clip / (norm + 1e-6)); AdamW with decay only on tensors of two and more dimensions (embeddings included).

Everything is computed in float64 from the stored f32 weights and rounded once, when it is stored. transformers itself
asks for float32 inside norms, RoPE and softmax; here those requests mean float64 too (`float32_means_float64`), and
`check_derivative` would notice if one still rounded. `check_float32` holds the untouched float32 model against the
result, so the goldens are what transformers computes.

"vanishing" in expected.json names the elements whose gradient is zero in exact arithmetic and rounding noise in
practice (the key biases of softmax attention). Adam turns such noise into steps of the size of lr, so they say nothing
after the first step; nothing else depends on them.
"""

import contextlib
import json
import math
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 10
OPTIMIZER = dict(lr=1e-3, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1)
CLIP_GRAD = 1.0  # unless the case says otherwise

CASES = {
    # Learned positions, LayerNorm, GELU (tanh), biases, tied. Heads of 7; sequences shorter than the positions.
    "gpt2": dict(
        model=transformers.GPT2LMHeadModel,
        config=transformers.GPT2Config(
            vocab_size=80, n_positions=32, n_embd=28, n_layer=2, n_head=4, activation_function="gelu_new",
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0),
        batch=3, sequence=24, seed=21),
    # GQA, untied, Llama-3 RoPE scaling. Wavelengths 6.3 (kept), 167 (blended), 4443 and 118135 (divided by 8).
    "llama": dict(
        model=transformers.LlamaForCausalLM,
        config=transformers.LlamaConfig(
            vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=2048, rms_norm_eps=1e-5, tie_word_embeddings=False,
            rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0,
                                 high_freq_factor=4.0, original_max_position_embeddings=256),
            bos_token_id=0, eos_token_id=1),
        batch=3, sequence=24, seed=12),
    # Llama 2 RoPE, one key-value head for all, tied, odd sizes, a vocabulary that needs padding. Clipped in some steps.
    "llama_tied": dict(
        model=transformers.LlamaForCausalLM,
        config=transformers.LlamaConfig(
            vocab_size=61, hidden_size=24, intermediate_size=36, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=1, max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0), bos_token_id=0, eos_token_id=1),
        batch=2, sequence=17, seed=13, clip_grad=4.8),
    # q/k norm, a head dimension that is not hidden/heads, tied.
    "llama_qknorm": dict(
        model=transformers.Qwen3ForCausalLM,
        config=transformers.Qwen3Config(
            vocab_size=64, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=10, max_position_embeddings=64, rms_norm_eps=1e-6,
            tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
            bos_token_id=0, eos_token_id=1),
        batch=2, sequence=20, seed=14),
}
SHARDED = "llama_bf16_sharded"  # the llama case in bf16, cut into several files, with the config.json of older releases


@contextlib.contextmanager
def float32_means_float64():
    """Inside, torch.float32, torch.float and Tensor.float() are float64, for Python code that asks by name."""
    saved = torch.float32, torch.float, torch.Tensor.float, torch.get_default_dtype()
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved[:3]
        torch.set_default_dtype(saved[3])


def randomize(model, generator):
    """Weights large enough that attention is not flat and every term of every layer matters."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() >= 2:
                p.copy_(noise * (0.25 if "wpe" in name or "wte" in name or "embed" in name else 0.2))
            elif name.endswith("bias"):
                p.copy_(0.1 * noise)
            else:  # scales of norms
                p.copy_(1.0 + 0.2 * noise)


def make_tokens(case, generator):
    """Streams that can be learned: the next token follows from the last one two times out of three."""
    vocab, b, s = case["config"].vocab_size, case["batch"], case["sequence"]
    stream = torch.empty(STEPS, b, s + 1, dtype=torch.int64)
    stream[..., 0] = torch.randint(vocab, (STEPS, b), generator=generator)
    for t in range(s):
        follow = (stream[..., t] * 7 + 3) % vocab
        anything = torch.randint(vocab, (STEPS, b), generator=generator)
        stream[..., t + 1] = torch.where(torch.rand(STEPS, b, generator=generator) < 0.67, follow, anything)
    return stream[..., :-1].contiguous(), stream[..., 1:].contiguous()


def logits_of(model, tokens):
    return model(input_ids=tokens, use_cache=False).logits


def loss_of(logits, labels):
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def build(case, weights, dtype):
    case["config"]._attn_implementation = "eager"
    model = case["model"](case["config"]).to(dtype)
    missing = model.load_state_dict({k: v.to(dtype) for k, v in weights.items()}, strict=False).missing_keys
    assert missing in ([], ["lm_head.weight"]), missing
    model.tie_weights()
    return model.train()


def train(model, tokens, labels, clip_grad):
    """All steps; returns logits and gradients of step 0, losses, norms before clipping, parameters at the end."""
    o = OPTIMIZER
    params = list(model.parameters())
    groups = [dict(params=[p for p in params if p.dim() >= 2], weight_decay=o["weight_decay"]),
              dict(params=[p for p in params if p.dim() < 2], weight_decay=0.0)]
    adam = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], foreach=False)
    first, losses, norms = None, [], []
    for step in range(STEPS):
        adam.zero_grad(set_to_none=True)
        logits = logits_of(model, tokens[step])
        loss = loss_of(logits, labels[step])
        loss.backward()
        if first is None:
            first = logits.detach().clone(), {n: p.grad.clone() for n, p in model.named_parameters()}
        norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in params)).item()
        factor = min(1.0, clip_grad / (norm + 1e-6))
        for p in params:
            p.grad.mul_(factor)
        adam.step()
        losses.append(loss.item())
        norms.append(norm)
    return *first, losses, norms, {n: p.detach().clone() for n, p in model.named_parameters()}


def check_derivative(model, tokens, labels, grads):
    """4-point difference along a random direction against the gradients: fails if anything rounds to float32."""
    generator = torch.Generator().manual_seed(1)
    direction = {n: torch.randn(p.shape, generator=generator, dtype=p.dtype) for n, p in model.named_parameters()}
    h = 1e-4

    def moved(k):
        with torch.no_grad():
            for n, p in model.named_parameters():
                p.add_(direction[n], alpha=k * h)
            value = loss_of(logits_of(model, tokens), labels).item()
            for n, p in model.named_parameters():
                p.sub_(direction[n], alpha=k * h)
        return value

    difference = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h)
    derivative = sum((grads[n] * direction[n]).sum() for n in grads).item()
    error = abs(difference - derivative) / abs(derivative)
    assert error < 1e-8, f"derivative {derivative} but difference {difference}"
    return error


def check_float32(case, weights, tokens, labels, golden):
    """transformers as it is, in float32, must agree with the goldens to float32 rounding. Returns relative errors."""
    logits, grads, losses, _, final = golden
    model = build(case, weights, torch.float32)
    logits32, grads32, losses32, _, final32 = train(model, tokens, labels, case.get("clip_grad", CLIP_GRAD))

    def apart(a, b):
        return ((a.double() - b).norm() / b.norm()).item()

    for name, (begin, end) in vanishing_elements(grads).items():
        for tensors in (grads, grads32, final, final32):
            tensors[name] = torch.cat((tensors[name][:begin], tensors[name][end:]))
    errors = dict(logits=apart(logits32, logits), loss=max(abs(a - b) for a, b in zip(losses32, losses)),
                  grads=max(apart(grads32[n], grads[n]) for n in grads),
                  params=max(apart(final32[n], final[n]) for n in final))
    # Adam divides by the size of the gradient: one element whose first gradient is near 0 becomes a coin toss.
    assert all(e < 2e-6 for e in errors.values()) and errors["params"] < 5e-7, errors
    return errors


def vanishing_elements(grads):
    """Ranges [begin, end) of 1-D gradients that are rounding noise of an exact zero."""
    out = {}
    for name, g in grads.items():
        if g.dim() != 1:
            continue
        noise = (g.abs() < 1e-13 * g.abs().max()).nonzero().flatten().tolist()
        if noise:
            assert noise == list(range(noise[0], noise[-1] + 1)), name
            out[name] = [noise[0], noise[-1] + 1]
    return out


def check_rope_bands(config):
    p = config.rope_parameters
    dim = config.hidden_size // config.num_attention_heads
    lengths = [2 * math.pi * p["rope_theta"] ** (2 * i / dim) for i in range(dim // 2)]
    low, high = (p["original_max_position_embeddings"] / p[k] for k in ("low_freq_factor", "high_freq_factor"))
    assert any(w < high for w in lengths) and any(high < w < low for w in lengths) and any(w > low for w in lengths)


def write_case(name, case):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    generator = torch.Generator().manual_seed(case["seed"])
    if case["config"].__dict__.get("rope_parameters", {}).get("rope_type") == "llama3":
        check_rope_bands(case["config"])
    model = case["model"](case["config"])
    randomize(model, generator)
    model.save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    tokens, labels = make_tokens(case, generator)

    clip_grad = case.get("clip_grad", CLIP_GRAD)
    with float32_means_float64():
        golden = train(build(case, weights, torch.float64), tokens, labels, clip_grad)
        logits, grads, losses, norms, final = golden
        assert logits.dtype == torch.float64 and all(g.dtype == torch.float64 for g in grads.values())
        derivative_error = check_derivative(build(case, weights, torch.float64), tokens[0], labels[0], grads)
    errors = check_float32(case, weights, tokens, labels, (logits, dict(grads), losses, norms, dict(final)))

    tensors = dict(tokens=tokens.int(), labels=labels.int(), logits=logits.float())
    for n in grads:
        tensors["grad." + n] = grads[n].float().contiguous()
        tensors["param." + n] = final[n].float().contiguous()
    save_file(tensors, folder / "expected.safetensors")
    with open(folder / "expected.json", "w") as f:
        json.dump(dict(made_with=f"torch {torch.__version__}, transformers {transformers.__version__}", steps=STEPS,
                       batch=case["batch"], sequence=case["sequence"], optimizer=OPTIMIZER,
                       clip_grad=clip_grad, vanishing=vanishing_elements(grads), loss=losses, grad_norm=norms),
                  f, indent=1)
        f.write("\n")
    print(f"{name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}, grad norm {norms[0]:.3f} -> {norms[-1]:.3f}, "
          f"clipped {sum(n > clip_grad for n in norms)} of {STEPS}, difference quotient {derivative_error:.1e}, "
          f"float32 model {', '.join(f'{k} {e:.1e}' for k, e in errors.items())}")


def write_sharded():
    """bf16 in several files; logits (f64, from the bf16 weights) for the first batch of the llama case."""
    case, source, folder = CASES["llama"], HERE / "llama", HERE / SHARDED
    shutil.rmtree(folder, ignore_errors=True)
    weights = {k: v.bfloat16() for k, v in load_file(source / "model.safetensors").items()}
    tokens = load_file(source / "expected.safetensors")["tokens"][0].long()
    build(case, weights, torch.bfloat16).save_pretrained(folder, max_shard_size="12KB")
    rewrite_config_as_older_release(folder / "config.json")
    with float32_means_float64(), torch.no_grad():
        logits = logits_of(build(case, weights, torch.float64), tokens)
    save_file(dict(tokens=tokens.int(), logits=logits.float()), folder / "expected.safetensors")
    print(f"{SHARDED}: {len(list(folder.glob('model-*.safetensors')))} files")


def rewrite_config_as_older_release(path):
    """transformers 4 wrote rope_theta, rope_scaling and torch_dtype where 5 writes rope_parameters and dtype."""
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.43.0"
    path.write_text(json.dumps(dict(sorted(config.items())), indent=2) + "\n")


def main():
    torch.set_num_threads(1)
    names = sys.argv[1:] or [*CASES, SHARDED]
    for name in names:
        if name == SHARDED:
            write_sharded()
        elif name in CASES:
            write_case(name, CASES[name])
        else:
            sys.exit(f"make_golden.py: no case {name}; there are {', '.join([*CASES, SHARDED])}")


if __name__ == "__main__":
    main()
