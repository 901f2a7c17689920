"""Do a run's parts fit each other? What cannot be known before the task and the models are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from creditlib.config import RunConfig, nearest
from creditlib.credit.controls import needs_for
from creditlib.parts import FROM_REWARD_MODELS, check_needs
from creditlib.rewards.models import RewardModel
from creditlib.types import CreditlibError, CreditStrategy, ReplayTask, Task


def check_fit(
    config: RunConfig,
    strategy: CreditStrategy,
    task: Task,
    models: Mapping[str, RewardModel],
    names: Sequence[str],
    weights: Sequence[float],
    policy: str,
) -> None:
    """Check the credit strategy and the reward weights against what there is.

    Args:
        config: the run's settings.
        strategy: as it will be used.
        task: prompts and verifier.
        models: reward models by the name of their reward.
        names: all rewards of the run.
        weights: one for each of them is expected.
        policy: where the policy comes from, for messages.

    Raises:
        CreditlibError: something does not fit; the message says what to change.
    """
    credit = config.credit.name
    check_needs(strategy, credit, reward_model=bool(models))
    named: Sequence[str] = getattr(strategy, "rewards", ())  # credit=routed names some
    if unknown := sorted(set(named) - set(names)):
        raise CreditlibError(
            f"credit.by_reward.{unknown[0]}: there is no such reward. {nearest(unknown[0], names)}"
        )
    for reward in named:
        if needs_for(strategy, reward) & FROM_REWARD_MODELS and reward not in models:
            raise CreditlibError(
                f"credit.by_reward.{reward}: its strategy looks into a reward model, and {reward} is a "
                "verifiable reward: name another strategy for it"
            )
    for reward, model in models.items():
        _check_reward_model(credit, reward, needs_for(strategy, reward), model, policy)
    if "contexts" in strategy.needs and not isinstance(task, ReplayTask):
        raise CreditlibError(
            f"credit={credit} tells the policy what the verifiers know, but task {task.name} has no methods "
            "`information` and `render` to word it (see creditlib.types.ReplayTask): add them, or choose "
            "credit=uniform"
        )
    if len(weights) != len(names):
        raise CreditlibError(
            f"advantage.weights={list(weights)}: expected {len(names)} weights, one for each reward of "
            f"task {task.name} ({', '.join(names)}); found {len(weights)}"
        )


def _check_reward_model(
    credit: str, reward: str, needs: frozenset[str], model: RewardModel, policy: str
) -> None:
    """It reads the policy's tokens as they are, where the strategy looks into it."""
    if needs & FROM_REWARD_MODELS and model.differences:
        raise CreditlibError(
            f"credit={credit} compares the policy's tokens with those of reward_model.{reward} "
            f"({model.scorer.source}), which has another vocabulary than {policy}: {model.differences}. "
            "Choose a reward model that was made from the same base model, or credit=uniform, which needs "
            "its scores alone"
        )
    if "reward_null" in needs:
        _ = model.null_E  # raises where there is none
