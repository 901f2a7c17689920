"""What holds of every step: whitening, reference, old log-probs, correction, rows that don't count."""

from __future__ import annotations

import io
import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
import torch
from rich.console import Console

from creditlib.rewards.judge import Judge
from creditlib.trainer.batch import credit_metrics, whitening_over_processes
from creditlib.trainer.metrics import Stopwatch
from creditlib.trainer.processes import Processes
from creditlib.trainer.progress import Display, _reasons
from creditlib.trainer.prompts import PromptStream
from creditlib.types import Advantages, Check, CreditlibError, Prompt, RewardTable, Rollout, TokenCredit
from tests.trainer import world


def lesson_of(run: world.Trainer, step: int = 1) -> Any:
    """What a step hands to the updates."""
    seen: list[Any] = []
    update = run.updater.run

    def spy(step: int, lesson: Any, batch: Any) -> dict[str, float]:
        seen.append(lesson)
        return update(step, lesson, batch)

    run.updater.run = spy  # type: ignore[method-assign]
    run.step(step)
    return seen[0]


def records_of(run: world.Trainer, step: int = 1) -> list[dict[str, float]]:
    """The metrics of each update of a step."""
    records: list[dict[str, float]] = []
    update = run.updater._update

    def spy(*arguments: Any, **settings: Any) -> dict[str, float] | None:
        record = update(*arguments, **settings)
        if record is not None:
            records.append(record)
        return record

    run.updater._update = spy  # type: ignore[method-assign]
    run.step(step)
    return records


def test_token_norm_whitens_the_tokens_that_count() -> None:
    run = world.config(advantage__norm="token", trainer__mask_truncated=True)
    lesson = lesson_of(world.trainer(run, world.policy()))
    finished = torch.tensor([finish == "stop" for finish in lesson.rollout.finish])
    assert not lesson.active_B[~finished].any()
    counted_BT = lesson.rollout.mask_BT & lesson.active_B[:, None]
    values = lesson.advantages_BT[counted_BT].double()
    assert values.mean().item() == pytest.approx(0, abs=1e-6)
    assert values.var().item() == pytest.approx(1, abs=1e-5)
    assert not lesson.advantages_BT[~counted_BT].any()
    unscored = ["w9" in text.split() for text in lesson.rollout.texts]
    assert any(unscored) and not lesson.active_B[torch.tensor(unscored)].any()


def test_whitening_without_tokens() -> None:
    nothing = torch.zeros(2, 3)
    whitening = whitening_over_processes(nothing, nothing.bool(), Processes())
    assert torch.equal(whitening(nothing, nothing.bool()), nothing)


