"""One training step (sample, judge, credit, update) against TRL's GRPOTrainer with the same settings.

    python -m benchmarks.step --against trl    # SmolLM2, LoRA r16, fp32, 2 prompts x 8 responses of 64 tokens
    python -m benchmarks.step --against trl --prompt 512
    python -m benchmarks.step --against mrtpo --prompt 512    # our step against the same with credit=mrtpo

Both sample exactly `--tokens` tokens a response, so that they do the same work; two rewards, normalised
apart. Each side runs in a process of its own. Needs `pip install creditlib[trl]` for the other one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from benchmarks.measure import in_new_process, median, peak_memory, random_prompt, spread
from creditlib.assemble import quiet_libraries
from creditlib.config import LoraConfig, ModelConfig, RunConfig
from creditlib.policy.cpu import fast_float32_matmul
from creditlib.policy.load import Policy, load_policy, resolve
from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.hf import HFRollout
from creditlib.types import Check, Prompt

PROMPTS, RESPONSES = 2, 8


def vowels(text: str) -> float:
    return sum(character in "aeiou" for character in text) / max(len(text), 1)


def words(text: str) -> float:
    return min(len(text.split()), 50) / 50


def policy_for(dtype: str) -> Policy:
    torch.manual_seed(0)
    return load_policy(ModelConfig(name="smollm2", dtype=dtype, lora=LoraConfig()))


def plain_model(dtype: str) -> tuple[Any, Any]:
    """The same weights and adapter, loaded as anyone would with transformers and peft."""
    import peft
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    source, lora = resolve(ModelConfig(name="smollm2")), LoraConfig()
    model = AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype))
    adapter = peft.LoraConfig(
        r=lora.r, lora_alpha=lora.alpha, target_modules=lora.targets, task_type="CAUSAL_LM"
    )
    return peft.get_peft_model(model, adapter), AutoTokenizer.from_pretrained(source)


def prompt_texts(tokenizer: Any, tokens: int, count: int) -> list[str]:
    """Texts that are `tokens` tokens long, give or take what re-tokenising changes."""
    return [tokenizer.decode(random_prompt(tokens, 40000, seed)) for seed in range(count)]


class TextTask:
    """Prompts as plain text, two rewards of their form, and something to tell of each in replays."""

    name = "benchmark"
    reward_names = ("vowels", "words")
    bounds: Mapping[str, tuple[float, float]] = {"vowels": (0.0, 1.0), "words": (0.0, 1.0)}
    eval_splits: tuple[str, ...] = ()

    def __init__(self, texts: Sequence[str]) -> None:
        self._prompts = [Prompt(f"p{n}", self.name, text=text) for n, text in enumerate(texts)]

    def prompts(self, split: str) -> list[Prompt]:
        return self._prompts

    def target(self, prompt: Prompt) -> str:
        return ""

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        """Some 60 tokens a reward, the same for all responses."""
        return {name: f"\n{name}: {'as many of them as there can be ' * 7}" for name in self.reward_names}

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        return replace(prompt, text="".join([prompt.text or "", *information.values()]))

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        return [{"vowels": Check(vowels(text)), "words": Check(words(text))} for text in texts]

    def close(self) -> None: ...


def ours(options: argparse.Namespace, credit: str) -> tuple[list[float], list[dict[str, float]]]:
    from accelerate import Accelerator

    from creditlib.trainer.loop import Trainer
    from creditlib.trainer.progress import Display

    policy = policy_for(options.dtype)
    task = TextTask(prompt_texts(policy.tokenizer, options.prompt, PROMPTS * (options.steps + 1)))
    config = RunConfig.parse(
        {
            "task": {"_target_": "benchmarks.step.TextTask"},
            "credit": {"name": credit},
            "advantage": {"name": "gdpo"},
            "loss": {"name": "grpo"},
            "model": {"name": "smollm2"},
            "prompt": {"style": "text"},
            "rollout": {"max_tokens": options.tokens},
            "trainer": {
                "steps": options.steps + 1,
                "prompts_per_step": PROMPTS,
                "responses_per_prompt": RESPONSES,
                "learning_rate": 1e-5,
            },
            "eval": {"limit": 0},
            "log": {"samples": 0, "progress": False},
            "run": {"dir": "unused"},
        }
    )
    # No stop tokens: every response has exactly options.tokens tokens.
    encoder = PromptEncoder(policy.tokenizer, "text")
    engine = HFRollout(policy.model, encoder, seed=0, max_tokens=options.tokens, eos_ids=())
    trainer = Trainer(config, task, policy, engine, Accelerator(cpu=True), None, Display(quiet=True))
    seconds, stations = [], []
    for step in range(1, options.steps + 2):
        start = time.perf_counter()
        with fast_float32_matmul():
            metrics = trainer.step(step)
        seconds.append(time.perf_counter() - start)
        stations.append({key: value for key, value in metrics.items() if key.startswith("seconds/")})
    return seconds[1:], stations[1:]


def trl(options: argparse.Namespace) -> tuple[list[float], list[dict[str, float]]]:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = plain_model(options.dtype)
    texts = prompt_texts(tokenizer, options.prompt, PROMPTS * (options.steps + 1))
    marks: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            marks.append(time.perf_counter())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append(time.perf_counter())

    # A step begins before its batch is fetched only in the loop's own accounting, so a step is timed from the
    # end of the one before to its own end: everything between is its work (sampling happens while the batch
    # is prepared).
    config = GRPOConfig(
        output_dir="/tmp/trl-step-benchmark",
        per_device_train_batch_size=options.trl_batch,
        num_generations=RESPONSES,
        gradient_accumulation_steps=PROMPTS * RESPONSES // options.trl_batch,
        max_completion_length=options.tokens,
        generation_kwargs={"min_new_tokens": options.tokens},
        max_steps=options.steps + 1,
        learning_rate=1e-5,
        temperature=1.0,
        beta=0.0,
        loss_type="grpo",
        multi_objective_aggregation="normalize_then_sum",
        gradient_checkpointing=False,
        use_cpu=True,
        bf16=options.dtype == "bfloat16",
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1000,
    )
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[
            lambda completions, **_: [vowels(text) for text in completions],
            lambda completions, **_: [words(text) for text in completions],
        ],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": texts}),
        callbacks=[Clock()],
    )
    trainer.train()
    ends = marks[1::2]
    return [after - before for before, after in itertools.pairwise(ends)], []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", choices=["trl", "mrtpo"], help="the other side; without: only ours")
    parser.add_argument("--prompt", type=int, default=50, help="tokens of each prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each response")
    parser.add_argument("--steps", type=int, default=5, help="timed steps, after one that is not")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument(
        "--trl-batch",
        type=int,
        default=PROMPTS * RESPONSES,
        help="responses TRL trains on at once; less to fit",
    )
    parser.add_argument("--side", choices=["ours", "trl", "mrtpo"], help="measure one side, in this process")
    options = parser.parse_args()
    if options.side:
        quiet_libraries()
        if options.side == "trl":
            seconds, stations = trl(options)
        else:
            seconds, stations = ours(options, "mrtpo" if options.side == "mrtpo" else "uniform")
        print(json.dumps({"seconds": seconds, "peak": peak_memory(), "stations": stations}))
        return
    settings = []
    for name in ("prompt", "tokens", "steps", "dtype", "trl_batch"):
        settings += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    results: dict[str, Any] = {}
    for side in ["ours", *([options.against] if options.against else [])]:
        results[side] = in_new_process("benchmarks.step", [*settings, "--side", side])
        print(f"{side:5} {spread(results[side]['seconds'])} a step   peak {results[side]['peak']:.0f} MB")
    for side in results.keys() - {"trl"}:
        stations = results[side]["stations"]
        parts = {key.removeprefix("seconds/"): median([row[key] for row in stations]) for key in stations[0]}
        print(f"{side} by station: " + ", ".join(f"{name} {value:.2f} s" for name, value in parts.items()))
    if options.against:
        other = results[options.against]
        speed = median(other["seconds"]) / median(results["ours"]["seconds"])
        memory = results["ours"]["peak"] / other["peak"]
        print(f"{speed:.2f}x as fast as {options.against}, with {memory:.0%} of its peak memory")


if __name__ == "__main__":
    main()
