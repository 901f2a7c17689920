"""Eleven constraints that each belong to one prompt of IFBench."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from creditlib.types import Span
from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import Finding, constraint, spans
from verifiers.instructions.ifbench._geography import (
    AFRICA,
    AFRICA_DISPUTED,
    NORTHERN_CAPITALS,
    OTHER_NAMES,
    PUBLIC_CAPITALS,
)
from verifiers.instructions.ifbench._marks import unfenced, within
from verifiers.instructions.ifbench._official import bare, sentences
from verifiers.instructions.ifbench._shared import EDGES
from verifiers.instructions.marks import headings

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MULTIPLES = ["14", "21", "28", "35", "42", "49"]
_CITY = ("ID", "Country", "City", "Year", "Count")
_PRODUCT = ("ProductID", "Category", "Brand", "Price", "Stock")
_STUDENT = ("StudentID", "Subject", "Grade", "Semester", "Score")

_QUESTION = re.compile(r"[#*_>\s]*Question\b[*_]*[ \t]*\d*[*_]*[.:)–—-]*[*_]*\s*")
_OPTION = re.compile(r"(?:[-*•]\s+)?[*_]*\(?[A-Ea-e1-5][.):][*_]*\s*\S")
_KEY = re.compile(r"[*_]*(?:correct )?answer\b.{0,100}$", re.IGNORECASE)
_PUBLIC_OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
_ITEM = re.compile(r"(?:[-*•]\s+|\d+[.)]\s+)?[*_]*")
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_PUBLIC_DAYS = {1: 31, 3: 31, 5: 31, 7: 31, 8: 31, 10: 31, 12: 31, 4: 30, 6: 30, 9: 30, 11: 30, 2: 29}
_SPECIAL = re.compile(r"[^\w\s]")
_NUMBER = re.compile(r"[\d.,\s-]*")
# What an English sentence about the eagle says forwards.
_FORWARDS = re.compile(
    r"\b(?:bald eagle|national (?:symbol|animal|bird)|(?:symbol|animal) of|(?:of|is) the|united states)\b"
)
_FORWARD_WORDS = re.compile(r"\b(?:the|is|of|eagle|bald|national|symbol|animal|bird|united|states)\b")


@constraint("custom:multiples", "Count from 10 to 50 but write multiples of 7 only.")
def multiples(answer: Answer) -> Finding:
    """The numbers in it, in this order, whatever stands between them."""
    found = [Piece(*match.span(), match[0]) for match in re.finditer(r"\d+", answer.text)]
    numbers = [own.text for own in found]
    reason = f"numbers {', '.join(numbers[:8]) or 'none'}, wanted {', '.join(_MULTIPLES)}"
    return Finding(numbers == _MULTIPLES, reason, spans(found, "number") or answer.whole)


@constraint(
    "custom:mcq_count_length",
    "Write 4 multiple choice questions with 5 options each, without explanations. Begin each with the label "
    "Question and make it longer than the one before.",
)
def mcq_count_length(answer: Answer) -> Finding:
    """Numbers behind the label are as good as none. An answer key is no explanation."""
    questions: list[str] = []
    counts: list[int] = []
    for line in answer.lines:
        if label := _QUESTION.match(line.text):
            questions.append(line.text[label.end() :])
            counts.append(0)
        elif not any(map(str.isalnum, line.text)):
            continue
        elif not questions:
            return Finding(False, f"{line.text!r:.40} stands before the first question", answer.whole)
        elif _OPTION.match(line.text):
            counts[-1] += 1
        elif not counts[-1]:
            questions[-1] = f"{questions[-1]} {line.text}".strip()
        elif not _KEY.match(line.text):
            return Finding(False, f"{line.text!r:.40} is neither question nor option", answer.whole)
    return _judge_questions(answer, [len(own) for own in questions], counts)


@mcq_count_length.official
def _(answer: Answer) -> Finding:
    """The label needs a number and must be the first thing; what stands behind the options is not read."""
    if not answer.text.startswith("Question"):
        return Finding(False, "does not begin with Question", answer.whole)
    parts = [own.strip() for own in re.split(r"Question \d+[.|):;]?", answer.text)]
    lengths, counts = [], []
    for part in filter(None, parts):
        lines = [line.strip() for line in part.split("\n")]
        options = [bool(_PUBLIC_OPTION.match(line)) for line in lines]
        counts.append(sum(options))
        text = lines[: options.index(True)] if counts[-1] else lines
        lengths.append(len(" ".join(text).strip()))
    return _judge_questions(answer, lengths, counts)


@constraint(
    "custom:reverse_newline",
    "List the countries of Africa in reverse alphabetical order, each on a line of its own.",
)
def reverse_newline(answer: Answer) -> Finding:
    """All 54, under any of their usual names and sorted by that name; what stands before and behind the list
    does not matter, nor do numbers, bullets and "The".
    """
    if len(answer.lines) > 200:
        return Finding(False, f"{len(answer.lines)} lines, 54 wanted", answer.whole)
    keys = [_country(line.text) for line in answer.lines]
    known = [index for index, key in enumerate(keys) if key in AFRICA or key in AFRICA_DISPUTED]
    if not known:
        return Finding(False, "no country of Africa on a line of its own", answer.whole)
    listed = keys[known[0] : known[-1] + 1]
    lines = answer.lines[known[0] : known[-1] + 1]
    unknown = [line.text for line, key in zip(lines, listed, strict=True) if not _is_african(key)]
    missing = len(set(AFRICA.values())) - len({AFRICA[key] for key in listed if key in AFRICA})
    names = [_fold(line.text[_ITEM.match(line.text).end() :]) for line in lines]  # type: ignore[union-attr]
    ordered = any(order == sorted(order, reverse=True) for order in (listed, names))
    passed = not unknown and not missing and ordered and len(set(listed)) == len(listed)
    reason = (
        f"{missing} of 54 missing, {len(unknown)} other lines, {'' if ordered else 'not '}in reverse order"
    )
    return Finding(passed, reason, spans(lines, "country"))


@reverse_newline.official
def _(answer: Answer) -> Finding:
    """At least 52 lines in descending order from the first one with Zimbabwe in it."""
    lines = [stripped for line in answer.text.split("\n") if (stripped := line.strip(EDGES))]
    start = next((at for at, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    names = [_ascii(line) for line in lines[start:]]
    passed = len(names) >= 52 and names == sorted(names, reverse=True)
    return Finding(passed, f"{len(names)} lines from Zimbabwe on, at least 52 in order wanted", answer.whole)


@constraint(
    "custom:word_reverse",
    "Say in one sentence what animal is the national symbol of the US, with the words in reverse order.",
)
def word_reverse(answer: Answer) -> Finding:
    """Read from its end it names the bald eagle; as it is written it holds no phrase that such a sentence
    holds forwards.
    """
    words = [word.text.lower() for word in answer.words]
    passed = "bald eagle" in " ".join(reversed(words)) and not _FORWARDS.search(" ".join(words))
    return Finding(passed and len(words) > 2, f"{len(words)} words, read backwards", answer.whole)


@word_reverse.official
def _(answer: Answer) -> Finding:
    words = bare(answer.text.lower()).split()
    passed = "bald eagle" in " ".join(reversed(words))
    return Finding(passed, f"{len(words)} words, read backwards", answer.whole)


@constraint(
    "custom:character_reverse",
    "Say in one sentence what animal is the national symbol of the US, with the letters in reverse order.",
)
def character_reverse(answer: Answer) -> Finding:
    """Read from its end it names the bald eagle; as it is written it holds no word that such a sentence holds
    forwards.
    """
    if "elgae" not in answer.folded:  # spares cutting it into words
        return Finding(False, "letters, read backwards", answer.whole)
    text = " ".join(word.text.lower() for word in answer.words)
    passed = re.search(r"\belgae dlab\b", text) is not None and not _FORWARD_WORDS.search(text)
    return Finding(passed, "letters, read backwards", answer.whole)


@character_reverse.official
def _(answer: Answer) -> Finding:
    return Finding("elgae dlab" in answer.text.lower(), "letters, read backwards", answer.whole)


@constraint(
    "custom:sentence_alphabet",
    "Tell a story of 26 sentences whose first letters are the alphabet in order.",
)
def sentence_alphabet(answer: Answer) -> Finding:
    """Quotation marks before a letter, its accent, and headings don't matter."""
    titles, firsts = headings(answer), []
    for own in answer.sentences[:100]:
        if not within(own, titles):
            start = next(at for at, letter in enumerate(own.text, own.start) if letter.isalnum())
            firsts.append(Piece(start, start + 1, _ascii(answer.text[start]).lower()[:1]))
    found = "".join(own.text for own in firsts)
    reason = f"{len(firsts)} sentences, which begin with {found[:30] or 'nothing'}"
    return Finding(
        found == _ALPHABET and len(firsts) == 26, reason, spans(firsts, "first letter") or answer.whole
    )


