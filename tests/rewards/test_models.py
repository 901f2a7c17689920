"""Reward models as rewards: what becomes of scores, and where their gradients and values lie."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from creditlib.config import LengthWindow
from creditlib.policy.reward_scorer import RewardScorer, Text
from creditlib.rewards.judge import Judge
from creditlib.rewards.models import RewardModel, _penalties
from creditlib.rewards.table import join_tables, select_rows
from creditlib.types import CreditlibError, RewardTable, Rollout
from tests.conftest import random_reward_model
from tests.trainer import world


def reward_model(
    window: LengthWindow | None = None, differences: str = "", tokens: int = 4096
) -> RewardModel:
    scorer = RewardScorer(random_reward_model("llama"), "random", tokens)
    return RewardModel(scorer, world.tokenizer(), world.VOCABULARY, differences, window)


def rollout(step: int = 1, count: int = 3) -> Rollout:
    return world.Scripted().generate(world.prompts(count), samples=4, step=step)


def judged(needs: Any = (), asked: Rollout | None = None, **settings: Any) -> RewardTable:
    return Judge(world.Words(), {"taste": reward_model(**settings)}, lambda reward: needs)(
        rollout() if asked is None else asked
    )


def whole(asked: Rollout, row: int) -> tuple[tuple[int, ...], list[int]]:
    """The prompt, and the tokens that the model reads after it."""
    ids = asked.ids_BT[row][asked.mask_BT[row]].tolist()
    return asked.prompt_ids[int(asked.group_B[row])], [
        *(ids[:-1] if asked.finish[row] == "stop" else ids),
        world.EOS,
    ]


def test_its_column_stands_behind_the_verifiers() -> None:
    asked, table = rollout(), judged()
    assert table.names == ("even", "short", "rare", "taste")
    assert table.scores_BK.shape == (12, 4) and table.kind_BK[0] == table.names
    assert table.bounds_K2[3].tolist() == [-math.inf, math.inf]
    scorer = reward_model().scorer
    for row in range(12):
        prompt, rest = whole(asked, row)
        want = scorer.model(input_ids=torch.tensor([[*prompt, *rest]])).logits.item()
        assert table.scores_BK[row, 3].item() == pytest.approx(want, rel=1e-6)
        assert table.checks[row][3].reason == f"score {want:.3f}"
    assert not table.readings


def test_gradients_and_values_lie_at_the_policys_tokens() -> None:
    asked = rollout()
    table = judged({"reward_gradients", "reward_values"})
    reading, scorer = table.readings["taste"], reward_model().scorer
    assert reading.gradients_BTD is not None and reading.values_BS is not None
    for row in range(12):
        prompt, rest = whole(asked, row)
        (alone,) = scorer.read([Text(tuple(prompt), tuple(rest))], gradients=True, values=True)
        assert alone.gradients_SE is not None and alone.values_S is not None
        said, length = len(rest) - 1, int(asked.lengths_B[row])
        assert reading.read_BT[row].sum() == said and reading.read_BT[row, :said].all()
        torch.testing.assert_close(reading.gradients_BTD[row, :said], alone.gradients_SE[:said])
        assert (reading.gradients_BTD[row, said:] == 0).all()
        assert reading.score_B[row].item() == pytest.approx(alone.score)
        # Red's differences telescope: from before the first token to the score.
        changes_T = reading.values_BS[row].diff()[:length]
        assert changes_T.sum().item() == pytest.approx(alone.score - alone.values_S[0].item(), abs=1e-5)
        if said > 1:
            assert changes_T[0].item() == pytest.approx(
                (alone.values_S[1] - alone.values_S[0]).item(), abs=1e-5
            )


def test_micro_batches_change_nothing() -> None:
    one, other = (judged({"reward_gradients"}, tokens=tokens) for tokens in (1, 10_000))
    torch.testing.assert_close(one.scores_BK, other.scores_BK, equal_nan=True, rtol=1e-6, atol=1e-6)
    left, right = (table.readings["taste"].gradients_BTD for table in (one, other))
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-11)


def test_tables_join_and_select_with_their_readings() -> None:
    parts = [
        judged({"reward_gradients", "reward_values"}, rollout(step, count))
        for step, count in ((1, 2), (7, 1))
    ]
    together = join_tables(parts)
    width = max(part.readings["taste"].read_BT.shape[1] for part in parts)
    reading = together.readings["taste"]
    assert reading.gradients_BTD is not None and reading.values_BS is not None
    assert reading.gradients_BTD.shape[:2] == (12, width) and reading.values_BS.shape == (12, width + 1)
    own = parts[1].readings["taste"]
    assert own.gradients_BTD is not None
    torch.testing.assert_close(reading.gradients_BTD[8:, : own.read_BT.shape[1]], own.gradients_BTD)
    chosen = select_rows(together, [9, 2]).readings["taste"]
    assert chosen.gradients_BTD is not None
    assert torch.equal(chosen.gradients_BTD, reading.gradients_BTD[[9, 2]])
    assert torch.equal(chosen.score_B, reading.score_B[[9, 2]]) and chosen.values_BS is not None


@pytest.mark.parametrize(
    ("length", "short", "long"),
    [(0, 1.5, 0), (4, 0.75, 0), (8, 0, 0), (1024, 0, 0), (1536, 0, 3.0), (2048, 0, 6.0), (9000, 0, 6.0)],
)
def test_the_length_window(length: int, short: float, long: float) -> None:
    """0.5 and 2 times 3.0 at the far ends, as DATC's with a scale of 3."""
    window = LengthWindow(short_penalty=1.5, long_penalty=6.0)
    assert _penalties(window, length) == pytest.approx((short, long))


