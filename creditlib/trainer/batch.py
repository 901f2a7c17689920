"""What all processes together know of a step: rewards, groups, lengths and advantages, without the tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creditlib.advantage.whitening import Whitening
from creditlib.rewards.table import applicable_rewards, cells_by_kind, earned_B, perfect_B, varying_rewards
from creditlib.trainer.processes import Processes
from creditlib.types import AdvantageRule, Advantages, RewardTable, Rollout, TokenCredit


@dataclass(frozen=True)
class GlobalBatch:
    """Rows of all processes, ordered by group, so that the number of processes changes no sum. On the CPU.

    `local_B` are the rows of this process, in the order of its own rollout.
    """

    names: tuple[str, ...]
    scores_BK: Tensor
    group_B: Tensor  # numbers of prompts, unique over processes
    kind_BK: list[tuple[str, ...]]
    bounds_K2: Tensor
    lengths_B: Tensor
    truncated_B: Tensor
    flags: Counter[str]
    raw_means: Mapping[str, float]  # of rewards of which something was taken off: what they were before
    local_B: Tensor

    @staticmethod
    def gather(
        rollout: Rollout, table: RewardTable, numbers: Sequence[int], processes: Processes
    ) -> GlobalBatch:
        """Collect from all processes; `numbers[n]` is the global number of this process's prompt n."""
        groups = [numbers[n] for n in rollout.group_B.tolist()]
        truncated = [finish == "length" for finish in rollout.finish]
        own = list(
            zip(
                groups,
                table.scores_BK.tolist(),
                table.kind_BK,
                rollout.lengths_B.tolist(),
                truncated,
                strict=True,
            )
        )
        flags = Counter(flag for row in table.checks for check in row for flag in check.flags)
        raws = [(name, row[k].raw) for row in table.checks for k, name in enumerate(table.names)]
        parts = processes.gather((own, flags, [(name, raw) for name, raw in raws if raw is not None]))
        rows = [(rank, row) for rank, (theirs, _, _) in enumerate(parts) for row in theirs]
        order = sorted(
            range(len(rows)), key=lambda i: rows[i][1][0]
        )  # stable: a group's rows keep their order
        ordered = [rows[i][1] for i in order]
        return GlobalBatch(
            table.names,
            torch.tensor([scores for _, scores, _, _, _ in ordered]).view(len(ordered), len(table.names)),
            torch.tensor([group for group, _, _, _, _ in ordered], dtype=torch.long),
            [kinds for _, _, kinds, _, _ in ordered],
            table.bounds_K2,
            torch.tensor([length for _, _, _, length, _ in ordered]),
            torch.tensor([cut for _, _, _, _, cut in ordered], dtype=torch.bool),
            sum((theirs for _, theirs, _ in parts), Counter()),
            _means(pair for _, _, theirs in parts for pair in theirs),
            torch.tensor(order, dtype=torch.long).argsort()[[rank == processes.rank for rank, _ in rows]],
        )

    def advantages(self, rule: AdvantageRule, device: torch.device) -> Advantages:
        """The rule over the whole batch; this process's rows of what it gives."""
        everyone = rule(self.scores_BK, self.group_B, self.bounds_K2, self.kind_BK)
        return Advantages(
            everyone.by_reward_BK[self.local_B].to(device), everyone.offset_B[self.local_B].to(device)
        )

    def varying_groups(self, weights: Sequence[float]) -> list[int]:
        """Groups in which a reward of some weight differs between responses: the others can teach nothing."""
        trained_K = torch.tensor([weight != 0 for weight in weights])
        varies_N = (varying_rewards(self.scores_BK, self.group_B) & trained_K).any(1)
        numbers: list[int] = self.group_B.unique()[varies_N].tolist()
        return numbers

    def metrics(self) -> dict[str, float]:
        """Over all responses of the step: mean rewards, share of groups without spread, lengths, flags. Where
        a column means something else in each row, they go by what it means.
        """
        _, group_of_B = self.group_B.unique(return_inverse=True)
        varies_NK = varying_rewards(self.scores_BK, self.group_B)
        applies_NK = applicable_rewards(self.scores_BK, self.group_B)
        metrics: dict[str, float] = {}
        for kind, (rows, columns) in cells_by_kind(self.kind_BK).items():
            values_C = self.scores_BK[rows, columns].double()
            groups, of = torch.stack([group_of_B[rows], torch.tensor(columns)], 1).unique(
                dim=0, return_inverse=True
            )
            varies_M, applies_M = (own_NK[groups[:, 0], groups[:, 1]] for own_NK in (varies_NK, applies_NK))
            metrics[f"reward/{kind}"] = values_C.nanmean().item()
            metrics[f"zero_spread/{kind}"] = 1.0 - varies_M[applies_M].double().mean().item()
            metrics[f"spread/{kind}"] = _spread(values_C, of)
        metrics["response/tokens"] = self.lengths_B.double().mean().item()
        metrics["response/truncated"] = self.truncated_B.double().mean().item()
        metrics["response/unscored"] = self.scores_BK.isnan().all(1).double().mean().item()
        metrics["response/earned"] = earned_B(self.scores_BK, self.bounds_K2).nanmean().item()
        metrics["response/perfect"] = perfect_B(self.scores_BK, self.bounds_K2).nanmean().item()
        metrics |= {f"raw/{name}": mean for name, mean in self.raw_means.items()}
        return metrics | {f"flag/{flag}": float(count) for flag, count in sorted(self.flags.items())}