@sentence_alphabet.official
def _(answer: Answer) -> Finding:
    found = [own[:1].lower()[:1] for own in sentences(answer.text)]
    return Finding(
        found == [*_ALPHABET], f"{len(found)} sentences begin with {''.join(found):.30}", answer.whole
    )


@constraint(
    "custom:european_capitals_sort",
    "List the capitals of European countries north of 45 degrees of latitude, separated by commas, from the "
    "northernmost to the southernmost.",
)
def european_capitals_sort(answer: Answer) -> Finding:
    """All 28 and nothing else, but Astana if one likes. Two that are less than a tenth of a degree apart may
    change places.
    """
    names = [_fold(own) for own in answer.text.strip().rstrip(".").split(",")]
    names = [OTHER_NAMES.get(own, own) for own in names if own != "astana"]
    unknown = [own for own in names if own not in NORTHERN_CAPITALS]
    missing = len(NORTHERN_CAPITALS) - len(set(names) - set(unknown))
    latitudes = [NORTHERN_CAPITALS[own] for own in names if own in NORTHERN_CAPITALS]
    wrong = sum(south > north + 0.1 for north, south in pairwise(latitudes))
    passed = not unknown and not missing and not wrong and len(names) == len(NORTHERN_CAPITALS)
    reason = f"{missing} capitals missing, {len(unknown)} other items, {wrong} out of order"
    return Finding(passed, reason, answer.whole)


