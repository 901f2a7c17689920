"""Reward models within a run: DATC against a dense oracle, strengths of zero, routed credit, kind errors."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor

from creditlib.config import LengthWindow
from creditlib.credit.datc import OUTCOMES, allocate
from creditlib.rewards.table import select_rows
from creditlib.rollout.batch import select_groups
from creditlib.trainer.batch import GlobalBatch
from creditlib.trainer.collect import Collected
from creditlib.trainer.metrics import Stopwatch, recent_means
from creditlib.trainer.processes import Processes
from creditlib.types import CreditlibError, TokenCredit
from tests.trainer import world

SETTINGS = {"advantage": "grpo", "trainer__minibatches": 2, "trainer__epochs": 2}


def run_of(task: Any = None, models: Any = None, engine: Any = None, **settings: Any) -> world.Trainer:
    models = {"taste": world.reward_model()} if models is None else models
    return world.trainer(world.config(**settings), world.policy(), task=task, models=models, engine=engine)


def watched(run: world.Trainer) -> list[tuple[Any, TokenCredit]]:
    """What the strategy is given and gives, from now on."""
    found: list[tuple[Any, TokenCredit]] = []
    assign = type(run.strategy).assign

    class Watching:
        needs = run.strategy.needs

        def assign(self, context: Any) -> TokenCredit:
            credit = assign(run_strategy, context)
            found.append((context, credit))
            return credit

    run_strategy = run.strategy
    run.strategy = Watching()
    return found


def dense(
    policy: Any, model: Any, prompt: tuple[int, ...], said: list[int], ending: list[int], temperature: float
) -> Tensor:
    """d of each token by autograd: the policy's distributions, the bridge, the whole text at once."""
    with torch.no_grad():
        logits_TV = policy(input_ids=torch.tensor([[*prompt, *said]])).logits[0, len(prompt) - 1 : -1]
    logits_TV = (logits_TV / temperature).requires_grad_()
    # Gemma scales the rows of its table where it looks them up.
    table_VD = model.get_input_embeddings()(torch.arange(world.VOCABULARY)).detach()
    p_TV = torch.softmax(logits_TV, -1)
    soft_TD = p_TV @ table_VD
    hard_TD = soft_TD + (table_VD[said] - soft_TD).detach()
    embedded = torch.cat([table_VD[list(prompt)], hard_TD, table_VD[ending]])[None]
    score = model.score(model.model(inputs_embeds=embedded).last_hidden_state)[0, -1, 0]
    (g_TV,) = torch.autograd.grad(score, logits_TV, retain_graph=True)
    (k_TV,) = torch.autograd.grad(torch.log_softmax(logits_TV, -1)[range(len(said)), said].sum(), logits_TV)
    return (g_TV * k_TV).sum(1)


@pytest.mark.parametrize("family", ["llama", "gemma"])
@pytest.mark.parametrize(("packing", "temperature"), [("tree", 1.0), ("padded", 0.7)])
def test_datc_in_a_step_is_the_dense_oracle(packing: str, temperature: float, family: str) -> None:
    models = {"taste": world.reward_model(family=family)}
    run = run_of(
        models=models,
        credit="datc",
        trainer__packing=packing,
        engine=world.Scripted(temperature),
        **SETTINGS,
    )
    found = watched(run)
    policy = world.policy().model  # as it was before the update
    metrics = run.step(1)
    ((context, credit),) = found
    rollout, model = context.rollout, models["taste"].scorer.model
    assert credit.relevance_BKT is not None
    k = context.table.names.index("taste")
    for row, length in enumerate(rollout.lengths_B.tolist()):
        ids = rollout.ids_BT[row, :length].tolist()
        stopped = rollout.finish[row] == "stop"
        said = ids[:-1] if stopped else ids
        prompt = rollout.prompt_ids[int(rollout.group_B[row])]
        d_T = dense(policy, model, prompt, said, [world.EOS], temperature)
        have_T = credit.relevance_BKT[row, k, : len(said)].double()
        torch.testing.assert_close(have_T, d_T, rtol=1e-5, atol=1e-7)
        assert credit.relevance_BKT[row, k, len(said) :].isnan().all()
        advantage = context.advantages.by_reward_BK[row, k].item()
        torch.testing.assert_close(
            credit.weights_BKT[row, k, : len(said)], allocate(d_T, advantage), rtol=1e-4, atol=1e-5
        )
        assert (credit.weights_BKT[row, :k] == 1).all()
    assert sum(metrics[f"credit/{outcome}/taste"] for outcome in OUTCOMES) == pytest.approx(1)
    assert metrics["credit/max_weight"] > 1 > metrics["credit/ess"]


