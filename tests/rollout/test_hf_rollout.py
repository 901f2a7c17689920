"""The engine against an oracle that knows neither caches nor batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor

from creditlib.policy.streams import exponentials, stream_key
from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.hf import HFRollout
from creditlib.rollout.prefix import RepeatedPrefix
from creditlib.types import CreditlibError, Prompt, Rollout, RolloutEngine

LENGTHS = (3, 11, 2, 30)
PROMPTS = [
    Prompt(id=f"p{n}", task="words", text=" ".join(["w7", "w19", "w33"][i % 3] for i in range(n)))
    for n in LENGTHS
]
SAMPLES, MAX_TOKENS = 3, 12
SPECIAL = dict(enumerate(["<pad>", "<s>", "</s>", "<end>", "<user>", "<assistant>"]))
EOS = tuple(range(40, 50))  # many, so that responses end at different times


@pytest.fixture
def engine(make_model: Callable[..., Any], make_tokenizer: Callable[..., Any]) -> Callable[..., HFRollout]:
    def build(model: Any = "llama", **settings: Any) -> HFRollout:
        encoder = PromptEncoder(make_tokenizer(), style="text")
        model = make_model(model) if isinstance(model, str) else model
        return HFRollout(model, encoder, **{"seed": 5, "max_tokens": MAX_TOKENS, "eos_ids": EOS, **settings})

    return build


def test_what_the_chat_template_opens_is_told(
    make_model: Callable[..., Any], make_tokenizer: Callable[..., Any]
) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template += "{{ '<think>' if add_generation_prompt else '' }}"
    engine = HFRollout(make_model("llama"), PromptEncoder(tokenizer), seed=5, max_tokens=2, eos_ids=EOS)
    asked = Prompt(id="c", task="words", messages=({"role": "user", "content": "w7 w8"},))
    assert engine.generate([asked], samples=1, step=0).opened == "<think>"


def oracle(
    model: Any,
    ids: Sequence[int],
    key: int,
    *,
    temperature: float,
    top_p: float,
    top_k: int | None,
    greedy: bool,
) -> tuple[list[int], list[float], list[float]]:
    """One response by full forwards over the whole sequence, with the race run over Python lists."""
    tokens: list[int] = []
    logps: list[float] = []
    masses: list[float] = []
    while len(tokens) < MAX_TOKENS and not (tokens and tokens[-1] in EOS):
        logits = model(input_ids=torch.tensor([[*ids, *tokens]])).logits[0, -1]
        full = (logits / temperature).log_softmax(0)
        if greedy:
            token, mass = int(full.argmax()), 1.0
        else:
            probs, mass = truncate(full.exp(), top_k, top_p)
            token = race(probs, key, len(tokens))
        tokens.append(token)
        logps.append(float(full[token]))
        masses.append(mass)
    return tokens, logps, masses


def truncate(probs: Tensor, top_k: int | None, top_p: float) -> tuple[list[float], float]:
    ranked = sorted(enumerate(probs.tolist()), key=lambda item: -item[1])[:top_k]
    whole = sum(p for _, p in ranked)
    kept = [0.0] * len(probs)
    for token, p in ranked:
        if sum(kept) < top_p * whole:
            kept[token] = p
    return kept, sum(kept)


def race(probs: list[float], key: int, position: int) -> int:
    size = 2 ** round(math.log2(len(probs)) / 2)
    blocks = [probs[start : start + size] for start in range(0, len(probs), size)]
    noise = exponentials(torch.tensor([key]), position * (len(blocks) + size), len(blocks) + size)[0].tolist()
    times = [noise[i] / sum(block) if sum(block) else math.inf for i, block in enumerate(blocks)]
    first = times.index(min(times))
    times = [noise[len(blocks) + i] / p if p else math.inf for i, p in enumerate(blocks[first])]
    return first * size + times.index(min(times))


def check_against_oracle(
    rollout: Rollout, model: Any, *, step: int, samples: int = SAMPLES, **settings: Any
) -> None:
    settings = {"temperature": 1.0, "top_p": 1.0, "top_k": None, "greedy": False, **settings}
    with torch.no_grad():
        for b, group in enumerate(rollout.group_B.tolist()):
            key = stream_key(5, step, rollout.prompts[group].id, b % samples)
            tokens, logps, masses = oracle(model, rollout.prompt_ids[group], key, **settings)
            n = len(tokens)
            assert rollout.mask_BT[b].tolist() == [t < n for t in range(rollout.ids_BT.shape[1])]
            assert rollout.ids_BT[b, :n].tolist() == tokens
            assert rollout.sampler_logps_BT[b, :n].tolist() == pytest.approx(logps, abs=1e-5)
            assert rollout.sampler_mass_BT[b, :n].tolist() == pytest.approx(masses, rel=1e-6)
            assert (rollout.sampler_logps_BT[b, n:] == 0).all()
            assert (rollout.sampler_mass_BT[b, n:] == 1).all()
            assert rollout.finish[b] == ("stop" if tokens[-1] in EOS else "length")
            words = tokens[:-1] if tokens[-1] in EOS else tokens
            assert rollout.texts[b].split() == [SPECIAL.get(token, f"w{token}") for token in words]


@pytest.mark.parametrize("rows", [1, 3, 7, 64])
def test_equals_the_oracle(
    family: str, rows: int, make_model: Callable[..., Any], engine: Callable[..., HFRollout]
) -> None:
    model = make_model(family)
    rollout = engine(model, rows=rows).generate(PROMPTS, samples=SAMPLES, step=2)
    assert rollout.group_B.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert len({int(n) for n in rollout.lengths_B}) > 2, "responses of one length test little"
    check_against_oracle(rollout, model, step=2)


@pytest.mark.parametrize(
    "settings",
    [{"temperature": 0.6}, {"top_p": 0.8}, {"top_k": 5, "temperature": 1.5}, {"top_k": 20, "top_p": 0.7}],
)
def test_temperature_and_truncation(
    settings: dict[str, Any], make_model: Callable[..., Any], engine: Callable[..., HFRollout]
) -> None:
    model = make_model("qwen2")
    rollout = engine(model, **settings).generate(PROMPTS, samples=SAMPLES, step=0)
    assert rollout.temperature == settings.get("temperature", 1.0)
    check_against_oracle(rollout, model, step=0, **settings)


def test_greedy(make_model: Callable[..., Any], engine: Callable[..., HFRollout]) -> None:
    model = make_model("qwen3")
    rollout = engine(model, temperature=0.7, top_k=3).generate(PROMPTS, samples=1, step=0, greedy=True)
    check_against_oracle(rollout, model, step=0, samples=1, temperature=0.7, greedy=True)


def test_the_general_way_gives_the_same(
    engine: Callable[..., HFRollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = engine().generate(PROMPTS, samples=SAMPLES, step=1)
    monkeypatch.setattr("creditlib.rollout.hf.supports_shared_prefix", lambda model: False)
    general = engine()
    assert general._prefix_type is RepeatedPrefix
    repeated = general.generate(PROMPTS, samples=SAMPLES, step=1)
    assert torch.equal(shared.ids_BT, repeated.ids_BT)
    torch.testing.assert_close(shared.sampler_logps_BT, repeated.sampler_logps_BT)


def test_a_response_does_not_depend_on_the_other_prompts(engine: Callable[..., HFRollout]) -> None:
    both = engine().generate(PROMPTS, samples=SAMPLES, step=3)
    for n, prompt in enumerate(PROMPTS):
        alone = engine().generate([prompt], samples=SAMPLES, step=3)
        for b in range(SAMPLES):
            assert (
                alone.ids_BT[b][alone.mask_BT[b]].tolist()
                == both.ids_BT[n * SAMPLES + b][both.mask_BT[n * SAMPLES + b]].tolist()
            )


def test_prompts_are_read_once_and_finished_rows_leave(
    make_model: Callable[..., Any], engine: Callable[..., HFRollout]
) -> None:
    model = make_model("llama")
    sampler = engine(model)
    shapes: list[tuple[int, int]] = []
    model.model.embed_tokens.register_forward_hook(
        lambda module, inputs, output: shapes.append(inputs[0].shape)
    )
    rollout = sampler.generate(PROMPTS[:1] * 4, samples=4, step=0)
    prefill, *steps = shapes
    assert prefill == (4, len(rollout.prompt_ids[0]))
    assert all(length == 1 for _, length in steps)
    for step, (rows, _) in enumerate(steps):
        unfinished = int((rollout.lengths_B > step + 1).sum())
        assert unfinished <= rows <= unfinished * 8 / 7


def test_streams_differ_by_seed_step_and_sample(engine: Callable[..., HFRollout]) -> None:
    base = engine(eos_ids=()).generate(PROMPTS[:1], samples=2, step=0)
    later = engine(eos_ids=()).generate(PROMPTS[:1], samples=2, step=1)
    other = engine(eos_ids=(), seed=6).generate(PROMPTS[:1], samples=2, step=0)
    assert len({*base.texts, *later.texts, *other.texts}) == 6


def test_a_prompt_given_twice_gets_other_responses(engine: Callable[..., HFRollout]) -> None:
    twice = engine(eos_ids=()).generate([PROMPTS[0], PROMPTS[0]], samples=2, step=0)
    assert twice.texts == engine(eos_ids=()).generate(PROMPTS[:1], samples=4, step=0).texts
    assert len(set(twice.texts)) == 4


def test_stop_at_once_is_an_empty_response_with_one_decision(engine: Callable[..., HFRollout]) -> None:
    rollout = engine(eos_ids=range(61)).generate(PROMPTS[:1], samples=2, step=0)
    assert rollout.mask_BT.tolist() == [[True], [True]]
    assert rollout.texts == ("", "")
    assert rollout.finish == ("stop", "stop")
    assert (rollout.sampler_logps_BT < 0).all()


def test_without_eos_every_response_is_truncated(engine: Callable[..., HFRollout]) -> None:
    rollout = engine(eos_ids=()).generate(PROMPTS[:2], samples=2, step=0)
    assert rollout.mask_BT.all()
    assert rollout.ids_BT.shape == (4, MAX_TOKENS)
    assert set(rollout.finish) == {"length"}


def with_lora(model: Any) -> Any:
    config = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.5, target_modules=["q_proj", "v_proj", "down_proj"])
    adapted = get_peft_model(model, config)
    torch.manual_seed(1)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return adapted


def test_adapters_sample_and_nothing_is_left_behind(
    make_model: Callable[..., Any], engine: Callable[..., HFRollout]
) -> None:
    adapted = with_lora(make_model("llama"))
    adapted.train()
    modes = [module.training for module in adapted.modules()]
    before = {
        name: (parameter, parameter.data_ptr(), parameter.detach().clone())
        for name, parameter in adapted.named_parameters()
    }
    rollout = engine(adapted).generate(PROMPTS, samples=SAMPLES, step=4)
    assert modes == [module.training for module in adapted.modules()]
    for name, parameter in adapted.named_parameters():
        was, pointer, value = before[name]
        assert parameter is was
        assert parameter.data_ptr() == pointer
        assert torch.equal(parameter, value)
    adapted.eval()
    check_against_oracle(rollout, adapted, step=4)


def test_results_take_part_in_autograd(
    make_model: Callable[..., Any], engine: Callable[..., HFRollout]
) -> None:
    model = make_model("llama")
    rollout = engine(model).generate(PROMPTS[:1], samples=2, step=0)
    logits = model(input_ids=rollout.ids_BT).logits
    loss = (
        logits.log_softmax(2).gather(2, rollout.ids_BT[..., None])[..., 0] * rollout.sampler_logps_BT
    ).sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_prompt_that_does_not_fit_the_model(engine: Callable[..., HFRollout]) -> None:
    long = Prompt(id="long", task="words", text=" ".join(["w7"] * 100))
    with pytest.raises(
        CreditlibError, match=r"'long' has 101 tokens.*rollout\.max_tokens=200.*256 positions"
    ):
        engine(max_tokens=200).generate([long], samples=1, step=0)
    assert engine(max_tokens=155).generate([long], samples=1, step=0).texts


@pytest.mark.parametrize("call", [([], 1), (PROMPTS, 0)])
def test_nothing_to_sample(engine: Callable[..., HFRollout], call: tuple[list[Prompt], int]) -> None:
    with pytest.raises(CreditlibError, match="nothing to sample"):
        engine().generate(call[0], samples=call[1], step=0)


def test_is_a_rollout_engine(engine: Callable[..., HFRollout]) -> None:
    protocol: RolloutEngine = engine()
    assert protocol.generate(PROMPTS[:1], samples=1, step=0).prompts == (PROMPTS[0],)