@pytest.mark.parametrize("loss", ["grpo", "gspo_token"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_first_update_has_ratio_one_and_the_second_the_old_log_probs(loss: str, dropout: float) -> None:
    run = world.config(loss=loss, trainer__epochs=2, trainer__micro_batch=3)
    trainer = world.trainer(run, trained_adapter(dropout))
    first, second = records_of(trainer)
    assert first["loss/ratio_max"] == 1.0
    assert first["loss/approx_kl"] == 0.0
    assert second["loss/approx_kl"] > 0.0


def test_old_log_probs_are_those_of_the_policy_that_sampled() -> None:
    policy = world.policy()
    trainer = world.trainer(world.config(trainer__minibatches=2), policy)
    untouched = world.trainer(world.config(), world.policy())
    lesson = lesson_of(trainer)
    assert lesson.scores.old_logps_BT.dtype == torch.float64
    torch.testing.assert_close(lesson.scores.old_logps_BT, untouched.scorer.logps(lesson.rollout))
    assert lesson_of(world.trainer(world.config(), world.policy())).scores.old_logps_BT is None


def trained_adapter(dropout: float = 0.0) -> Any:
    """An adapter that does something: a fresh one is the identity, with dropout too."""
    policy = world.policy(lora=True, dropout=dropout)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    return policy


@pytest.mark.parametrize("kind", ["full", "fresh adapter", "trained adapter"])
def test_the_reference_is_the_policy_at_the_start(kind: str) -> None:
    make = {
        "full": world.policy,
        "fresh adapter": lambda: world.policy(lora=True),
        "trained adapter": trained_adapter,
    }[kind]
    trainer = world.trainer(world.config(loss__kl_coef=0.1), make())
    assert (trainer.reference is None) == (kind == "fresh adapter")
    first, second = trainer.step(1), lesson_of(trainer, 2)
    assert first["loss/reference_kl"] < 1e-20
    at_start = world.trainer(world.config(), make()).scorer.logps(second.rollout)
    torch.testing.assert_close(second.scores.ref_logps_BT, at_start)
    now = trainer.scorer.logps(second.rollout)
    assert (now - at_start).abs().max() > 1e-4


def test_importance_correction_compares_with_the_sampler() -> None:
    run = world.config(loss__correction="token_truncate", loss__correction_high=1.5)
    trainer = world.trainer(run, world.policy())
    rollout = world.Scripted().generate(
        PromptStream(trainer.task.prompts("train"), 0).take(4), samples=4, step=1
    )
    (record,) = records_of(trainer)
    logps = world.trainer(world.config(), world.policy()).scorer.logps(rollout)
    weights = (logps - rollout.sampler_logps_BT).exp().clamp(max=1.5)
    counted = rollout.mask_BT & torch.tensor(["w9" not in text.split() for text in rollout.texts])[:, None]
    assert record["loss/correction"] == pytest.approx(weights[counted].mean().item(), rel=1e-6)
    assert record["loss/ratio_max"] == 1.0


class Unscored(world.Words):
    def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
        return {}


def weights(trainer: world.Trainer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.optimizer.parameters])


def test_a_batch_without_any_reward_changes_nothing() -> None:
    trainer = world.trainer(world.config(loss__kl_coef=0.1), world.policy())
    trainer.step(1)  # momentum is there
    before = weights(trainer)
    trainer.collector._judge = Judge(Unscored(), {})
    metrics = trainer.step(2)
    assert torch.equal(weights(trainer), before)
    assert metrics["updates"] == 0 and metrics["skipped"] == 0 and metrics["response/unscored"] == 1
    assert math.isnan(metrics["reward/even"]) and math.isnan(metrics["zero_spread/even"])


def test_a_reward_that_never_applies_leaves_the_others_alone() -> None:
    class Column(world.Words):
        reward_names = ("even", "short", "rare")

        def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
            return {**super()._judge(prompt, words), "rare": Check(math.nan)}

    class Two(world.Words):
        reward_names = ("even", "short")

        def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
            return {name: check for name, check in super()._judge(prompt, words).items() if name != "rare"}

    (with_column,), (metrics,) = world.updates_of(
        world.trainer(world.config(), world.policy(), task=Column())
    )
    (without,), _ = world.updates_of(world.trainer(world.config(), world.policy(), task=Two()))
    assert torch.equal(with_column, without)
    assert math.isnan(metrics["reward/rare"])


class WithEmpty(world.Scripted):
    """The first response has no token at all, the second nothing but the stop token."""

    def generate(self, prompts: Any, *, samples: int, step: int, greedy: bool = False) -> Rollout:
        rollout = super().generate(prompts, samples=samples, step=step)
        mask_BT = rollout.mask_BT.clone()
        mask_BT[0] = False
        mask_BT[1, 1:] = False
        ids_BT = rollout.ids_BT.clone()
        ids_BT[1, 0] = world.EOS
        return replace(rollout, mask_BT=mask_BT, ids_BT=ids_BT, texts=("", "", *rollout.texts[2:]))


@pytest.mark.parametrize("packing", ["padded", "tree"])
def test_empty_responses(packing: str) -> None:
    trainer = world.trainer(
        world.config(trainer__packing=packing, trainer__epochs=2), world.policy(), engine=WithEmpty()
    )
    metrics = trainer.step(1)
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["updates"] == 2


def poison(trainer: world.Trainer, steps: set[int]) -> None:
    """Make the loss of some updates NaN (numbered from 1)."""
    forward, count = trainer.scorer.forward, [0]

    def some_nan(rollout: Rollout, rows: Any, **settings: Any) -> Any:
        logps, entropy = forward(rollout, rows, **settings)
        count[0] += torch.is_grad_enabled()
        poisoned = torch.is_grad_enabled() and count[0] in steps
        return (logps * math.nan if poisoned else logps), entropy

    trainer.scorer.forward = some_nan  # type: ignore[method-assign]


def test_an_update_that_is_not_finite_is_skipped() -> None:
    trainer = world.trainer(world.config(), world.policy())
    said: list[str] = []
    trainer.updater._say = said.append
    poison(trainer, {2})
    assert trainer.step(1)["skipped"] == 0
    before = weights(trainer)
    lost = trainer.step(2)
    assert lost["skipped"] == 1 and lost["updates"] == 0 and math.isnan(lost["loss"])
    assert torch.equal(weights(trainer), before)
    assert "update skipped" in said[0]
    assert trainer.step(3)["skipped"] == 0
    assert weights(trainer).isfinite().all() and not torch.equal(weights(trainer), before)


def test_metrics_are_those_of_the_updates_that_were_made() -> None:
    """A mean with infinities of both signs in it is no number, and would be an error besides."""
    made = {"loss": 0.5, "grad_norm": 1.0, "skipped": 0.0, "loss/ratio_max": 2.0}
    lost = {"loss": math.inf, "grad_norm": math.nan, "skipped": 1.0, "loss/ratio_max": math.inf}
    records = [lost, made, {**lost, "loss": -math.inf}, {**made, "loss": 1.0}]
    records += [lost, {**lost, "loss": -math.inf}] * 2
    trainer = world.trainer(world.config(trainer__epochs=4), world.policy())
    trainer.updater._update = lambda *_, **__: records.pop(0)  # type: ignore[method-assign]
    metrics = trainer.step(1)
    assert (metrics["loss"], metrics["loss/ratio_max"], metrics["updates"]) == (0.75, 2.0, 2)
    metrics = trainer.step(2)
    assert math.isnan(metrics["loss"]) and (metrics["updates"], metrics["skipped"]) == (0, 4)


def test_too_many_lost_updates_stop_the_run() -> None:
    trainer = world.trainer(world.config(trainer__max_skipped_updates=2, trainer__epochs=3), world.policy())
    poison(trainer, {1, 3, 5, 6})
    with pytest.raises(CreditlibError, match=r"stopped: 2 updates in a row.*max_skipped_updates.*model.path"):
        for step in range(1, 3):
            trainer.step(step)
    assert trainer.updater.skipped_in_a_row == 2
    assert weights(trainer).isfinite().all()


def test_a_strategy_whose_needs_are_not_met_is_refused() -> None:
    from creditlib.credit.uniform import Uniform

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Uniform, "needs", property(lambda self: frozenset({"reward_model"})))
        with pytest.raises(CreditlibError, match=r"credit=uniform needs reward_model.*choose another credit"):
            world.trainer(world.config(), world.policy())


