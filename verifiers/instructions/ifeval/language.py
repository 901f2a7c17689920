"""The language of the whole answer."""

from __future__ import annotations

from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import Finding, Text, UnverifiableError, constraint
from verifiers.instructions.language import LANGUAGES, detect, is_in


def _says(language: str) -> str:
    return f"Write all of your answer in {LANGUAGES.get(language, language)}."


@constraint("language:response_language", _says)
def response_language(answer: Answer, language: Text) -> Finding:
    if language not in LANGUAGES:
        raise UnverifiableError(
            f"argument language: expected one of {', '.join(LANGUAGES)}, found {language!r}"
        )
    passed = is_in(answer.text, language)
    return Finding(passed, f"it is {'' if passed else 'not '}in {LANGUAGES[language]}", answer.whole)


@response_language.official
def _(answer: Answer, language: Text) -> Finding:
    """A text of which no language can be told counts as kept."""
    found = detect(answer.text)
    return Finding(found in (language, None), f"it reads as {found}", answer.whole)
