"""What credit=datc adds to a step with a reward model's reward and uniform credit.

    python -m benchmarks.datc                       # SmolLM2 both, prompt 256, 8 x 8 responses of 128 tokens
    python -m benchmarks.datc --prompt 64 --tokens 32 --runs 2

Both sides compute old log-probabilities, as the paper's do for its sampler correction. Steps take turns; peak
memory is measured in a process of its own for each side. What DATC adds is compared with its least: the
reward model's backward pass over the responses' positions (timed within the step), and two products of all
tokens with an embedding of the vocabulary's size.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import in_new_process, median, peak_memory, spread
from benchmarks.step import TextTask, policy_for, prompt_texts
from creditlib.assemble import quiet_libraries
from creditlib.config import ModelConfig, RunConfig
from creditlib.policy.cpu import fast_float32_matmul
from creditlib.policy.load import Policy
from creditlib.policy.load_reward import new_reward_model
from creditlib.policy.reward_scorer import RewardScorer
from creditlib.rewards.models import RewardModel
from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.hf import HFRollout

CHUNK = 128  # tokens of a product at a time, as in the strategy
JUDGED = ("verify", "score", "credit")  # stations in which the two sides differ


class Prompts(TextTask):
    """The prompts alone; the reward model judges."""

    reward_names = ()  # type: ignore[assignment]
    bounds = {}  # noqa: RUF012

    def verify(self, prompts: Any, texts: Any) -> Any:
        return [{} for _ in texts]


def make_trainer(options: argparse.Namespace, credit: str, policy: Policy, model: RewardModel) -> Any:
    from accelerate import Accelerator

    from creditlib.trainer.loop import Trainer
    from creditlib.trainer.progress import Display

    task = Prompts(prompt_texts(policy.tokenizer, options.prompt, options.prompts * (options.runs + 1)))
    config = RunConfig.parse(
        {
            "task": {"_target_": "benchmarks.datc.Prompts"},
            "credit": {"name": credit},
            "advantage": {"name": "grpo", "std": "population"},
            "loss": {"name": "grpo", "correction": "token_truncate"},
            "model": {"name": "smollm2"},
            "prompt": {"style": "text"},
            "rollout": {"max_tokens": options.tokens},
            "trainer": {
                "steps": options.runs + 1,
                "prompts_per_step": options.prompts,
                "responses_per_prompt": options.responses,
                "micro_batch": options.micro_batch,
                "learning_rate": 1e-5,
            },
            "eval": {"limit": 0},
            "log": {"samples": 0, "progress": False},
            "run": {"dir": "unused"},
        }
    )
    # No stop tokens: every response has exactly options.tokens tokens.
    engine = HFRollout(
        policy.model, PromptEncoder(policy.tokenizer, "text"), seed=0, max_tokens=options.tokens, eos_ids=()
    )
    return Trainer(
        config,
        task,
        policy,
        engine,
        Accelerator(cpu=True),
        None,
        Display(quiet=True),
        reward_models={"preference": model},
    )


def make_reward_model(options: argparse.Namespace) -> RewardModel:
    model, tokenizer = new_reward_model(ModelConfig(name="smollm2", dtype=options.dtype))
    torch.manual_seed(1)
    torch.nn.init.normal_(model.score.weight, std=0.05)  # a head of 0 would have no gradient
    return RewardModel(RewardScorer(model, "smollm2 with a random head"), tokenizer, len(tokenizer))


@contextmanager
def timed_backward(seconds: list[float]) -> Iterator[None]:
    """Adds up the time of `torch.autograd.grad`, which only the reward model's backward pass calls."""
    own = torch.autograd.grad

    def timed(*arguments: Any, **settings: Any) -> Any:
        start = time.perf_counter()
        try:
            return own(*arguments, **settings)
        finally:
            seconds[-1] += time.perf_counter() - start

    torch.autograd.grad = timed
    try:
        yield
    finally:
        torch.autograd.grad = own