@european_capitals_sort.official
def _(answer: Answer) -> Finding:
    """Without Kyiv, and exactly in this order."""
    names = [stripped for own in _ascii(answer.text).split(",") if (stripped := own.strip())]
    passed = names == [own.capitalize() for own in PUBLIC_CAPITALS]
    return Finding(passed, f"{len(names)} items, {len(PUBLIC_CAPITALS)} wanted", answer.whole)


@constraint(
    "custom:csv_city",
    'Write CSV data with commas: the columns "ID", "Country", "City", "Year", "Count", 7 rows.',
)
def csv_city(answer: Answer) -> Finding:
    """Nothing but the table, which may stand in a block of code."""
    table = unfenced(answer)
    problem = _table_problem(_rows(table, ","), _CITY, 7)
    return Finding(not problem, problem or "a table of 7 rows", _where(table, answer))


@csv_city.official
def _(answer: Answer) -> Finding:
    """A blank line is a row."""
    rows = _public_rows(answer.text, ",")
    shape = [len(row) for row in rows]
    passed = rows[:1] == [list(_CITY)] and shape == [5] * 8
    return Finding(passed, f"rows of {', '.join(map(str, shape[:12]))} fields", answer.whole)


@constraint(
    "custom:csv_special_character",
    'Write CSV data with commas: the columns "ProductID", "Category", "Brand", "Price", "Stock", 14 rows. '
    "Put a field with a special character, in double quotes, among them.",
)
def csv_special_character(answer: Answer) -> Finding:
    """A special character is neither letter, digit nor white space, nor a part of a number."""
    table = unfenced(answer)
    rows = _rows(table, ",")
    problem = _table_problem(rows, _PRODUCT, 14)
    special = any(own.quoted and _is_special(own.text) for row in rows[1:] for own in row)
    if not special:
        problem = problem or "no field in double quotes with a special character"
    return Finding(not problem, problem or "a table of 14 rows", _where(table, answer))


