"""The 36 constraints, which share the checkers of 12 families.

There is no official reading: no package that we know holds MulDimIF's own checkers, to prove one against.
"""

from __future__ import annotations

from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import Checker, Finding, Text, UnverifiableError, constraint
from verifiers.instructions.muldimif.ids import PAIRS, constraint_id
from verifiers.instructions.muldimif.layout import layout_of
from verifiers.instructions.muldimif.reading import read
from verifiers.instructions.muldimif.rules import Rule
from verifiers.instructions.muldimif.wording import unread


def rules_of(family: str, text: str) -> tuple[Rule, ...]:
    """What a constraint asks for.

    Args:
        family: one of `PAIRS`' values; at least one rule must be of its kind.
        text: the constraint's own.

    Raises:
        UnverifiableError: not all of the text has been understood.
    """
    found = read(text)
    if all(rule.kind != family for rule in found):
        raise unread(text, f"it says nothing about {family}")
    return found


def _checker(family: str) -> Checker:
    def check(answer: Answer, text: Text) -> Finding:
        layout = layout_of(answer)
        found = [rule.find(layout) for rule in rules_of(family, text)]
        broken = [own for own in found if not own.passed]
        marked = dict.fromkeys(span for own in broken or found for span in own.spans)
        return Finding(not broken, "; ".join(own.reason for own in broken or found), tuple(marked))

    return check


def _no_official_reading(answer: Answer, text: Text) -> Finding:
    raise UnverifiableError("no package that we know holds MulDimIF's own checkers; use mode='sound'")


def _text(text: str) -> str:
    return text


for (category, subtype), family in PAIRS.items():
    constraint(constraint_id(category, subtype), _text)(_checker(family)).official(_no_official_reading)
