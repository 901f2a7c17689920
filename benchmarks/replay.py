"""MRTPO's replays: one forest of equal prefixes against each replay padded, and a plain forward pass.

    python -m benchmarks.replay                             # SmolLM2, K = 3, 4 prompts x 8 responses
    python -m benchmarks.replay --rewards 2,3,5,13 --information response
    python -m benchmarks.replay --dtype bfloat16 --lora

Every reward has an advantage in every response, so nothing is skipped. Sides take turns, run after run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import torch

from benchmarks.measure import median, peak_memory, random_prompt, reset_peak_memory, spread
from creditlib.assemble import quiet_libraries
from creditlib.config import LoraConfig, ModelConfig
from creditlib.policy.cpu import fast_float32_matmul
from creditlib.policy.divergence import js_divergence
from creditlib.policy.head import CHUNK
from creditlib.policy.load import load_policy
from creditlib.policy.modes import evaluating
from creditlib.policy.replay import SamplingPolicy
from creditlib.policy.scoring import Scorer
from creditlib.policy.tree import pad
from creditlib.types import Replay

Pair = tuple[Replay, Replay]


def make_pairs(options: argparse.Namespace, rewards: int, vocab: int) -> list[Pair]:
    """Leave-one-out pairs: each prompt, then the information of all rewards or of all but one, then the
    response."""
    pairs: list[Pair] = []
    for n in range(options.prompts):
        prompt = random_prompt(options.prompt, vocab, 1000 * n)
        for g in range(options.responses):
            response = random_prompt(options.tokens, vocab, 1000 * n + g + 1)
            # Information on a response is another one for each; information on the prompt is the same.
            own = 500 + (g * 20 if options.information == "response" else 0)
            facts = [random_prompt(options.facts, vocab, 1000 * n + own + k) for k in range(rewards)]
            everything = Replay(prompt + sum(facts, ()), response)
            for k in range(rewards):
                rest = sum((fact for i, fact in enumerate(facts) if i != k), ())
                pairs.append((everything, Replay(prompt + rest, response)))
    return pairs


@torch.no_grad()
def naive(scorer: Scorer, pairs: Sequence[Pair]) -> list[torch.Tensor]:
    """Every replay a padded row of its own, a response's K + 1 at a time; logits of the response alone."""
    rows: dict[Replay, torch.Tensor] = {}
    replays = list(dict.fromkeys(replay for pair in pairs for replay in pair))
    found = []
    with evaluating(scorer.model):
        for start in range(0, len(replays), 8):
            some = replays[start : start + 8]
            packed = pad([(*context, *response) for context, response, _ in some], scorer.device)
            hidden_RLD = scorer.hidden(packed)
            for row, (context, response, _) in enumerate(some):
                end = len(context) + len(response)
                rows[some[row]] = hidden_RLD[row, len(context) - 1 : end - 1]
        for one, other in pairs:
            found.append(js_divergence(scorer.head(rows[one]), scorer.head(rows[other])).float())
    return found


@torch.no_grad()
def plain(scorer: Scorer, pairs: Sequence[Pair]) -> None:
    """A forward pass over as many tokens as the replays have distinct ones, in rows as long as the longest
    replay, and the head where it must be.
    """
    replays = list(dict.fromkeys(replay for pair in pairs for replay in pair))
    contexts = {context for context, _, _ in replays}
    prefixes = {context[:n] for context in contexts for n in range(1, len(context) + 1)}
    scored = sum(len(response) for _, response, _ in replays)
    total, length = len(prefixes) + scored, max(len(r.context) + len(r.response) for r in replays)
    ids = torch.arange(total - total % length).view(-1, length) % 1000
    rows = 4096 // length  # as many tokens at a time as the forest has
    with evaluating(scorer.model):
        hidden = [
            scorer.backbone(input_ids=some, use_cache=False).last_hidden_state.flatten(0, 1)
            for some in ids.split(rows)
        ]
        for some in torch.cat(hidden)[:scored].split(CHUNK):
            scorer.head(some)


def measure(options: argparse.Namespace, rewards: int, scorer: Scorer) -> None:
    vocab = scorer.backbone.config.vocab_size
    pairs = make_pairs(options, rewards, vocab)
    policy = SamplingPolicy(scorer)
    sides: dict[str, Callable[[], object]] = {
        "forest": lambda: policy.divergences(pairs),
        "naive": lambda: naive(scorer, pairs),
        "plain": lambda: plain(scorer, pairs),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    peaks: dict[str, float] = {}
    with fast_float32_matmul():
        for run in range(options.runs):
            for name, side in sides.items():
                if options.skip_naive and name == "naive":
                    continue
                reset_peak_memory()
                start = time.perf_counter()
                side()
                seconds[name].append(time.perf_counter() - start)
                peaks[name] = max(peaks.get(name, 0.0), peak_memory())
            print(
                f"  run {run + 1}: " + ", ".join(f"{n} {t[-1]:.2f} s" for n, t in seconds.items() if t),
                flush=True,
            )
        error = 0.0
        if not options.skip_naive:
            both = (
                torch.cat(side)
                for side in (policy.divergences(pairs[:rewards]), naive(scorer, pairs[:rewards]))
            )
            one, other = both
            error = (one - other).abs().max().item()
    for name, values in seconds.items():
        if values:
            print(f"K = {rewards:2}  {name:7} {spread(values)}   peak {peaks[name]:.0f} MB")
    forest = median(seconds["forest"])
    print(
        f"K = {rewards:2}  forest takes {forest / median(seconds['plain']):.2f} x the plain forward and head",
        end="",
    )
    if seconds["naive"]:
        print(f", {forest / median(seconds['naive']):.1%} of the naive replay; JSD differs by {error:.1e}")
    else:
        print()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", choices=["smollm2", "tiny"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float64"])
    parser.add_argument("--lora", action="store_true", help="adapters of rank 16 instead of all weights")
    parser.add_argument("--rewards", default="3", help="numbers of rewards, with commas")
    parser.add_argument(
        "--information", default="prompt", choices=["prompt", "response"], help="on what it is"
    )
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--responses", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=512, help="tokens")
    parser.add_argument("--facts", type=int, default=64, help="tokens of a reward's information")
    parser.add_argument("--tokens", type=int, default=64, help="of a response")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--skip-naive", action="store_true", help="it takes long with many rewards")
    options = parser.parse_args()
    quiet_libraries()
    lora = LoraConfig() if options.lora else None
    model = load_policy(ModelConfig(name=options.model, dtype=options.dtype, lora=lora)).model
    trained = "LoRA r16" if options.lora else "all weights"
    print(f"{options.model} {options.dtype} {trained}, {torch.get_num_threads()} threads")
    print(f"{options.prompts} prompts of {options.prompt} tokens")
    print(f"{options.responses} responses to each, of {options.tokens} tokens")
    print(f"{options.facts} tokens of information a reward, on the {options.information}")
    for rewards in map(int, options.rewards.split(",")):
        measure(options, rewards, Scorer(model))


if __name__ == "__main__":
    main()