def _spread(values_C: Tensor, group_of_C: Tensor) -> float:
    """Median over groups of their population standard deviation; NaN where there is none."""
    groups = [values_C[group_of_C == group] for group in group_of_C.unique()]
    stds = [valid.std(correction=0) for own in groups if len(valid := own[~own.isnan()])]
    return torch.stack(stds).median().item() if stds else math.nan


def _means(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Of the values of each name, added up without rounding, so in any order."""
    values: dict[str, list[float]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: math.fsum(own) / len(own) for name, own in values.items()}


def whitening_over_processes(advantages_BT: Tensor, mask_BT: Tensor, processes: Processes) -> Whitening:
    """With the statistics of the tokens of all processes."""
    return Whitening.over(torch.cat(processes.gather(advantages_BT[mask_BT].cpu())))


def credit_metrics(
    credit: TokenCredit,
    advantages: Advantages,
    advantages_BT: Tensor,
    counted_BT: Tensor,
    processes: Processes,
) -> dict[str, float]:
    """How concentrated the weights are, the final token advantages, and the strategy's diagnostics.

    Weights are looked at where a response has an advantage from the reward: elsewhere they move nothing.
    Their effective sample size over the number of tokens is 1 where they are uniform. Diagnostics are
    averaged over processes, by their number of responses.
    """
    rows_B = counted_BT.any(1)
    matters_BK = (advantages.by_reward_BK.to(rows_B.device) != 0) & rows_B[:, None]
    weights_MT = (credit.weights_BKT * counted_BT[:, None])[matters_BK]
    square_M = weights_MT.square().sum(1).clamp(min=torch.finfo(weights_MT.dtype).tiny)
    length_M = counted_BT.sum(1, keepdim=True).expand_as(matters_BK)[matters_BK]
    ess_M = weights_MT.sum(1).square() / square_M / length_M
    token_T = advantages_BT[counted_BT].double()
    added_T = token_T[:0] if credit.bonus_BT is None else credit.bonus_BT[counted_BT].double()
    rows = int(rows_B.sum())
    sums = [
        float(rows),
        float(len(ess_M)),
        ess_M.double().sum().item(),
        float(len(token_T)),
        token_T.sum().item(),
        token_T.square().sum().item(),
        float(len(added_T)),
        added_T.sum().item(),
        added_T.square().sum().item(),
    ]
    parts = processes.gather(
        (sums, weights_MT.amax().item() if len(ess_M) else -math.inf, dict(credit.diagnostics))
    )
    columns = zip(*(part for part, _, _ in parts), strict=True)
    count, weighted, ess, tokens, total, square, *added = map(math.fsum, columns)
    if not count:
        return {}
    mean = total / tokens
    metrics = {
        # 1: a step without advantages spreads nothing unevenly
        "credit/ess": ess / weighted if weighted else 1.0,
        "credit/max_weight": max(heaviest for _, heaviest, _ in parts) if weighted else 1.0,
        "advantage/mean": mean,
        "advantage/std": math.sqrt(max(square / tokens - mean * mean, 0.0)),
    }
    if added[0]:
        metrics["credit/added"] = math.sqrt(max(added[2] / added[0] - (added[1] / added[0]) ** 2, 0.0))
    for name in dict.fromkeys(name for _, _, diagnostics in parts for name in diagnostics):
        named = [
            (part[0], diagnostics[name]) for part, _, diagnostics in parts if part[0] and name in diagnostics
        ]
        if named:
            metrics[f"credit/{name}"] = sum(rows * value for rows, value in named) / sum(
                rows for rows, _ in named
            )
    return metrics