def test_the_window_edits_the_reward_and_not_what_gradients_are_of() -> None:
    asked = rollout()
    plain = judged({"reward_gradients"}, asked)
    edited = judged({"reward_gradients"}, asked, window=LengthWindow(short=8, short_penalty=2.0))
    less_B = plain.scores_BK[:, 3] - edited.scores_BK[:, 3]
    want = [2.0 * max(8 - length, 0) / 8 for length in asked.lengths_B.tolist()]
    assert less_B.tolist() == pytest.approx(want, abs=1e-5)
    assert "less" in edited.checks[0][3].reason
    assert torch.equal(edited.readings["taste"].score_B, plain.readings["taste"].score_B)
    assert torch.equal(*(table.readings["taste"].gradients_BTD for table in (plain, edited)))  # type: ignore[arg-type]


def test_what_it_cannot_judge_has_no_reward() -> None:
    asked, model = rollout(), reward_model()
    model.scorer.model.config.max_position_embeddings = 9
    table = Judge(world.Words(), {"taste": model}, lambda reward: {"reward_gradients"})(asked)
    for row in range(12):
        prompt, rest = whole(asked, row)
        long = len(prompt) + len(rest) > 9
        assert table.scores_BK[row, 3].isnan() == long
        assert table.checks[row][3].flags == (("reward_model:too_long",) if long else ())
        assert table.readings["taste"].read_BT[row].any() == (not long and len(rest) > 1)
    broken = reward_model()
    torch.nn.init.constant_(broken.scorer.head.weight, math.inf)
    table = Judge(world.Words(), {"taste": broken}, lambda reward: {"reward_gradients"})(asked)
    assert table.scores_BK[:, 3].isnan().all()
    assert table.checks[0][3].flags == ("reward_model:not_finite",)


def test_names_that_are_taken_and_no_reward_at_all() -> None:
    with pytest.raises(CreditlibError, match=r"reward_model.even: the task has a reward of this name"):
        Judge(world.Words(), {"even": reward_model()})

    class Silent(world.Words):
        reward_names = ()  # type: ignore[assignment]
        bounds = {}  # noqa: RUF012

        def verify(self, prompts: Any, texts: Any) -> Any:
            return [{} for _ in texts]

    with pytest.raises(CreditlibError, match="there is no reward"):
        Judge(Silent(), {})
    table = Judge(Silent(), {"taste": reward_model()})(rollout())
    assert table.names == ("taste",) and table.scores_BK.shape == (12, 1)


def test_no_padding_token() -> None:
    tokenizer = world.tokenizer()
    tokenizer.pad_token = None
    model = RewardModel(RewardScorer(random_reward_model("llama"), "random"), tokenizer, world.VOCABULARY)
    assert Judge(world.Words(), {"taste": model})(rollout()).scores_BK.isfinite()[:, 3].all()
    with pytest.raises(CreditlibError, match="no padding token"):
        _ = model.null_E


def test_only_what_is_needed_is_read_and_nothing_in_an_evaluation() -> None:
    models = {"taste": reward_model(), "tone": reward_model()}
    judge = Judge(world.Words(), models, lambda reward: {"reward_values"} if reward == "tone" else set())
    table = judge(rollout())
    assert set(table.readings) == {"tone"}
    assert table.readings["tone"].gradients_BTD is None and table.readings["tone"].values_BS is not None
    assert not judge(rollout(), look=False).readings


def test_equal_responses_have_equal_scores_whatever_batch_they_fall_into() -> None:
    """In float32, among others of many lengths: a group of equal responses must have no spread."""
    model = random_reward_model("llama", torch.float32)
    scorer = RewardScorer(model, "random", tokens=40)
    twin = Text((5, 6, 7), (20, 21, 22, 23))
    others = [Text((5, 6, 7), (30 + n % 9,) * (1 + n % 7)) for n in range(20)]
    texts = [text for pair in zip([twin] * 20, others, strict=True) for text in pair]
    found = scorer.read(texts, gradients=True)
    assert len({judgement.score for judgement in found[::2]}) == 1


def test_micro_tokens_bound_the_prompts_too() -> None:
    scorer = RewardScorer(random_reward_model("llama"), "random", tokens=64)
    sizes: list[int] = []
    own = scorer.backbone.forward

    def watched(**inputs: Any) -> Any:
        ids = inputs.get("input_ids")
        sizes.append((inputs["inputs_embeds"][..., 0] if ids is None else ids).numel())
        return own(**inputs)

    scorer.backbone.forward = watched
    texts = [Text(tuple(range(3 + n, 33 + n)), (40, 41)) for n in range(12)]
    scorer.read(texts)
    assert max(sizes) <= 64