@csv_special_character.official
def _(answer: Answer) -> Finding:
    """Rows behind the first special field are counted, not read."""
    if not _public_header(answer.text, _PRODUCT, r",[ \t]*"):
        return Finding(False, "not the wanted first line", answer.whole)
    rows = _public_rows(answer.text.replace('"', '"""'), ",")
    first = next((at for at, row in enumerate(rows) if at and any(map(_public_special, row))), -1)
    passed = len(rows) == 15 and first > 0 and all(len(row) == 5 for row in rows[1 : first + 1])
    return Finding(
        passed, f"{len(rows) - 1} rows, 14 wanted, with a special character in quotes", answer.whole
    )


@constraint(
    "custom:csv_quotes",
    'Write CSV data with tabs: the columns "StudentID", "Subject", "Grade", "Semester", "Score", 3 rows, '
    "every field in double quotes.",
)
def csv_quotes(answer: Answer) -> Finding:
    table = unfenced(answer)
    rows = _rows(table, "\t")
    problem = _table_problem(rows, _STUDENT, 3)
    if not all(own.quoted for row in rows for own in row):
        problem = problem or "a field without double quotes"
    return Finding(not problem, problem or "a table of 3 rows", _where(table, answer))


@csv_quotes.official
def _(answer: Answer) -> Finding:
    """An empty field without quotes stops the public checker."""
    if not _public_header(answer.text, _STUDENT, r"\t *"):
        return Finding(False, "not the wanted first line", answer.whole)
    rows = _public_rows(answer.text.replace('"', '"""'), "\t")
    fields = [own.strip() for row in rows for own in row]
    quoted = all(own[:1] == '"' == own[-1:] for own in fields)
    passed = [len(row) for row in rows] == [5] * 4 and quoted
    return Finding(passed, f"{len(rows) - 1} rows, 3 wanted, all in quotes", answer.whole)


@constraint(
    "custom:date_format_list",
    "List the dates on which Napoleon's battles began as YYYY-MM-DD, separated by commas and nothing else.",
)
def date_format_list(answer: Answer) -> Finding:
    """At least two days that there are, each once, from the siege of Toulon (1793) to Waterloo (1815).
    Whether a battle began on them is not judged.
    """
    given = [own.strip() for own in answer.text.strip().rstrip(".").split(",")]
    wrong = [own for own in given if not _in_his_wars(own)]
    reason = f"{len(given)} items, {len(wrong)} no dates of these wars"
    return Finding(len(given) > 1 and not wrong and len(set(given)) == len(given), reason, answer.whole)


@date_format_list.official
def _(answer: Answer) -> Finding:
    """Any year of his life, months and days from 0 on."""
    given = [own.strip() for own in answer.text.split(",")]
    wrong = [own for own in given if not _is_public_date(own)]
    return Finding(not wrong, f"{len(given)} items, {len(wrong)} no dates", answer.whole)


# --------------------------------------------------------------------------- questions, names, dates


def _judge_questions(answer: Answer, lengths: Sequence[int], counts: Sequence[int]) -> Finding:
    longer = all(before < after for before, after in pairwise(lengths))
    passed = list(counts) == [5] * 4 and longer
    reason = (
        f"{len(counts)} questions of {', '.join(map(str, lengths[:8])) or 'no'} characters with "
        f"{', '.join(map(str, counts[:8])) or 'no'} options; 4 with 5 wanted, each longer than the one before"
    )
    return Finding(passed, reason, answer.whole)


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _fold(name: str) -> str:
    """A name to compare: "Côte d'Ivoire" is "cote d ivoire"."""
    return " ".join(re.findall(r"[a-z0-9]+", _ascii(name).lower().replace("&", " and ")))


