"""The prefix tree against padded rows: forward and backward time, peak memory, and the difference of their
numbers.

    python -m benchmarks.scoring                          # SmolLM2, prompt 512, 8 responses of 64 tokens
    python -m benchmarks.scoring --prompt 50 --dtype bfloat16 --lora
"""

from __future__ import annotations

import argparse
import json
import time

import torch

from benchmarks.measure import in_new_process, median, peak_memory, random_prompt, reset_peak_memory, spread
from creditlib.assemble import quiet_libraries
from creditlib.config import LoraConfig, ModelConfig
from creditlib.policy.cpu import fast_float32_matmul
from creditlib.policy.load import load_policy
from creditlib.policy.scoring import Scorer


def measure(options: argparse.Namespace) -> None:
    """One packing, in this process; prints a JSON line."""
    quiet_libraries()
    lora = LoraConfig() if options.lora else None
    model = load_policy(ModelConfig(name=options.model, dtype=options.dtype, lora=lora)).model
    scorer = Scorer(model, options.packing)
    vocab = scorer.backbone.config.vocab_size
    prompt = random_prompt(options.prompt, vocab, 0)
    sequences = [prompt + random_prompt(options.tokens, vocab, 1 + r) for r in range(options.responses)]
    lengths, group = [options.tokens] * options.responses, [0] * options.responses
    model.train()
    seconds = []
    before = peak_memory()
    for run in range(1 + options.runs):
        if run == 0:
            reset_peak_memory()
        model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        with fast_float32_matmul():
            logps, _ = scorer.forward_sequences(sequences, lengths, group, width=options.tokens)
            loss = -logps.mean()
            loss.backward()
        if run:
            seconds.append(time.perf_counter() - start)
    squares = sum(float(p.grad.double().square().sum()) for p in model.parameters() if p.grad is not None)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "peak": peak_memory(),
                "before": before,
                "loss": loss.item(),
                "grad_norm": squares**0.5,
                "logps": logps.detach().flatten().tolist(),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", choices=["smollm2", "tiny"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float64"])
    parser.add_argument("--lora", action="store_true", help="adapters of rank 16 instead of all weights")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--responses", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--packing", choices=["tree", "padded"], help="measure one, in this process")
    options = parser.parse_args()
    if options.packing:
        measure(options)
        return
    names = ("model", "dtype", "prompt", "responses", "tokens", "runs")
    settings = [part for name in names for part in (f"--{name}", str(getattr(options, name)))]
    settings += ["--lora"] if options.lora else []
    result = {
        p: in_new_process("benchmarks.scoring", [*settings, "--packing", p]) for p in ("tree", "padded")
    }
    tree, padded = result["tree"], result["padded"]
    a, b = torch.tensor(tree["logps"]).double(), torch.tensor(padded["logps"]).double()
    trained = "LoRA r16" if options.lora else "all weights"
    print(f"{options.model} {options.dtype} {trained}, {torch.get_num_threads()} threads")
    print(f"prompt {options.prompt}, {options.responses} responses of {options.tokens} tokens")
    for name, side in result.items():
        memory = f"peak {side['peak']:.0f} MB ({side['before']:.0f} MB before the first pass)"
        print(f"{name:7} {spread(side['seconds'])}   {memory}")
    speed, memory = median(padded["seconds"]) / median(tree["seconds"]), tree["peak"] / padded["peak"]
    print(f"tree is {speed:.2f}x as fast, with {memory:.0%} of the peak memory")
    differences = {
        "log-probs": ((a - b).norm() / b.norm()).item(),
        "loss": abs(tree["loss"] / padded["loss"] - 1),
        "gradient norm": abs(tree["grad_norm"] / padded["grad_norm"] - 1),
    }
    print("relative differences: " + ", ".join(f"{name} {value:.1e}" for name, value in differences.items()))


if __name__ == "__main__":
    main()
