"""What all processes together know of a step: rewards, groups and lengths, without the tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from torch import Tensor

from creditlib.advantage.whitening import whiten
from creditlib.rewards.table import varying_rewards
from creditlib.types import AdvantageRule, Advantages, RewardTable, Rollout


@dataclass(frozen=True)
class GlobalBatch:
    """Rows of all processes, ordered by group, so that the number of processes changes no sum. On the CPU.

    `local_B` are the rows of this process in the order of its own rollout.
    """

    names: tuple[str, ...]
    scores_BK: Tensor
    group_B: Tensor  # global prompt numbers
    kind_BK: list[tuple[str, ...]]
    bounds_K2: Tensor
    lengths_B: Tensor
    truncated_B: Tensor
    flags: Counter[str]
    local_B: Tensor

    @staticmethod
    def gather(rollout: Rollout, table: RewardTable, numbers: Sequence[int]) -> GlobalBatch:
        """Collect from all processes; `numbers[n]` is the global number of this process's prompt n."""
        groups = [numbers[n] for n in rollout.group_B.tolist()]
        lengths = rollout.lengths_B.tolist()
        rows = [
            (groups[b], table.scores_BK[b].tolist(), table.kind_BK[b], lengths[b], rollout.finish[b] == "length")
            for b in range(len(groups))
        ]
        flags = Counter(flag for row in table.checks for check in row for flag in check.flags)
        mine = PartialState().process_index
        parts: list[tuple[int, list[Any], Counter[str]]] = gather_object([(mine, rows, flags)])
        tagged = [(row, rank, b) for rank, own, _ in parts for b, row in enumerate(own)]
        tagged.sort(key=lambda item: (item[0][0], item[1], item[2]))
        place = {(rank, b): position for position, (_, rank, b) in enumerate(tagged)}
        ordered = [row for row, _, _ in tagged]
        return GlobalBatch(
            table.names,
            torch.tensor([row[1] for row in ordered], dtype=torch.float32).view(len(ordered), len(table.names)),
            torch.tensor([row[0] for row in ordered], dtype=torch.long),
            [row[2] for row in ordered],
            table.bounds_K2,
            torch.tensor([row[3] for row in ordered]),
            torch.tensor([row[4] for row in ordered], dtype=torch.bool),
            sum((own for _, _, own in parts), Counter()),
            torch.tensor([place[(mine, b)] for b in range(len(rows))], dtype=torch.long),
        )

    def advantages(self, rule: AdvantageRule, device: torch.device) -> Advantages:
        """The rule over the whole batch; this process's rows of what it gives."""
        everyone = rule(self.scores_BK, self.group_B, self.bounds_K2, self.kind_BK)
        return Advantages(everyone.by_reward_BK[self.local_B].to(device), everyone.offset_B[self.local_B].to(device))

    def metrics(self) -> dict[str, float]:
        """Means over all responses of the step: rewards, zero-spread groups, lengths, flags."""
        varies_NK = varying_rewards(self.scores_BK, self.group_B)
        metrics: dict[str, float] = {}
        for k, name in enumerate(self.names):
            valid_V = self.scores_BK[:, k][~self.scores_BK[:, k].isnan()].double()
            metrics[f"reward/{name}"] = valid_V.mean().item() if len(valid_V) else math.nan
            metrics[f"zero_spread/{name}"] = 1.0 - varies_NK[:, k].double().mean().item()
        metrics["response/tokens"] = self.lengths_B.double().mean().item()
        metrics["response/truncated"] = self.truncated_B.double().mean().item()
        metrics["response/unscored"] = self.scores_BK.isnan().all(1).double().mean().item()
        return metrics | {f"flag/{flag}": float(count) for flag, count in sorted(self.flags.items())}


def whiten_over_processes(advantages_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """`whiten` with the statistics of the tokens of all processes."""
    own = advantages_BT[mask_BT].tolist()
    parts: list[tuple[int, list[float]]] = gather_object([(PartialState().process_index, own)])
    parts.sort()
    everyone_T = torch.tensor([value for _, values in parts for value in values], dtype=torch.float64)
    white_T = whiten(everyone_T[None], torch.ones(1, len(everyone_T), dtype=torch.bool))[0]
    start = sum(len(values) for rank, values in parts if rank < PartialState().process_index)
    out_BT = torch.zeros_like(advantages_BT)
    out_BT[mask_BT] = white_T[start : start + len(own)].to(advantages_BT)
    return out_BT

