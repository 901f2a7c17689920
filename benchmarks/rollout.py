"""Tokens a second of the rollout engine against `model.generate`, same model, prompts and lengths.

    python -m benchmarks.rollout --model PATH --prompt 512 --prompts 2 --responses 8 --tokens 64
    python -m benchmarks.rollout --model random --prompt 150 --prompts 50 --lora 0

Prompts are random tokens and nothing stops a response early, so both sides do the same work. Prefill is the
time of a rollout of one token.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, LlamaForCausalLM

from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.hf import HFRollout
from creditlib.types import Prompt


class GivenTokens(PromptEncoder):
    """Prompts whose text is their token ids."""

    opened = ""

    def __init__(self) -> None:
        pass

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        return tuple(int(token) for token in (prompt.text or "").split())

    def decode(self, ids: Sequence[int], stop_ids: object = ()) -> str:
        return ""


def load(path: str, rank: int, device: str) -> Any:
    """A causal LM in float32; ``random`` is a Llama of 3 million parameters."""
    if path == "random":
        model: Any = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=1500,
                hidden_size=192,
                intermediate_size=512,
                num_hidden_layers=6,
                num_attention_heads=6,
                num_key_value_heads=3,
                max_position_embeddings=4096,
            )
        )
    else:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    if rank:
        model = get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear"))
    return model.to(device).eval()


def measure(call: Callable[[], object], repeats: int, device: str) -> float:
    """Median seconds of a call, after one to warm up."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="random", help="folder or hub id, or 'random'")
    parser.add_argument(
        "--lora", type=int, default=16, help="rank of the adapter on all linear layers, 0 for none"
    )
    parser.add_argument("--prompt", type=int, default=512, help="tokens a prompt")
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--responses", type=int, default=8, help="a prompt")
    parser.add_argument("--tokens", type=int, default=64, help="a response")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-generate", action="store_true", help="measure the engine alone")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = load(args.model, args.lora, args.device)
    vocabulary = model.config.vocab_size
    ids = torch.randint(0, vocabulary, (args.prompts, args.prompt))
    prompts = [
        Prompt(id=str(n), task="bench", text=" ".join(map(str, row))) for n, row in enumerate(ids.tolist())
    ]

    def rollout(tokens: int) -> Callable[[], object]:
        rows = args.prompts * args.responses
        engine = HFRollout(model, GivenTokens(), seed=0, max_tokens=tokens, eos_ids=(), rows=rows)
        return lambda: engine.generate(prompts, samples=args.responses, step=0)

    def generate(tokens: int) -> Callable[[], object]:
        config = GenerationConfig(
            do_sample=True,
            top_k=0,
            max_new_tokens=tokens,
            num_return_sequences=args.responses,
            pad_token_id=0,
        )
        model.generation_config = config
        inputs = ids.to(args.device)
        mask = torch.ones_like(inputs)
        return lambda: model.generate(input_ids=inputs, attention_mask=mask, generation_config=config)

    sampled = args.prompts * args.responses * args.tokens
    print(
        f"{args.model}, LoRA rank {args.lora}, {torch.get_num_threads()} threads, median of {args.repeats}:"
    )
    print(f"{args.prompts} prompts of {args.prompt} tokens, {args.responses} responses of {args.tokens} each")
    print(f"{'':<16}{'seconds':>9}{'prefill':>9}{'decode':>9}{'tokens/s':>10}")
    totals = []
    for name, build in (("creditlib", rollout), ("model.generate", generate)):
        if name == "model.generate" and args.no_generate:
            continue
        prefill = measure(build(1), args.repeats, args.device)
        total = measure(build(args.tokens), args.repeats, args.device)
        totals.append(total)
        print(f"{name:<16}{total:>9.2f}{prefill:>9.2f}{total - prefill:>9.2f}{sampled / total:>10.0f}")
    if len(totals) == 2:
        print(f"{totals[1] / totals[0]:.2f} times the speed of model.generate")


if __name__ == "__main__":
    main()
