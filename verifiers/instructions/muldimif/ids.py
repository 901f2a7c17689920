"""How MulDimIF's constraints are called: from the data's rows to ids and families."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# Category and subtype as test.json writes them, and the family whose checker the public code gives them.
PAIRS = {
    ("Content", "Keywords"): "keywords",
    ("Content", "Keywords: Must include"): "keywords",
    ("Content", "Identifiers"): "identifiers",
    ("Content", "Punctuation"): "punctuation",
    ("Content", "Punctuation: Ending punctuation"): "punctuation",
    ("Punctuation", "Ending punctuation"): "punctuation",
    ("Format", "Text"): "identifiers",
    ("Format", "Blurb"): "words",
    ("Format", "Json"): "json",
    ("Json", "Object nesting levels"): "json",
    ("Format", "Markdown"): "markdown",
    ("Format", "Markdown: Heading levels"): "markdown",
    ("Markdown", "Heading levels"): "markdown",
    ("Markdown", "Block quotes"): "markdown",
    ("Format", "Table"): "table",
    ("Format", "Table: Column limit"): "table",
    ("Format", "Table: Row limit"): "table",
    ("Table", "Column limit"): "table",
    ("Table", "Row limit"): "table",
    ("Table", "Table"): "table",
    ("Format", "XML"): "xml",
    ("XML", "Number of attributes"): "xml",
    ("Language", "Chinese"): "chinese",
    ("Language", "Chinese: Traditional"): "chinese",
    ("Language", "English"): "english",
    ("Language", "English: All Uppercase"): "english",
    ("Language", "English: Capitalized"): "english",
    ("Length", "Paragraphs"): "paragraphs",
    ("Length", "Paragraphs: At most"): "paragraphs",
    ("Length", "Sentences"): "sentences",
    ("Length", "Sentences: At least"): "sentences",
    ("Length", "Sentences: At most"): "sentences",
    ("Length", "Words"): "words",
    ("Length", "Words: At least"): "words",
    ("Length", "Words: At most"): "words",
    ("Length", "Words: Range"): "words",
}


def constraint_id(category: str, subtype: str) -> str:
    """``muldimif:<category>:<subtype>`` in small letters, with one underscore for all between words.

    ``constraint_id("Content", "Keywords: Must include")`` is ``"muldimif:content:keywords_must_include"``.
    """
    return f"muldimif:{_normalised(category)}:{_normalised(subtype)}"


def constraint_of(row: Sequence[str]) -> dict[str, Any]:
    """A constraint as `check` takes it, from one of the data: ``[category, subtype, text]``."""
    category, subtype, text = row
    return {"id": constraint_id(category, subtype), "kwargs": {"text": text}}


def _normalised(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).strip("_").lower()