@pytest.mark.parametrize("rule", ["grpo", "gdpo"])
def test_a_weight_for_each_reward(rule: str) -> None:
    def start(*weights: float) -> None:
        world.trainer(world.config(advantage=rule, advantage__weights=list(weights)), world.policy())

    start(1.0, 2.0, 0.5)
    with pytest.raises(CreditlibError, match=r"expected 3 weights, .*\(even, short, rare\); found 2"):
        start(1.0, 2.0)


def test_nothing_to_train_is_told() -> None:
    policy = world.policy()
    policy.model.requires_grad_(False)
    with pytest.raises(CreditlibError, match=r"no parameter .* trainable.*model\.lora"):
        world.trainer(world.config(), policy)


def test_padded_scoring_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creditlib.policy.trunk.tree_obstacle", lambda config: "its attention is odd")
    display = Display()
    display.console = Console(file=io.StringIO(), width=120)
    world.trainer(world.config(), world.policy(), display=display)
    assert display.console.file.getvalue() == (
        "padded scoring instead of the prefix tree: its attention is odd\n"
    )


def test_rewards_are_green_at_their_own_maximum() -> None:
    bounds_K2 = torch.tensor([[0.0, 1.0], [0.0, 5.0], [-1.0, 0.3]])
    scores_BK = torch.tensor([[1.0, 1.0, 0.3], [0.5, 5.0, math.nan]])
    checks = tuple(tuple(Check(score) for score in row) for row in scores_BK.tolist())
    names = ("a", "b", "c")
    table = RewardTable(names, scores_BK, (names, names), bounds_K2, checks)
    colours = [
        [str(span.style) for span in _reasons(table, row).spans if span.style != "bold"] for row in (0, 1)
    ]
    assert colours == [["green", "red", "green"], ["red", "green", "red"]]


