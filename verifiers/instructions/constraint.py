"""What a constraint is, and the list of all of them.

A constraint is a function in one of the families' files::

    @constraint("punctuation:no_comma", "Do not use commas.")
    def no_comma(answer: Answer) -> Finding: ...

    @no_comma.official
    def _(answer: Answer) -> Finding: ...

Its arguments after the answer are the constraint's, checked against their types. The second function is
there where the public checker says something else than a person would; `docs/verifiers/instructions.md` lists
where.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from creditlib.types import Span
from verifiers.instructions.answer import Piece

Mode = Literal["sound", "official"]
_MOST = 1_000_000  # of anything; no answer has as many
Count = Annotated[int, Field(ge=0, le=_MOST)]
Positive = Annotated[int, Field(ge=1, le=_MOST)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(min_length=1)]
Relation = Literal["less than", "at least"]  # as IFEval's and IFBench's data have it


class UnverifiableError(Exception):
    """A constraint that cannot be checked, whatever the answer; the message says why."""


@dataclass(frozen=True)
class Finding:
    """Whether an answer keeps a constraint, why (for a person), and the parts of the answer that say so."""

    passed: bool
    reason: str
    spans: tuple[Span, ...] = ()


Checker = Callable[..., Finding]


@dataclass
class Constraint:
    """One kind of constraint, in its two readings.

    Args:
        id: as the public data has it.
        says: the constraint in words, its arguments in braces or a function of them.
        sound: what a person would say.
    """

    id: str
    says: str | Callable[..., str]
    sound: Checker
    _official: Checker | None = field(default=None, init=False)

    def official(self, checker: Checker) -> Checker:
        """Decorator: what the public checker says, where that differs."""
        self._official = checker
        return checker

    @property
    def differs(self) -> bool:
        """Whether the public checker is known to say something else on some answer."""
        return self._official is not None

    def checker(self, mode: Mode) -> Checker:
        return self._official or self.sound if mode == "official" else self.sound

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the checkers take them; None counts as not given.

        Raises:
            UnverifiableError: some are missing, unknown, of the wrong type or impossible.
        """
        fields = self._schema.model_fields
        for name, value in given.items():
            wanted = fields[name].annotation if name in fields else bool
            if isinstance(value, bool) and wanted is not bool:  # pydantic would take it for 0 or 1
                raise UnverifiableError(f"argument {name}: expected a number or a text, found {value}")
        try:
            model = self._schema.model_validate(
                {key: value for key, value in given.items() if value is not None}
            )
        except ValidationError as error:
            known = ", ".join(self._schema.model_fields) or "none"
            raise UnverifiableError(
                "; ".join(_explain(problem, known) for problem in error.errors())
            ) from None
        return dict(model)

    def wording(self, arguments: Mapping[str, Any]) -> str:
        """The constraint in words, for people and replays."""
        if callable(self.says):
            return self.says(**arguments)
        return self.says.format(**{key: _listed(value) for key, value in arguments.items()})

    @cached_property
    def _schema(self) -> type[BaseModel]:
        hints = typing.get_type_hints(self.sound, include_extras=True)
        parameters = list(inspect.signature(self.sound).parameters.values())[1:]
        fields = {
            own.name: (hints[own.name], ... if own.default is own.empty else own.default)
            for own in parameters
        }
        rules = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
        return create_model(self.id, __config__=rules, **fields)  # type: ignore[call-overload, no-any-return]


CONSTRAINTS: dict[str, Constraint] = {}


def constraint(id: str, says: str | Callable[..., str]) -> Callable[[Checker], Constraint]:
    """Decorator: enter a checker into the list."""

    def enter(checker: Checker) -> Constraint:
        assert id not in CONSTRAINTS, f"two constraints are called {id}"
        CONSTRAINTS[id] = Constraint(id, says, checker)
        return CONSTRAINTS[id]

    return enter


# --------------------------------------------------------------------------- what checkers share


def spans(pieces: Iterable[Piece], part: str) -> tuple[Span, ...]:
    new = tuple.__new__  # in half the time
    return tuple([new(Span, (piece[0], piece[1], part)) for piece in pieces])


def compare(found: int, relation: Relation, wanted: int, what: str) -> tuple[bool, str]:
    """Verdict and reason of a count."""
    passed = found < wanted if relation == "less than" else found >= wanted
    return passed, f"{found} {what}, {relation} {wanted} wanted"


def _listed(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else value


def _explain(problem: Any, known: str) -> str:
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "missing":
        return f"argument {name} is missing"
    if problem["type"] == "extra_forbidden":
        return f"there is no argument {name}, only {known}"
    message = problem["msg"][0].lower() + problem["msg"][1:].replace("valid tuple", "list")  # as JSON has it
    return f"argument {name}: {message} (found {problem['input']!r:.80})"
