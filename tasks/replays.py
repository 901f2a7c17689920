"""How a task words what its verifiers know (`creditlib.types.ReplayTask`).

A task has facts by name, some of which its prompts state as asked. Its setting `replay` words for each reward
what the verifier goes by, with facts in braces; None leaves the reward out. A fact that some wording restates
is nowhere else in the prompts of replays: a sentence with it stands where it stands in the prompt as asked
(with several: where the first of them stands), every other sentence at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from string import Formatter

from creditlib.types import CreditlibError, Prompt, ReplayTask

Replay = Mapping[str, str | None]  # reward -> wording


def check_replay(replay: Replay, rewards: Sequence[str], facts: Sequence[str]) -> None:
    """Refuse wordings of unknown rewards, with unknown facts, or with braces that are none.

    Raises:
        CreditlibError: the message names the setting.
    """
    if unknown := set(replay) - set(rewards):
        raise CreditlibError(f"task.replay.{min(unknown)}: no such reward, only {', '.join(rewards)}")
    known = ", ".join(f"{{{fact}}}" for fact in facts)
    for reward, wording in wordings(replay).items():
        try:
            named = mentioned(wording)
            wording.format(**dict.fromkeys([*named, *facts], ""))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise CreditlibError(
                f"task.replay.{reward}: {error} in {wording!r}; facts stand in braces ({known}), and a "
                "brace itself is written twice"
            ) from None
        if strange := set(named) - set(facts):
            raise CreditlibError(f"task.replay.{reward}: {{{min(strange)}}} is no fact; there are {known}")


def wordings(replay: Replay) -> dict[str, str]:
    """`replay` without the rewards that are not to be replayed."""
    return {reward: wording for reward, wording in replay.items() if wording is not None}


def mentioned(wording: str) -> list[str]:
    """The facts in a wording."""
    return [name for _, name, _, _ in Formatter().parse(wording) if name is not None]


def worded(replay: Replay, facts: Mapping[str, str]) -> dict[str, str]:
    """What each reward's verifier goes by. Where a fact is empty, its sentences say nothing and are left
    out.
    """
    return {
        reward: wording.format(**facts)
        for reward, wording in wordings(replay).items()
        if all(facts[fact] for fact in mentioned(wording))
    }


def placed(
    replay: Replay, information: Mapping[str, str], stated: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """What a prompt with this information says in the place of each stated fact, and at its end.

    Args:
        replay: the task's wordings.
        information: reward -> sentence, as `worded` gives them.
        stated: fact -> the sentence that says it in the prompt as asked, in order.

    Raises:
        CreditlibError: information about a reward without a wording.
    """
    words = wordings(replay)
    if unknown := set(information) - set(words):
        raise CreditlibError(f"no reward {sorted(unknown)} in task.replay, which words {', '.join(words)}")
    restated = {fact for wording in words.values() for fact in mentioned(wording)}
    places: dict[str, list[str]] = {
        fact: [] if fact in restated else [sentence] for fact, sentence in stated.items()
    }
    end: list[str] = []
    for reward, text in information.items():
        own = [fact for fact in mentioned(words[reward]) if fact in places]
        (places[own[0]] if own else end).append(text)
    return places, end


def sometimes_replayed(task: ReplayTask, prompt: Prompt, generator: Random) -> Prompt:
    """For a model that is made to read replays: three in five prompts as they are asked; the others tell
    everything, or everything but one reward's information.
    """
    if generator.random() >= 0.4:
        return prompt
    told = task.information(prompt, {})
    left_out = generator.choice([None, *told])
    return task.render(prompt, {reward: text for reward, text in told.items() if reward != left_out})