def test_credit_metrics_by_hand() -> None:
    mask_BT = torch.tensor([[True, True], [True, False], [True, True]])
    counted_BT = mask_BT & torch.tensor([True, True, False])[:, None]
    weights_BKT = torch.tensor([[[2.0, 0.0], [9.0, 1.0]], [[1.0, 0.0]] * 2, [[5.0, 5.0]] * 2])
    # The second reward moves nothing, and the third response does not count.
    advantages = Advantages(torch.tensor([[1.0, 0.0], [-2.0, 0.0], [0.0, 3.0]]), torch.zeros(3))
    credit = TokenCredit.combine(advantages, weights_BKT, mask_BT, diagnostics={"floor": 0.25})
    metrics = credit_metrics(credit, advantages, credit.advantages_BT, counted_BT, Processes())
    assert metrics["credit/ess"] == pytest.approx((0.5 + 1.0) / 2)
    assert metrics["credit/max_weight"] == 2.0
    assert metrics["credit/floor"] == 0.25
    assert metrics["advantage/mean"] == pytest.approx((2 + 0 - 2) / 3)
    assert metrics["advantage/std"] == pytest.approx(math.sqrt(8 / 3))


@pytest.mark.parametrize("lora", [False, True])
def test_tiny_updates_of_bfloat16_weights_add_up(lora: bool) -> None:
    """At a learning rate far below the weights' rounding a float32 copy moves as it does in a float32 run."""
    policy = world.policy(dtype=torch.bfloat16, lora=lora)
    trainer = world.trainer(world.config(trainer__learning_rate=1e-6), policy)
    assert all(parameter.dtype == torch.float32 for parameter in trainer.optimizer.parameters)
    before = weights(trainer).clone()
    for step in range(1, 4):
        metrics = trainer.step(step)
        assert math.isfinite(metrics["loss"]) and metrics["grad_norm"] > 0
    moved = (weights(trainer) - before).abs()
    # AdamW moves by about the learning rate a step; rows of the embedding that never occur have no gradient.
    assert moved.max().item() < 1e-5
    assert (moved > 1e-7).float().mean().item() > (0.3 if not lora else 0.1)
    trained = [parameter for parameter in policy.model.parameters() if parameter.requires_grad]
    for weight, parameter in zip(trained, trainer.optimizer.parameters, strict=True):
        assert torch.equal(weight, parameter.to(weight.dtype))


def test_micro_batches_of_a_bfloat16_model_accumulate_in_float32() -> None:
    run = world.config(trainer__micro_batch=2)
    (pieces,), _ = world.updates_of(world.trainer(run, world.policy(dtype=torch.bfloat16)))
    assert pieces.dtype == torch.float32
    (whole,), _ = world.updates_of(world.trainer(world.config(), world.policy(dtype=torch.bfloat16)))
    assert world.relative(pieces, whole) < 0.1


def test_slots_are_told_by_what_they_mean() -> None:
    trainer = world.trainer(world.config(trainer__prompts_per_step=6), world.policy(), task=world.Slots())
    metrics = trainer.step(1)
    assert {key for key in metrics if key.startswith("reward/")} == {
        "reward/odd",
        "reward/even",
        "reward/short",
    }
    collected = trainer.collector.collect(2, Stopwatch())
    table, group_B = collected.table, collected.rollout.group_B.tolist()
    metrics = collected.batch.metrics()
    kept: dict[str, list[float]] = {}
    spreads: dict[str, dict[tuple[int, int], list[float]]] = {}
    for b, row in enumerate(table.checks):
        for k, check in enumerate(row):
            if check.kind:
                kept.setdefault(check.kind, []).append(check.score)
                spreads.setdefault(check.kind, {}).setdefault((group_B[b], k), []).append(check.score)
    for kind, scores in kept.items():
        groups = list(spreads[kind].values())
        assert metrics[f"reward/{kind}"] == pytest.approx(sum(scores) / len(scores))
        assert metrics[f"zero_spread/{kind}"] == pytest.approx(
            sum(len(set(group)) == 1 for group in groups) / len(groups)
        )
        stds = sorted(statistics.pstdev(group) for group in groups)
        assert metrics[f"spread/{kind}"] == pytest.approx(stds[(len(stds) - 1) // 2])  # torch's median
    perfect = [all(check.score == 1 for check in row if check.kind) for row in table.checks]
    earned = [[check.score for check in row if check.kind] for row in table.checks]  # all between 0 and 1
    assert metrics["response/earned"] == pytest.approx(statistics.fmean(map(statistics.fmean, earned)))
    assert metrics["response/perfect"] == pytest.approx(sum(perfect) / len(perfect))