@torch.no_grad()
def two_products(tokens: int, weight_VD: Tensor) -> float:
    """Seconds that two products of so many tokens with an embedding take, a few tokens at a time."""
    rows_MD = torch.randn(CHUNK, weight_VD.shape[1], dtype=weight_VD.dtype)
    start = time.perf_counter()
    for _ in range(2 * tokens // CHUNK):
        rows_MD @ weight_VD.T
    return time.perf_counter() - start


def measure(options: argparse.Namespace) -> None:
    policy, model = policy_for(options.dtype), make_reward_model(options)
    sides = {credit: make_trainer(options, credit, policy, model) for credit in ("uniform", "datc")}
    tokens = options.prompts * options.responses * options.tokens
    seconds: dict[str, list[dict[str, float]]] = {credit: [] for credit in sides}
    backward: list[float] = []
    products: list[float] = []
    with fast_float32_matmul():
        for run in range(options.runs + 1):  # the first one is not counted
            for credit, trainer in sides.items():
                backward.append(0.0)
                with timed_backward(backward):
                    start = time.perf_counter()
                    metrics = trainer.step(run + 1)
                    whole = time.perf_counter() - start
                if credit == "uniform":
                    backward.pop()
                stations = {key: value for key, value in metrics.items() if key.startswith("seconds/")}
                seconds[credit].append({"whole": whole, **stations})
            products.append(two_products(tokens, model.embedding_VE))
            shown = {credit: f"{own[-1]['whole']:.1f} s" for credit, own in seconds.items()}
            print(f"  run {run}: {shown}, backward {backward[-1]:.2f} s", flush=True)
    judged, without, whole_step = (
        {credit: [count(row) for row in own[1:]] for credit, own in seconds.items()}
        for count in (
            lambda row: sum(row[f"seconds/{name}"] for name in JUDGED),
            lambda row: row["whole"] - row["seconds/rollout"],
            lambda row: row["whole"],
        )
    )
    for credit, own in seconds.items():
        parts = {key.removeprefix("seconds/"): median([row[key] for row in own[1:]]) for key in own[0]}
        print(f"{credit:8} " + ", ".join(f"{name} {value:.2f} s" for name, value in parts.items()))
    extra = median(judged["datc"]) - median(judged["uniform"])
    least = median(backward[1:]) + median(products[1:])
    print(
        f"judging, scoring and credit: uniform {spread(judged['uniform'])}, datc {spread(judged['datc'])}\n"
        f"one backward pass {spread(backward[1:])}, two products {spread(products[1:])}\n"
        f"datc adds {extra:.2f} s, {extra / least:.2f} x the two; "
        f"a step without generation takes {median(without['datc']) / median(without['uniform']):.3f} x, "
        f"with it {median(whole_step['datc']) / median(whole_step['uniform']):.3f} x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--responses", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=256, help="tokens")
    parser.add_argument("--tokens", type=int, default=128, help="of a response")
    parser.add_argument("--micro-batch", type=int, default=32, help="responses of one update pass")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--memory", choices=["uniform", "datc"], help="peak of one side, in this process")
    options = parser.parse_args()
    quiet_libraries()
    if options.memory:
        policy, model = policy_for(options.dtype), make_reward_model(options)
        with fast_float32_matmul():
            make_trainer(options, options.memory, policy, model).step(1)
        print(json.dumps({"peak": peak_memory()}))
        return
    settings: list[str] = []
    for name in ("prompts", "responses", "prompt", "tokens", "micro_batch", "runs", "dtype"):
        settings += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    peaks = {  # first: this process keeps the memory of what it measures
        side: in_new_process("benchmarks.datc", [*settings, "--memory", side])["peak"]
        for side in ("uniform", "datc")
    }
    print(
        f"peak memory: uniform {peaks['uniform']:.0f} MB, datc {peaks['datc']:.0f} MB, "
        f"{peaks['datc'] / peaks['uniform']:.2f} x"
    )
    measure(options)


if __name__ == "__main__":
    main()
