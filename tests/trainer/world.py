"""A small world to train in: a random model, a word tokenizer, a task of words, scripted responses."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from creditlib.config import RunConfig
from creditlib.policy.load import Policy
from creditlib.policy.reward_scorer import RewardScorer
from creditlib.rewards.models import RewardModel
from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.hf import HFRollout
from creditlib.trainer.checkpoint import RunDirectory
from creditlib.trainer.loop import Trainer
from creditlib.trainer.progress import Display
from creditlib.types import Check, Finish, Prompt, Rollout
from tests.conftest import random_model, random_reward_model

VOCABULARY = 61
EOS = 2
LONGEST = 7

OPEN_SECTIONS = {"credit": "uniform", "advantage": "gdpo", "loss": "grpo"}


def tokenizer() -> PreTrainedTokenizerFast:
    """Token i > 2 is the word ``wi``."""
    words = ["<pad>", "<s>", "</s>", *(f"w{i}" for i in range(3, VOCABULARY))]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<pad>"
    )


def prompts(count: int, split: str = "train") -> list[Prompt]:
    """Prompts of 3 to 7 words."""
    shift = 0 if split == "train" else 29
    return [
        Prompt(
            f"{split}/{n}",
            "words",
            text=" ".join(f"w{3 + (7 * n + i * i + shift) % 58}" for i in range(3 + n % 5)),
        )
        for n in range(count)
    ]


class Words:
    """Rewards of a response: the share of words with an even number, whether it is short, and one that
    applies to some prompts alone. A response that holds the word w9 gets no reward at all."""

    name = "words"
    reward_names = ("even", "short", "rare")
    bounds: Mapping[str, tuple[float, float]] = {"even": (0.0, 1.0), "short": (0.0, 1.0), "rare": (-1.0, 1.0)}
    eval_splits = ("held",)

    def __init__(self, count: int = 12) -> None:
        self._prompts = {"train": prompts(count), "held": prompts(7, "held")}

    def prompts(self, split: str) -> list[Prompt]:
        return self._prompts[split]

    def target(self, prompt: Prompt) -> str:
        return "w4 w6"

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        return [self._judge(prompt, text.split()) for prompt, text in zip(prompts, texts, strict=True)]

    def close(self) -> None: ...

    def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
        if "w9" in words:
            return {name: Check(math.nan, "forbidden") for name in self.reward_names}
        numbers = [int(word.strip("w</s>pad") or 0) for word in words]
        even = sum(number % 2 == 0 for number in numbers) / max(len(numbers), 1)
        found = {
            "even": Check(even, "counted", flags=("data:odd",) if even == 0 else ()),
            "short": Check(float(len(numbers) < 4)),
        }
        if len(prompt.text or "") % 2:
            found["rare"] = Check(sum(numbers) % 3 - 1.0)
        return found


class Informed(Words):
    """Tells words of its own for two of its rewards; the third has nothing to tell."""

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        found = {"even": "w4 w6", "short": f"w{3 + len(prompt.id) % 40} w50 w51"}
        return {name: text for name, text in found.items() if checks[name].score == checks[name].score}

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        return dataclasses.replace(prompt, text=" ".join([prompt.text or "", *information.values()]))


class Slots(Words):
    """Two slots that mean something else on each prompt, and on every third prompt one of them is empty."""

    reward_names = ("slot_1", "slot_2")
    bounds: Mapping[str, tuple[float, float]] = {"slot_1": (0.0, 1.0), "slot_2": (0.0, 1.0)}

    def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
        number = int(prompt.id.rpartition("/")[2])
        kinds = ("odd", "short") if number % 2 else ("short", "even")
        first = len(words[0]) % 2 if words else 0
        scores = {"odd": float(first), "even": 1.0 - first, "short": float(len(words) < 4)}
        found = {
            name: Check(scores[kind], kind=kind) for name, kind in zip(self.reward_names, kinds, strict=True)
        }
        return found if number % 3 else {**found, "slot_2": Check(math.nan, kind="")}


class Scripted:
    """Responses that depend on the prompt's id and the step alone; some are truncated, some unscored."""

    def __init__(self, temperature: float = 1.0) -> None:
        self._temperature = temperature

    def generate(
        self, prompts: Sequence[Prompt], *, samples: int, step: int, greedy: bool = False
    ) -> Rollout:
        encoder = PromptEncoder(tokenizer(), "text")
        rows: list[list[int]] = []
        finish: list[Finish] = []
        noise: list[float] = []
        for prompt in prompts:
            for sample in range(samples):
                generator = random.Random(f"{prompt.id} {step} {sample}")
                length = generator.randrange(1, LONGEST)
                ids = [generator.choice([i for i in range(3, 40) if i != 9]) for _ in range(length)]
                if sample == 1 and generator.random() < 0.5:
                    ids[0] = 9
                stopped = generator.random() < 0.7
                finish.append("stop" if stopped else "length")
                rows.append([*ids, EOS] if stopped else ids)
                noise.append(generator.uniform(-4.2, -4.0))
        width = max(map(len, rows))
        mask_BT = torch.tensor([[t < len(row) for t in range(width)] for row in rows])
        return Rollout(
            prompts=tuple(prompts),
            prompt_ids=tuple(encoder.encode(prompt) for prompt in prompts),
            group_B=torch.arange(len(prompts)).repeat_interleave(samples),
            ids_BT=torch.tensor([row + [0] * (width - len(row)) for row in rows]),
            mask_BT=mask_BT,
            texts=tuple(encoder.decode(row, {EOS}) for row in rows),
            sampler_logps_BT=torch.tensor(noise)[:, None] * mask_BT,
            sampler_mass_BT=torch.ones(mask_BT.shape),
            finish=tuple(finish),
            temperature=self._temperature,
        )


