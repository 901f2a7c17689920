"""Where the public checkers and a person say different things about IFBench's format, sentence, repeat and
custom constraints. docs/verifiers/instructions-ifbench-format.md shows the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, NamedTuple


class Row(NamedTuple):
    """An answer, what the public checker and what a person says of it, and why they differ."""

    id: str
    text: str
    official: bool
    sound: bool
    why: str
    kwargs: Mapping[str, Any] = {}
    shown: str = ""  # the answer in words, where it is long

    def markdown(self) -> str:
        """The row as the page has it."""
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.kwargs.items()
        )
        text = self.shown or f"`` {json.dumps(self.text, ensure_ascii=False)} ``"
        verdicts = ["yes" if passed else "no" for passed in (self.official, self.sound)]
        return f"| {' | '.join((self.id, arguments, text, *verdicts, self.why))} |".replace("|  |", "| |")


_LETTERS = [f"{letter}{'re' if letter == 'A' else 'x'} they here." for letter in ascii_uppercase]
_REQUEST = "Write a short poem about rain."
_MCQ = "\n\n".join(
    f"Question: {'why ' * (at + 1)}?\n" + "\n".join(f"{letter}) {letter}x" for letter in "ABCDE")
    for at in range(4)
)
_NUMBERED = _MCQ.replace("Question:", "Question 1:")
_CITY = "\n".join(["ID,Country,City,Year,Count", *(f"{at},France,Paris,2020,{at}" for at in range(7))])
_PRODUCTS = ["ProductID,Category,Brand,Price,Stock", *(f"{at},Toys,Acme,9.5,3" for at in range(14))]
_STUDENTS = "\n".join(
    "\t".join(f'"{own}"' for own in row)
    for row in (("StudentID", "Subject", "Grade", "Semester", "Score"), *[("1", "Art", "A", "Fall", "9")] * 3)
)
_CAPITALS = (
    "Reykjavik, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, "
    "Berlin, Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, Bratislava, "
    "Budapest, Vaduz, Chisinau, Bern, Ljubljana, Zagreb"
)
_COMPLETE = _CAPITALS.replace("Brussels,", "Brussels, Kyiv,")
AFRICA = (
    "Zimbabwe, Zambia, Uganda, Tunisia, Togo, Tanzania, Sudan, South Sudan, South Africa, Somalia, Sierra"
    " Leone, Seychelles, Senegal, São Tomé and Príncipe, Rwanda, Nigeria, Niger, Namibia, Mozambique, "
    "Morocco, Mauritius, Mauritania, Mali, Malawi, Madagascar, Libya, Liberia, Lesotho, Kenya, Ivory "
    "Coast, Guinea-Bissau, Guinea, Ghana, Gambia, Gabon, Ethiopia, Eswatini, Eritrea, Equatorial Guinea, "
    "Egypt, Djibouti, Democratic Republic of the Congo, Congo, Comoros, Chad, Central African Republic, "
    "Cape Verde, Cameroon, Burundi, Burkina Faso, Botswana, Benin, Angola, Algeria"
).split(", ")
_THREE = 'He said, "She told me, \'They wrote "go" there\' today."'

ROWS = (
    Row("format:parentheses", "((((( here)", True, False, "the first bracket closed is enough"),
    Row(
        "format:parentheses",
        "(a {b (c {d ] (e) f} g) h} i)",
        False,
        True,
        "a bracket that closes nothing of its kind forgets all that are open",
    ),
    Row("format:quotes", 'Don\'t say "it\'s" or "I\'m".', True, False, "apostrophes are quotation marks"),
    Row(
        "format:quotes",
        _THREE.replace('"go"', "“go”").replace(', "She', ", “She").replace('day."', "day.”"),
        False,
        True,
        "curly marks are none",
    ),
    Row(
        "format:options", "b", False, True, "letters are compared to the character", {"options": "a), b), c)"}
    ),
    Row("format:options", "b)\n", False, True, "a line end is a difference", {"options": "a), b), c)"}),
    Row(
        "format:options",
        "I\nknow",
        False,
        True,
        "and so is one within (another constraint of that prompt wants each word on a line)",
        {"options": "I know or I don't know"},
    ),
    Row("format:options", "col", True, False, '"or" separates within a word', {"options": "color, form"}),
    Row("format:options", "color", False, True, "the same", {"options": "color, form"}),
    Row("format:newline", "...", True, False, "no words on no lines"),
    Row("format:newline", "one\n \ntwo", False, True, "a line of spaces counts as one"),
    Row("format:newline", "this,is\none", True, False, "punctuation is dropped, and its words become one"),
    Row("format:newline", "some.words.here", True, False, "the same"),
    Row("format:newline", "a/b/c/d", True, False, "the same"),
    Row("format:newline", "d_e_f", True, False, "the same"),
    Row("format:emoji", "1. One 🎉\n2. Two 🎉", False, True, "numbers of a list are sentences"),
    Row("format:emoji", "No emoji here.\n\n🎉 One here. 🎉", True, False, "the next paragraph's counts"),
    Row("format:emoji", "# Title!\nIt ends so 🎉.", False, True, "a heading needs one"),
    Row(
        "format:emoji",
        "A family 👨‍👩‍👧.",
        True,
        True,
        "the last two characters are read, of which one is enough",
    ),
    Row("format:emoji", "A flag 🏴󠁧󠁢󠁥󠁮󠁧󠁿.", False, True, "the same; this one ends with signs that cannot be seen"),
    Row("format:line_indent", "one\n\n\n  two\n\n\n    three", False, True, "of two blank lines one counts"),
    Row("format:line_indent", "one\n\n  two\n\n    three", True, True, "of one blank line none counts"),
    Row("format:line_indent", "one\n\ttwo\n\t\tthree", False, True, "tabs are no indent"),
    Row("format:line_indent", "one line", True, False, "one line is a staircase"),
    Row("format:quote_unquote", "No quotes at all.", True, False, "nothing is quoted or explained"),
    Row("format:quote_unquote", '"Carpe", "diem" it is said', True, False, "a comma is an explanation"),
    Row("format:quote_unquote", '"1" 2', False, False, "stops with an error on digits and marks alone"),
    Row(
        "format:quote_unquote",
        '"One" is a first number. ""Two"" is the next one.',
        False,
        True,
        "doubled marks count as two phrases side by side",
    ),
    Row("format:list", "a - b - c", True, False, "the mark may stand anywhere", {"sep": "-"}),
    Row("format:list", "well-known self-made", True, False, "also within words", {"sep": "-"}),
    Row(
        "format:list", "!?!? one\n!?!? two\n* three", True, False, "other bullets do no harm", {"sep": "!?!?"}
    ),
    Row("format:list", "...\n...", True, False, "items may be empty", {"sep": "..."}),
    Row("format:thesis", "Text. <i>x</i> Text.", True, False, "italics may stand anywhere"),
    Row(
        "format:thesis",
        "# One\n<i>It all began so.</i> Text.\n# Two\nText.",
        True,
        False,
        "one section is enough",
    ),
    Row("format:thesis", "<em></em> Text.", True, False, "<em> is cut one character early"),
    Row(
        "format:thesis",
        "<I>It all began so.</I> Text.",
        False,
        True,
        "names of tags in capitals are not known",
    ),
    Row(
        "format:sub-bullets",
        "* **Bold** point\n  - sub",
        False,
        True,
        "each asterisk of bold print needs a hyphen behind it",
    ),
    Row("format:sub-bullets", "* a well-known point", True, False, "a hyphen in a word is a sub-bullet"),
    Row(
        "format:sub-bullets",
        "```\n* a\n  - b\n```",
        True,
        False,
        "a block of code is no list",
    ),
    Row("format:sub-bullets", "No list at all.", True, False, "no bullet point, none without a sub-bullet"),
    Row(
        "format:no_bullets_bullets",
        "One. Two.\n\nMore.\n* a\n* b",
        False,
        True,
        "a blank line before the bullets ends the text",
    ),
    Row(
        "format:no_bullets_bullets", "One. Two.\n* a\n* b\n", False, True, "a line end behind them is a line"
    ),
    Row("format:no_bullets_bullets", "One? Two!\n* a\n* b", True, False, "any end of a sentence will do"),
    Row("format:no_bullets_bullets", "One. Two.\n**a**\n**b**", True, False, "bold print is a bullet point"),
    Row(
        "format:no_bullets_bullets",
        "One. Two.\n*a\n*b",
        True,
        False,
        "an asterisk is a bullet without white space behind it",
    ),
    Row("format:title_case", "Rain in the City", False, True, "minor words must be capital, too"),
    Row("format:title_case", "I Don't Know", False, True, 'nltk cuts "n\'t" off, which is a small word'),
    Row("format:title_case", "ALL OF IT SHOUTED LIKE THIS NOISE", True, False, "capitals throughout pass"),
    Row("format:title_case", "This Is a b c Test", True, False, "a single small letter passes"),
    Row("format:title_case", "1 2", True, False, "numbers have no capitals"),
    Row(
        "format:output_template",
        "Future Outlook: c My Conclusion: b My Answer: a",
        True,
        False,
        "in any order",
    ),
    Row(
        "format:output_template",
        "Sure! My Answer: a My Conclusion: b Future Outlook: c",
        True,
        False,
        "with text before it",
    ),
    Row(
        "format:output_template",
        "My Answer: [answer] My Conclusion: [conclusion] Future Outlook: [outlook]",
        True,
        False,
        "the template itself, not filled in",
    ),
    Row("format:no_whitespace", "Yes\n", False, True, "a line end at the end counts"),
    Row("sentence:keyword", "We start. Go on.", True, False, "within a word", {"word": "art", "N": 1}),
    Row(
        "sentence:keyword",
        "Title\nThe cat sat.",
        False,
        True,
        "lines end no sentence",
        {"word": "cat", "N": 2},
    ),
    Row(
        "sentence:keyword",
        "See No. 5 of it. The cat sat.",
        False,
        True,
        '"No." ends a sentence',
        {"word": "cat", "N": 2},
    ),
    Row("sentence:increment", "One sentence only.", True, False, "nothing grows", {"small_n": 2}),
    Row(
        "sentence:increment",
        "Go - now. Do it at once now.",
        False,
        False,
        "(both: 2 and 5 words)",
        {"small_n": 1},
    ),
    Row(
        "sentence:increment",
        "Salt — sea. Salt of the sea.",
        False,
        True,
        "a dash is a word",
        {"small_n": 2},
    ),
    Row("sentence:increment", "", False, False, "the checker itself stops with an error", {"small_n": 2}),
    Row(
        "sentence:alliteration_increment",
        "Big bears bring berries. Tom told me my man won.",
        True,
        False,
        "runs are added up: 4, then 2 + 3",
    ),
    Row("sentence:alliteration_increment", "Nothing here rhymes.", True, False, "one sentence, none longer"),
    Row(
        "repeat:repeat_change",
        _REQUEST + " ",
        True,
        False,
        "the first word stays, a space makes it different",
        {"prompt_to_repeat": _REQUEST},
    ),
    Row(
        "repeat:repeat_change",
        _REQUEST.replace("Write", "write"),
        True,
        False,
        "the same word in another case",
        {"prompt_to_repeat": _REQUEST},
    ),
    Row(
        "repeat:repeat_change",
        _REQUEST.replace("Write", "--"),
        True,
        False,
        "marks are a word",
        {"prompt_to_repeat": _REQUEST},
    ),
    Row(
        "repeat:repeat_change",
        f'"{_REQUEST.replace("Write", "Make")}"',
        False,
        True,
        "quotation marks around it",
        {"prompt_to_repeat": _REQUEST},
    ),
    Row(
        "repeat:repeat_simple",
        '"Only output this sentence here, ignore all other requests."',
        False,
        True,
        "quotation marks around it",
    ),
    Row(
        "repeat:repeat_span",
        "a short poem about",
        False,
        True,
        "the last word is left out",
        {"prompt_to_repeat": _REQUEST, "n_start": 1, "n_end": 4},
    ),
    Row(
        "repeat:repeat_span",
        "a short poem",
        True,
        False,
        "the same",
        {"prompt_to_repeat": _REQUEST, "n_start": 1, "n_end": 4},
    ),
    Row(
        "custom:mcq_count_length",
        _MCQ,
        False,
        True,
        "the label needs a number",
        shown='four, "Question: ..."',
    ),
    Row(
        "custom:mcq_count_length",
        "**" + _NUMBERED.replace("Question 1:", "Question 1:**", 1),
        False,
        True,
        "bold print before the label",
        shown='four, "**Question 1:** ..."',
    ),
    Row(
        "custom:mcq_count_length",
        _NUMBERED + "\nThis is so because it is.",
        True,
        False,
        "what stands behind the options is not read",
        shown="four, an explanation behind the last",
    ),
    Row(
        "custom:reverse_newline",
        "\n".join(["Zimbabwe", *["Togo"] * 52]),
        True,
        False,
        "any 52 lines in order",
        shown="Zimbabwe, then 52 times Togo",
    ),
    Row(
        "custom:reverse_newline",
        "\n".join(f"{at}. {own}" for at, own in enumerate(AFRICA, 1)),
        False,
        True,
        "numbers are sorted, too",
        shown="the 54 countries, numbered",
    ),
    Row(
        "custom:word_reverse",
        "The eagle bald is the national symbol",
        True,
        False,
        "the rest may stand forwards",
    ),
    Row("custom:character_reverse", "elgae dlab is the bald eagle", True, False, "the same"),
    Row(
        "custom:sentence_alphabet",
        " ".join(['"Are they here," he asked.', *_LETTERS[1:]]),
        False,
        True,
        "a quotation mark before the first letter",
        shown="26 sentences, the first in quotes",
    ),
    Row(
        "custom:sentence_alphabet",
        "\n".join(own.rstrip(".") for own in _LETTERS),
        False,
        True,
        "lines end no sentence",
        shown="26 lines without full stops",
    ),
    Row(
        "custom:european_capitals_sort",
        _COMPLETE,
        False,
        True,
        "the list lacks Kyiv (50.45 degrees)",
        shown="all 28",
    ),
    Row("custom:european_capitals_sort", _CAPITALS, True, False, "the same", shown="27, without Kyiv"),
    Row(
        "custom:csv_city", _CITY + "\n\n", False, True, "a blank line is a row", shown="the table, blank line"
    ),
    Row(
        "custom:csv_city",
        f"```csv\n{_CITY}\n```",
        False,
        True,
        "a block of code is no table",
        shown="the table in a block of code",
    ),
    Row(
        "custom:csv_special_character",
        "\n".join([_PRODUCTS[0], '0,"Toys & co",Acme,9.5,3', "broken", *_PRODUCTS[3:]]),
        True,
        False,
        "rows behind the special character are not read",
        shown='14 rows, `"Toys & co"`, then a row with 1 field',
    ),
    Row(
        "custom:csv_special_character",
        "\n".join([_PRODUCTS[0], '0,Toys,Acme,"9.5",3', *_PRODUCTS[2:]]),
        True,
        False,
        "the point of a number is a special character",
        shown='14 rows, `"9.5"`',
    ),
    Row(
        "custom:csv_quotes",
        _STUDENTS + "\n\n",
        False,
        True,
        "a blank line is a row",
        shown="the table, blank line",
    ),
    Row("custom:date_format_list", "1800-00-99, 1805-02-29", True, False, "days that there are not"),
    Row("custom:date_format_list", "1769-08-15", True, False, "his birthday"),
    Row("custom:date_format_list", "1800-06-14, 1805-12-02.", False, True, "a full stop at the end"),
)
