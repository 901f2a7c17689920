"""Does a reward's distance lie where the reward is decided? MRTPO's replays on a policy's own responses.

    CREDITLIB_DATA=... python -m benchmarks.localization task=spider model=smollm2 model.path=runs/sft-...
    python -m benchmarks.localization                                # the embedded policy and sample
    python -m benchmarks.localization task=toolcall

The questions of the paper's Table 4: how much of a reward's distance lies on what its verifier reads (the
format's on the tags, a constraint's on the words that it is about), and for text-to-SQL, of queries that
return something else than the reference, how much of execution's distance lies on the tokens that differ from
it. Every response is replayed for every reward, whatever its advantage. Arguments are those of
`python -m creditlib.train`.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import torch

from creditlib import assemble, cli
from creditlib.analysis.localization import Case, localization, render
from creditlib.parts import build_task
from creditlib.policy.cpu import fast_float32_matmul
from creditlib.policy.load import context_length
from creditlib.policy.replay import SamplingPolicy
from creditlib.policy.scoring import Scorer
from creditlib.rewards.table import ROUNDING, build_table, cells_by_kind
from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.offsets import token_offsets, token_parts, tokens_in
from creditlib.trainer.contexts import TaskContexts
from creditlib.trainer.prompts import PromptStream
from creditlib.types import Replay, Span
from tasks.text2sql import Text2SQL
from verifiers.sql.parts import difference
from verifiers.sql.response import read_response

REPEATED = 32  # replays made a second time, alone, for the noise floor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=64)
    parser.add_argument("--samples", type=int, default=4, help="responses to each")
    options, overrides = parser.parse_known_args()
    assemble.quiet_libraries()
    config = cli.compose(overrides)
    with assemble.at_work(build_task(config.task)) as task:
        policy = assemble.build_policy(config.model, config.seed)
        encoder = assemble.build_encoder(policy, config.prompt)
        engine = assemble.build_engine(policy, encoder, config.rollout, config.seed)
        prompts = PromptStream(task.prompts("train"), config.seed).take(options.questions)
        rollout = engine.generate(prompts, samples=options.samples, step=0)
        table = build_table(rollout, task)
    unlimited = PromptEncoder(policy.tokenizer, config.prompt.style)
    contexts = TaskContexts(rollout, table, task, unlimited, context_length(policy.model))
    cells: list[tuple[int, int]] = []
    pairs: list[tuple[Replay, Replay]] = []
    for b in range(len(rollout.texts)):
        told = contexts.informed(b)
        for k, name in enumerate(table.names):
            one, other = contexts.replay(b, told), contexts.replay(b, told - {name})
            judged = not math.isnan(table.checks[b][k].score)  # as in the ledger's cases
            if judged and name in told and one is not None and other is not None:
                cells.append((b, k))
                pairs.append((one, other))
    with fast_float32_matmul():
        replayer = SamplingPolicy(Scorer(policy.model))
        again = [(one, one._replace(alone=True)) for one, _ in pairs[:: max(1, len(pairs) // REPEATED)]]
        divergences = replayer.divergences([*pairs, *again])
        half = SamplingPolicy(Scorer(policy.model.to(torch.bfloat16)))
        floor, floor_half = (
            torch.cat(found[len(pairs) :]).mean().sqrt().item()
            for found in (divergences, half.divergences([*pairs, *again]))
        )

    cases: list[Case] = []
    differing: list[Case] = []
    distances: dict[str, list[float]] = {}
    for (b, k), divergence_T in zip(cells, divergences[: len(pairs)], strict=True):
        kind, check = table.kind_BK[b][k], table.checks[b][k]
        distance_T = divergence_T.double().sqrt().numpy()
        distances.setdefault(kind, []).append(float(distance_T.mean()))
        if not distance_T.sum() > 0:
            continue
        text, length = rollout.texts[b], len(distance_T)
        offsets = token_offsets(policy.tokenizer, rollout.ids_BT[b, :length].tolist(), text)
        spans = rollout.in_texts(task.parts(rollout.opened + text))
        parts = token_parts(offsets, spans, len(text))
        read_T = tokens_in(offsets, check.spans, len(text)) if check.spans else None
        best = table.bounds_K2[k, 1].item()
        satisfied = check.score >= best - ROUNDING if math.isfinite(best) else None
        cases.append(Case(b, kind, satisfied, distance_T, read_T, parts))
        if isinstance(task, Text2SQL) and kind == "execution" and check.score == 0:
            gold = rollout.prompts[int(rollout.group_B[b])].reference["gold"]
            where_T = tokens_in(offsets, _differing(text, gold, (task.tags[0], task.tags[1])), len(text))
            differing.append(Case(b, "execution, differing tokens", False, distance_T, where_T, parts))

    scores = ", ".join(
        f"{kind} {table.scores_BK[cells].nanmean():.3f}"
        for kind, cells in cells_by_kind(table.kind_BK).items()
    )
    print(f"{len(rollout.texts)} responses to {len(prompts)} questions; {scores}")
    print("mean distances: " + ", ".join(f"{name} {np.mean(own):.4f}" for name, own in distances.items()))
    print(f"noise floor: {floor:.2e} in {config.model.dtype}, {floor_half:.2e} in bfloat16\n")
    for row in localization(differing):
        if row.outcome == "violated":
            print(
                f"{row.kind}, violated: {row.cases} cases, Dist. {row.distance:.1%}, Tok. {row.tokens:.1%}, "
                f"ratio {row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})\n"
            )
    print(render(cases))


def _differing(text: str, gold: str, tags: tuple[str, str]) -> list[Span]:
    """What of a response's query is not as in the reference query."""
    response = read_response(text, tags)
    found = difference(response.query, gold) if response.query else []
    return [Span(response.start + own.start, response.start + own.end, own.part) for own in found]


if __name__ == "__main__":
    main()
