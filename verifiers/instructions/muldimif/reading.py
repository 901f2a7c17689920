"""From a constraint's free text to its rules. Each reader takes what it understands of the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from verifiers.instructions.muldimif import form, words
from verifiers.instructions.muldimif.rules import Rule
from verifiers.instructions.muldimif.wording import Wording, unread

READERS: tuple[Callable[[Wording], list[Rule]], ...] = (
    words.sizes,
    words.cases,
    words.languages,
    words.endings,
    words.keywords,
    words.others,
    form.tables,
    form.markdown,
    form.data,
)


@lru_cache(maxsize=8192)
def read(text: str) -> tuple[Rule, ...]:
    """All that a constraint's text asks for.

    Raises:
        UnverifiableError: not all of it has been understood.
    """
    wording = Wording(text)
    rules = tuple(rule for reader in READERS for rule in reader(wording))
    wording.finish(words=bool(rules))
    if not rules:
        raise unread(text, "nothing in it can be checked")
    return rules