@pytest.mark.parametrize(
    "idle", [{"credit": "datc", "credit__lam": 1.0}, {"credit": "red", "credit__alpha": 0.0}]
)
def test_strength_zero_makes_the_updates_of_uniform_credit_bit_for_bit(idle: dict[str, Any]) -> None:
    (uniform, _), (other, _) = (
        world.updates_of(run_of(**settings, **SETTINGS), 2) for settings in ({"credit": "uniform"}, idle)
    )
    assert len(uniform) == len(other) == 8
    assert all(torch.equal(one, two) for one, two in zip(uniform, other, strict=True))


@pytest.mark.parametrize("credit", ["datc", "red", "p2t"])
def test_credit_changes_the_updates_and_micro_batches_do_not(credit: str) -> None:
    (uniform, _), (whole, _), (pieces, _) = (
        world.updates_of(run_of(credit=name, trainer__micro_batch=size, advantage="grpo"))
        for name, size in (("uniform", None), (credit, None), (credit, 3))
    )
    assert world.relative(whole[0], uniform[0]) > 1e-3
    assert world.relative(pieces[0], whole[0]) < 1e-6


@pytest.mark.parametrize(("beta_c", "weight"), [(1.0, 1.0), (0.25, 3.0)])
def test_red_moves_credit_about_its_mean(beta_c: float, weight: float) -> None:
    weights = {"advantage__weights": [1.0, 1.0, 1.0, weight]}
    run = run_of(credit="red", credit__alpha=0.5, credit__beta_c=beta_c, **SETTINGS, **weights)
    found = watched(run)
    run.step(1)
    ((context, credit),) = found
    mask_BT, total_B = context.rollout.mask_BT, context.advantages.total_B
    mean_B = (credit.advantages_BT * mask_BT).sum(1) / mask_BT.sum(1)
    torch.testing.assert_close(mean_B, total_B, atol=1e-5, rtol=1e-5)
    values_BS = context.table.readings["taste"].values_BS
    for row, length in enumerate(context.rollout.lengths_B.tolist()):
        earned_T = beta_c * (values_BS[row, 1 : length + 1] - values_BS[row, :length])
        earned_T[-1] += (1 - beta_c) * values_BS[row, length]
        want_T = total_B[row] + 0.5 * weight * (earned_T - earned_T.mean())
        torch.testing.assert_close(credit.advantages_BT[row, :length], want_T.float(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("signed", "outcome", "weight"), [(False, 1.0, 1.0), (True, 0.5, 2.0)])
def test_p2t_in_both_forms(signed: bool, outcome: float, weight: float) -> None:
    """Attribution, shares and rewards, each response written out."""
    model = world.reward_model()
    table_VD = model.scorer.model.get_input_embeddings().weight
    own = {"credit__signed": signed, "credit__outcome": outcome}
    weights = {"advantage__weights": [1.0, 1.0, 1.0, weight]}
    for mode in ("repo", "paper"):
        run = run_of(credit="p2t", credit__mode=mode, credit__tau=2.0, **own, **SETTINGS, **weights)
        found = watched(run)
        run.step(1)
        ((context, credit),) = found
        reading, rollout = context.table.readings["taste"], context.rollout
        for row, length in enumerate(rollout.lengths_B.tolist()):
            said = int(reading.read_BT[row].sum())
            ids = rollout.ids_BT[row, :said]
            score = reading.score_B[row].item()
            bonus_T = torch.zeros(length, dtype=torch.float64)
            if said:
                attribution_T = ((table_VD[ids] - table_VD[0]) * reading.gradients_BTD[row, :said]).sum(1)
                bonus_T[:said] = torch.softmax(attribution_T / 2.0, 0)
            if mode == "repo":
                reward = torch.sigmoid(torch.tensor(score, dtype=torch.float64))
                reward = 2 * reward - 1 if signed else reward
                bonus_T = 0.6 * length * reward * bonus_T + reward
            else:
                bonus_T = 0.1 * score * (1 + 0.6 * bonus_T)
            bonus_T = weight * bonus_T
            scale = outcome if mode == "repo" else 1.0
            have_T = credit.advantages_BT[row, :length] - scale * context.advantages.total_B[row]
            torch.testing.assert_close(have_T.double(), bonus_T.detach(), atol=1e-5, rtol=1e-4)


def test_routed_credit_gives_each_reward_its_own_strategy() -> None:
    """The columns are those of the strategies alone, and nothing is replayed for the others' rewards."""
    alone = {}
    for name in ("datc", "mrtpo"):
        run = run_of(world.Informed(), credit=name, **SETTINGS)
        found = watched(run)
        run.step(1)
        alone[name] = found[0][1]
    routes = {"taste": "datc", "even": {"name": "mrtpo"}}
    run = run_of(world.Informed(), credit="routed", credit__by_reward=routes, **SETTINGS)
    found = watched(run)
    metrics = run.step(1)
    ((context, credit),) = found
    names = context.table.names
    taste, even, short = (names.index(name) for name in ("taste", "even", "short"))
    assert torch.equal(credit.weights_BKT[:, taste], alone["datc"].weights_BKT[:, taste])
    torch.testing.assert_close(
        credit.weights_BKT[:, even], alone["mrtpo"].weights_BKT[:, even], atol=1e-3, rtol=1e-3
    )
    assert (credit.weights_BKT[:, short] == 1).all()
    assert credit.measure_K[taste] == "direction" and credit.measure_K[even] == "distance"
    assert credit.measure_K[short] == ""
    assert metrics["credit/by_relevance/even"] > 0 and "credit/by_relevance/short" not in metrics
    assert "credit/raised/taste" in metrics


def test_the_ledger_says_what_was_measured(tmp_path: Path) -> None:
    run_config = world.config(tmp_path / "run", credit="datc", trainer__steps=1, **SETTINGS)
    with world.run_folder(run_config) as directory:
        models = {"taste": world.reward_model()}
        world.trainer(run_config, world.policy(), directory=directory, models=models).run()
    lines = [json.loads(line) for line in (tmp_path / "run/responses.jsonl").read_text().splitlines()]
    rewards = [line["rewards"]["taste"] for line in lines]
    assert {reward["measure"] for reward in rewards} == {"direction"}
    assert any(reward["temperature"] is not None and reward["temperature"] >= 1 for reward in rewards)
    assert all(reward["best"] is None and reward["reason"].startswith("score ") for reward in rewards)
    tokens = pq.read_table(tmp_path / "run/tokens.parquet")
    assert tokens["relevance/taste"].null_count == 0 and "weight/taste" in tokens.column_names


def test_kind_errors() -> None:
    for credit in ("datc", "red", "p2t"):
        with pytest.raises(
            CreditlibError, match=f"credit={credit} looks into a reward model, and this run has none"
        ):
            run_of(models={}, credit=credit)
    other = {"taste": world.reward_model("3 tokens are missing: 'a' (id 1)")}
    with pytest.raises(CreditlibError, match="another vocabulary than random: 3 tokens are missing"):
        run_of(models=other, credit="datc")
    run_of(models=other, credit="uniform").step(1)  # scores need no more than the text
    with pytest.raises(
        CreditlibError, match=r"credit.by_reward.tast: there is no such reward. Did you mean 'taste'"
    ):
        run_of(credit="routed", credit__by_reward={"tast": "datc"})
    with pytest.raises(CreditlibError, match="expected 4 weights"):
        run_of(credit="uniform", advantage="grpo", advantage__weights=[1.0, 1.0, 1.0])
    with pytest.raises(CreditlibError, match="expected the name of a credit strategy"):
        run_of(credit="routed", credit__by_reward={"taste": {"lam": 2.0}})
    with pytest.raises(CreditlibError, match=r"credit.by_reward is empty"):
        run_of(credit="routed", credit__by_reward={})


def test_dynamic_sampling_carries_the_readings_along() -> None:
    run = run_of(credit="datc", trainer__dynamic_sampling=True, **SETTINGS)
    found = watched(run)
    run.step(1)
    ((context, credit),) = found
    assert context.table.readings["taste"].read_BT.shape == context.rollout.mask_BT.shape
    assert credit.advantages_BT.isfinite().all()


def test_the_raw_score_is_reported_beside_the_edited_one(tmp_path: Path) -> None:
    window = LengthWindow(short=9, short_penalty=2.0)
    model = dataclasses.replace(world.reward_model(), window=window)
    run_config = world.config(tmp_path / "run", credit="uniform", trainer__steps=3)
    with world.run_folder(run_config) as directory:
        run = world.trainer(run_config, world.policy(), directory=directory, models={"taste": model})
        summary = run.run()
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    for row in rows:
        less = 2.0 * (9 - row["response/tokens"]) / 9  # no response has more tokens than 8
        assert row["raw/taste"] - row["reward/taste"] == pytest.approx(less, abs=1e-5)
    for key in ("raw/taste", "reward/taste", "response/tokens"):
        assert summary["recent"][key] == pytest.approx(sum(row[key] for row in rows) / 3)
    assert summary["recent"].keys() <= {"raw/taste", "response/tokens"} | {
        f"reward/{n}" for n in run.judge.names
    }


def test_recent_means_are_of_the_last_rollouts() -> None:
    rows = [{"step": n, "phase": "train", "reward/a": n if n % 2 else None, "loss": 1.0} for n in range(40)]
    rows.append({"step": 40, "phase": "eval", "reward/a": 1e9})
    assert recent_means(rows) == {"reward/a": sum(range(15, 40, 2)) / 13}
    assert recent_means([]) == {}


@pytest.mark.parametrize("credit", ["red", "p2t"])
def test_a_reading_that_is_no_number_adds_nothing(credit: str) -> None:
    run = run_of(credit=credit, **SETTINGS)
    judge = run.collector._judge

    def broken(rollout: Any, look: bool = True) -> Any:
        table = judge(rollout, look=look)
        reading = table.readings["taste"]
        for part in (reading.gradients_BTD, reading.values_BS):
            if part is not None:
                part[2, 0] = float("nan")
        return table

    run.collector._judge = broken  # type: ignore[assignment]
    found = watched(run)
    metrics = run.step(1)
    ((_, given),) = found
    assert given.bonus_BT is not None and given.bonus_BT.isfinite().all()
    assert (given.bonus_BT[2] == 0).all() and (given.bonus_BT[3] != 0).any()
    assert metrics["credit/not_finite/taste"] == pytest.approx(1 / 16)


def test_routed_bonuses_arrive() -> None:
    (alone, _), (routed, _) = (
        world.updates_of(run_of(**settings, advantage="grpo"))
        for settings in ({"credit": "red"}, {"credit": "routed", "credit__by_reward": {"taste": "red"}})
    )
    assert torch.equal(alone[0], routed[0])
    run = run_of(credit="routed", credit__by_reward={"taste": {"name": "p2t", "outcome": 0.5}}, **SETTINGS)
    found = watched(run)
    run.step(1)
    assert not found[0][1].mean_one


def test_another_vocabulary_does_not_matter_where_it_is_not_looked_at() -> None:
    models = {"taste": world.reward_model(), "tone": world.reward_model("other merges")}
    run = run_of(models=models, credit="routed", credit__by_reward={"taste": "datc"}, **SETTINGS)
    found = watched(run)
    run.step(1)
    assert set(found[0][0].table.readings) == {"taste"}
    with pytest.raises(CreditlibError, match=r"reward_model\.tone"):
        run_of(models=models, credit="routed", credit__by_reward={"taste": "datc", "tone": "red"})
    with pytest.raises(CreditlibError, match="even is a verifiable reward"):
        run_of(credit="routed", credit__by_reward={"even": "datc"})


def test_no_padding_token_is_told_before_training() -> None:
    model = world.reward_model()
    model.tokenizer.pad_token = None
    with pytest.raises(CreditlibError, match="no padding token"):
        run_of(models={"taste": model}, credit="p2t")
    run_of(models={"taste": model}, credit="datc")


def test_a_process_without_a_row_takes_part() -> None:
    """Dynamic sampling may leave it none; the others wait for it."""
    for credit in ("datc", "red", "p2t"):
        run = run_of(credit=credit, **SETTINGS)
        found = run.collector.collect(1, Stopwatch())
        rollout, rows = select_groups(found.rollout, [])
        batch = dataclasses.replace(found.batch, local_B=found.batch.local_B[:0])
        empty = Collected(rollout, select_rows(found.table, rows), batch, 4)
        run.collector.collect = lambda step, watch, empty=empty: empty  # type: ignore[method-assign]
        metrics = run.step(1)
        assert metrics["updates"] == 0


def test_a_watched_reward_is_in_no_statistic() -> None:
    """A response that the trained reward does not apply to counts for nothing, however it does in the watched
    one; groups in which only that one varies are not trained on."""
    weights = {"advantage__weights": [0.0, 0.0, 0.0, 1.0]}
    run = run_of(credit="uniform", **SETTINGS, **weights)
    found = watched(run)
    judge = run.collector._judge

    def partly(rollout: Any, look: bool = True) -> Any:
        table = judge(rollout, look=look)
        table.scores_BK[[1, 6], 3] = float("nan")
        table.scores_BK[8:12, 3] = 1.0
        return table

    run.collector._judge = partly  # type: ignore[assignment]
    run.step(1)
    ((context, _),) = found
    scores_B = context.table.scores_BK[:, 3].double()
    for group in (slice(0, 4), slice(4, 8), slice(8, 12), slice(12, 16)):
        own = scores_B[group]
        valid = ~own.isnan()
        want = (own - own[valid].mean()) / (own[valid].std() + 1e-4)
        want = want.nan_to_num(0.0) if own[valid].max() > own[valid].min() else torch.zeros(4)
        torch.testing.assert_close(
            context.advantages.total_B[group].double(), want.double(), atol=1e-5, rtol=1e-5
        )
    assert context.table.valid_B([0.0, 0.0, 0.0, 1.0]).tolist() == (~scores_B.isnan()).tolist()
    batch = GlobalBatch.gather(context.rollout, context.table, range(4), Processes())
    assert batch.varying_groups([0.0, 0.0, 0.0, 1.0]) == [0, 1, 3]


def test_the_spread_of_a_reward() -> None:
    run = run_of(credit="uniform")
    metrics = run.step(1)
    found = run.collector.collect(2, Stopwatch())
    stds = [found.table.scores_BK[4 * g : 4 * g + 4, 3].double().std(correction=0) for g in range(4)]
    assert found.batch.metrics()["spread/taste"] == pytest.approx(torch.stack(stds).median().item(), rel=1e-6)
    assert metrics["spread/taste"] > 0
