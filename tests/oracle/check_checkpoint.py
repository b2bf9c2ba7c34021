#!/usr/bin/env python3
"""Loads checkpoints with transformers and compares their logits with ours.

Usage: check_checkpoint.py FOLDER...

Each folder is a checkpoint that also holds expected.safetensors: tokens [T] (int32) and logits [T, V] (float32), V being
the padded vocabulary. Prints one line per folder; exits 1 if any differs, or if a weight was missing or left over.
"""
import os
import sys

# Virtual machines announce instructions for bf16 that not all of them have; the reference need not be fast.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402


def check(folder):
    expected = load_file(f"{folder}/expected.safetensors")
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    problems = [f"{key}: {sorted(info[key])}" for key in ("missing_keys", "unexpected_keys") if info[key]]
    if info.get("mismatched_keys"):
        problems.append(f"mismatched_keys: {info['mismatched_keys']}")
    model.eval()
    with torch.no_grad():
        logits = model(expected["tokens"].long()[None]).logits[0].float()
    ours = expected["logits"][:, : logits.shape[1]]
    error = ((ours - logits).abs().max() / logits.abs().max()).item()
    bound = 2e-2 if model.dtype == torch.bfloat16 else 1e-5
    if not error <= bound:
        problems.append(f"logits differ by {error:.3g} of the largest, bound {bound:g}")
    print(f"{folder}: {type(model).__name__} {model.dtype} {error:.3g} {'; '.join(problems) or 'ok'}")
    return not problems


if __name__ == "__main__":
    results = [check(folder) for folder in sys.argv[1:]]
    sys.exit(0 if all(results) else 1)