def _country(line: str) -> str:
    """The name in a line of a list, without number, bullet and "The"; brackets only where a name has them."""
    text = line[_ITEM.match(line).end() :]  # type: ignore[union-attr]
    name = _fold(text).removeprefix("the ")
    return name if _is_african(name) else _fold(_IN_BRACKETS.sub(" ", text)).removeprefix("the ")


def _is_african(name: str) -> bool:
    return name in AFRICA or name in AFRICA_DISPUTED


def _in_his_wars(text: str) -> bool:
    parts = _DATE.fullmatch(text)
    if not parts:
        return False
    try:
        day = date(int(parts[1]), int(parts[2]), int(parts[3]))
    except ValueError:  # no such day
        return False
    return date(1793, 8, 29) <= day <= date(1815, 6, 18)


def _is_public_date(text: str) -> bool:
    parts = _DATE.fullmatch(text)
    if not parts:
        return False
    year, month, day = map(int, parts.groups())
    return 1769 <= year <= 1821 and month <= 12 and day <= _PUBLIC_DAYS.get(month, 99)


# --------------------------------------------------------------------------- tables


class _Field(NamedTuple):
    text: str
    quoted: bool


def _rows(table: Piece, delimiter: str) -> list[list[_Field]]:
    """The fields of each row that is not blank, as far as a table of this size may reach."""
    text = table.text
    quoted = re.compile(rf' *"((?:[^"]++|"")*+)" *(?=[{delimiter}\r\n]|\Z)')
    plain = re.compile(rf"[^{delimiter}\r\n]*")
    rows: list[list[_Field]] = [[]]
    at = 0
    for _ in range(1000):
        if match := quoted.match(text, at):
            rows[-1].append(_Field(match[1].replace('""', '"').strip(), True))
        else:
            match = plain.match(text, at)
            assert match is not None  # it matches nothing, too
            rows[-1].append(_Field(match[0].strip(), False))
        at = match.end() + 1
        if at > len(text):
            break
        if text[at - 1] != delimiter:
            rows.append([])
    else:
        rows.append([])  # there is more
    return [row for row in rows if row != [_Field("", False)]]


def _table_problem(rows: Sequence[Sequence[_Field]], columns: Sequence[str], wanted: int) -> str | None:
    """What is wrong with a table that should have these columns and this many rows below them."""
    if not rows or [own.text for own in rows[0]] != list(columns):
        return f"the first row is not {', '.join(columns)}"
    if len(rows) - 1 != wanted:
        return f"{len(rows) - 1} rows, {wanted} wanted"
    if any(len(row) != len(columns) or not all(own.text for own in row) for row in rows):
        return f"a row without {len(columns)} filled fields"
    return None


def _where(table: Piece, answer: Answer) -> tuple[Span, ...]:
    return (table.span("table"),) if table.text else answer.whole


def _is_special(text: str) -> bool:
    return _SPECIAL.search(text) is not None and _NUMBER.fullmatch(text) is None


def _public_special(field: str) -> bool:
    """Whether the public checker sees a special character between two double quotes."""
    line = field.split("\n")[0]
    return line.startswith('"') and _SPECIAL.search(line, 1, max(line.rfind('"'), 1)) is not None


def _public_header(text: str, columns: Sequence[str], between: str) -> bool:
    line = text.split("\n")[0].strip()
    return re.fullmatch(between.join(f'(?:{own}|"{own}")' for own in columns), line) is not None


def _public_rows(text: str, delimiter: str) -> list[list[str]]:
    """Rows as Python's csv module reads them; none where it stops with an error."""
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return []
