"""The prompts of replays: each response's own prompt, telling some of what the verifiers know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from creditlib.rollout.encode import PromptEncoder
from creditlib.types import Replay, ReplayTask, RewardTable, Rollout


@dataclass(frozen=True)
class TaskContexts:
    """Rendered by the task, each distinct context once (`creditlib.types.ReplayContexts`).

    Attributes:
        rollout: what was asked and answered.
        table: what the verifiers found.
        task: words the information.
        encoder: makes tokens of rendered prompts, of any length.
        limit: most tokens of prompt and response together; None: no limit.
    """

    rollout: Rollout
    table: RewardTable
    task: ReplayTask
    encoder: PromptEncoder
    limit: int | None
    _informations: dict[int, Mapping[str, str]] = field(default_factory=dict, init=False)
    _encoded: dict[tuple[int, frozenset[tuple[str, str]]], tuple[int, ...]] = field(
        default_factory=dict, init=False
    )

    def informed(self, row: int) -> frozenset[str]:
        """Rewards whose verifier has information on response `row`."""
        return frozenset(self._information(row))

    def replay(self, row: int, told: frozenset[str]) -> Replay | None:
        """Response `row` after its prompt with the information of the rewards in `told`; None where the two
        exceed the policy's context.
        """
        group = int(self.rollout.group_B[row])
        information = {name: text for name, text in self._information(row).items() if name in told}
        key = group, frozenset(information.items())
        if key not in self._encoded:
            self._encoded[key] = self.encoder.encode(
                self.task.render(self.rollout.prompts[group], information)
            )
        context = self._encoded[key]
        response = tuple(self.rollout.ids_BT[row][self.rollout.mask_BT[row]].tolist())
        if self.limit is not None and len(context) + len(response) > self.limit:
            return None
        return Replay(context, response)

    def _information(self, row: int) -> Mapping[str, str]:
        if row not in self._informations:
            prompt = self.rollout.prompts[int(self.rollout.group_B[row])]
            found = self.task.information(prompt, self.table.checks_of(row))
            # Tokenizers take no lone surrogates, which a verifier may have copied from somewhere.
            readable = {name: text.encode(errors="replace").decode() for name, text in found.items()}
            self._informations[row] = {name: text for name, text in readable.items() if text}
        return self._informations[row]