def policy(
    *, dtype: torch.dtype = torch.float64, lora: bool = False, dropout: float = 0.0, tied: bool = False
) -> Policy:
    model = random_model("llama", dtype, vocab=VOCABULARY)
    if tied:
        model.config.tie_word_embeddings = True
        model.tie_weights()
    if lora:
        torch.manual_seed(1)
        settings = LoraConfig(
            r=2, lora_alpha=4, lora_dropout=dropout, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        model = get_peft_model(model, settings)
        if dtype == torch.float64:
            model = model.double()
    elif dropout:
        model.config.attention_dropout = dropout
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = dropout
    return Policy(model, tokenizer(), "random")


def engine(policy: Policy, *, max_tokens: int = LONGEST, seed: int = 0) -> HFRollout:
    encoder = PromptEncoder(policy.tokenizer, "text")
    return HFRollout(policy.model, encoder, seed=seed, max_tokens=max_tokens, eos_ids=(EOS, 5, 8, 11, 14))


def config(folder: Path | str = "unused", **settings: Any) -> RunConfig:
    """Settings as ``trainer__steps=3``; a name alone chooses a part: ``loss="dapo"``."""
    values: dict[str, Any] = {
        "task": {"_target_": "tests.trainer.world.Words"},
        **{section: {"name": name} for section, name in OPEN_SECTIONS.items()},
        "model": {"name": "tiny"},
        "prompt": {"style": "text"},
        "rollout": {"max_tokens": LONGEST},
        "trainer": {
            "steps": 4,
            "prompts_per_step": 4,
            "responses_per_prompt": 4,
            "learning_rate": 1e-3,
            "max_grad_norm": None,
            "checkpoint_every": 2,
        },
        "eval": {"limit": 0},
        "log": {"samples": 0, "progress": False},
        "run": {"dir": str(folder)},
    }
    for key, value in settings.items():
        section, _, name = key.partition("__")
        if name:
            values[section][name] = value
        else:
            values[section] = {"name": value} if section in OPEN_SECTIONS else value
    return RunConfig.parse(values)


def trainer(
    run: RunConfig,
    policy: Policy,
    *,
    task: Any = None,
    engine: Any = None,
    directory: RunDirectory | None = None,
    display: Display | None = None,
    models: Mapping[str, RewardModel] | None = None,
) -> Trainer:
    display = display or Display(quiet=True)
    accelerator, engine = Accelerator(cpu=True), engine or Scripted()
    return Trainer(
        run, task or Words(), policy, engine, accelerator, directory, display, reward_models=models
    )


def reward_model(differences: str = "", family: str = "llama") -> RewardModel:
    """Random, of the policy's vocabulary."""
    scorer = RewardScorer(random_reward_model(family, vocab=VOCABULARY), "a random reward model")
    return RewardModel(scorer, tokenizer(), VOCABULARY, differences)


def updates_of(run: Trainer, steps: int = 1) -> tuple[list[torch.Tensor], list[dict[str, float]]]:
    """The gradient of each optimizer update, flat, and the metrics of each step without times."""
    gradients: list[torch.Tensor] = []
    step = run.optimizer.step

    def recorded(learning_rate: float) -> None:
        gradients.append(
            torch.cat([p.grad.flatten().clone() for p in run.optimizer.parameters if p.grad is not None])
        )
        step(learning_rate)

    run.optimizer.step = recorded  # type: ignore[method-assign]
    metrics = [without_times(run.step(number)) for number in range(1, steps + 1)]
    return gradients, metrics


def without_times(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.startswith("seconds/")}


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return 0.0 if torch.equal(a, b) else float((a - b).norm() / b.norm())


@contextlib.contextmanager
def run_folder(run: RunConfig) -> Iterator[RunDirectory]:
    directory = RunDirectory(Path(run.run.dir), run.model_dump(mode="json"))
    try:
        yield directory
    finally:
        directory.close()
