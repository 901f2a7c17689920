"""What the words of an answer look like, and where they stand."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from verifiers.instructions import nltk_text
from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import Finding, Positive, Text, UnverifiableError, constraint, spans
from verifiers.instructions.ifbench._marks import within
from verifiers.instructions.ifbench._official import bare, sentences
from verifiers.instructions.ifbench._shared import (
    EDGES,
    key,
    keyword_words,
    letters,
    ordinal,
    plain,
    white_space_words,
)
from verifiers.instructions.ifbench._syllables import syllables
from verifiers.instructions.ifbench._verbs import begins_with_verb
from verifiers.instructions.marks import headings, items

_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_VOWELS = frozenset("aeiou")


@constraint(
    "words:alphabet",
    "Begin each word with the letter of the alphabet that follows the previous word's; after Z comes A.",
)
def alphabet(answer: Answer) -> Finding:
    """At least two words."""
    return _in_alphabetical_order(answer, [letters(word)[:1] for word in answer.words], 2)


@alphabet.official
def _(answer: Answer) -> Finding:
    words = bare(answer.text).split()
    first = [words[0][0].lower()] if words else []
    return _in_alphabetical_order(answer, first + [word.lower()[0] for word in words[1:]], 1)


@constraint(
    "words:vowel", "Write one paragraph whose words have only three different vowels (of a, e, i, o, u)."
)
def vowel(answer: Answer) -> Finding:
    """At least two words."""
    found = _VOWELS & set("".join(map(letters, answer.words)))
    return _few_vowels(answer, len(answer.paragraphs), found, len(answer.words) > 1)


@vowel.official
def _(answer: Answer) -> Finding:
    return _few_vowels(answer, answer.text.strip().count("\n") + 1, _VOWELS & set(answer.text.lower()), True)


@constraint("words:consonants", "Each word must have two or more consonants in a row (y is one).")
def consonants(answer: Answer) -> Finding:
    """At least two words."""
    return _each_word(
        answer, answer.words, lambda word: _has_cluster(plain(word.text)), "a consonant cluster", 2
    )


@consonants.official
def _(answer: Answer) -> Finding:
    words = white_space_words(answer.text)
    return _each_word(answer, words, lambda word: _has_cluster(word.text.lower()), "a consonant cluster", 1)


@constraint(
    "words:palindrome", "Use at least ten different palindromes (words like level) of five letters or more."
)
def palindrome(answer: Answer) -> Finding:
    """Of letters, not all of them the same: whether it is a word is not looked up."""
    found = [
        word
        for word in answer.words
        if _is_palindrome(inner := letters(word)) and inner.isalpha() and len(set(inner)) > 1
    ]
    return _ten(answer, len({letters(word) for word in found}), found)


@palindrome.official
def _(answer: Answer) -> Finding:
    found = [word for word in white_space_words(answer.text) if _is_palindrome(bare(word.text).lower())]
    return _ten(answer, len(found), found)


@constraint("words:prime_lengths", "Use only words whose number of letters is prime.")
def prime_lengths(answer: Answer) -> Finding:
    """Digits count as letters; apostrophes, hyphens and accents do not count. At least two words."""
    return _each_word(answer, answer.words, lambda word: _is_prime(len(letters(word))), "a prime length", 2)


@prime_lengths.official
def _(answer: Answer) -> Finding:
    """Primes above 100 are not on its list."""
    wrong = sum(len(word) > 100 or not _is_prime(len(word)) for word in bare(answer.text).split())
    return Finding(not wrong, f"{wrong} words without a prime length", answer.whole)


@constraint("words:start_verb", "Begin with a verb.")
def start_verb(answer: Answer) -> Finding:
    """By lists of common verbs, see `_verbs`: a rare verb is not known to be one."""
    first = [key(word) for word in answer.words[:2]]
    passed = begins_with_verb(first)
    reason = f"{first[0]} is {'a' if passed else 'no known'} verb here" if first else "no words"
    return Finding(passed, reason, spans(answer.words[:1], "word") or answer.whole)


@start_verb.official
def _(answer: Answer) -> Finding:
    import nltk

    tokens = nltk_text.words(answer.text)
    try:
        tagged = nltk.pos_tag(tokens)
    except LookupError:
        raise UnverifiableError(
            "the public checker needs the data of NLTK's part-of-speech tagger, which is not on PyPI: "
            "python -m nltk.downloader averaged_perceptron_tagger_eng"
        ) from None
    reason = f"{tagged[0][0]} is tagged {tagged[0][1]}" if tagged else "no words"
    passed = bool(tagged) and "VB" in tagged[0][1]
    return Finding(passed, reason, spans(answer.words[:1], "word") or answer.whole)


@constraint("words:repeats", "Use no word more than {small_n} times.")
def repeats(answer: Answer, small_n: Positive) -> Finding:
    """At least two words."""
    words = [key(word) for word in answer.words]
    if len(words) < 2:
        return Finding(False, _too_few(len(words)), answer.whole)
    return _no_word_too_often(answer, words, small_n)


@repeats.official
def _(answer: Answer, small_n: Positive) -> Finding:
    return _no_word_too_often(answer, bare(answer.text.lower()).split(), small_n)


@constraint(
    "words:odd_even_syllables", "Alternate between words with an odd and an even number of syllables."
)
def odd_even_syllables(answer: Answer) -> Finding:
    """By spelling, see `_syllables`. Numbers in digits are left out; one word alone does not alternate."""
    counts = [
        syllables(plain(key(word)))
        for word in answer.words
        if word.text[0].isalpha() or not letters(word).isdigit()
    ]
    return _alternating(answer, counts, len(counts) > 1)


@odd_even_syllables.official
def _(answer: Answer) -> Finding:
    import syllapy

    return _alternating(answer, [syllapy.count(word) for word in bare(answer.text).lower().split()], True)


@constraint("words:last_first", "Begin each sentence with the last word of the one before.")
def last_first(answer: Answer) -> Finding:
    """At least two sentences."""
    texts = _words_of(answer, answer.sentences)
    pairs = [(one[-1], following[0]) for one, following in pairwise(texts)]
    return _same_words(answer, pairs, "sentences do not begin as the one before ends")


@last_first.official
def _(answer: Answer) -> Finding:
    """It fails with an exception where a sentence is only punctuation; here that is not kept."""
    found = sentences(answer.text)
    wrong = 0
    for one, following in pairwise(found):
        last, first = one.rstrip(EDGES).split()[-1:], following.lstrip(EDGES).split()[:1]
        wrong += not last or not first or last[0].lower() != first[0].lower()
    return Finding(not wrong, f"{wrong} sentences do not begin as the one before ends", answer.whole)


@constraint(
    "words:paragraph_last_first",
    "End each paragraph with the word that it began with, and put each on a line of its own.",
)
def paragraph_last_first(answer: Answer) -> Finding:
    """Each line with a word in it is a paragraph. One word alone is none that begins and ends with it: only a
    heading may be one word.
    """
    titles = headings(answer)
    paragraphs = _words_of(answer, answer.lines)
    if titles:
        paragraphs = [words for words in paragraphs if len(words) > 1 or not within(words[0], titles)]
    pairs = [(words[0], words[-1]) for words in paragraphs]
    wrong = sum(first is last or key(first) != key(last) for first, last in pairs)
    return _same_words(answer, pairs, "paragraphs do not end as they began", wrong)


@paragraph_last_first.official
def _(answer: Answer) -> Finding:
    wrong = 0
    for line in answer.text.split("\n"):
        if line.strip():
            words = line.strip().lower().strip(EDGES).split()
            wrong += not words or words[0] != words[-1]
    return Finding(not wrong, f"{wrong} paragraphs do not end as they began", answer.whole)


@constraint("words:no_consecutive", "No word may begin with the same letter as the word before it.")
def no_consecutive(answer: Answer) -> Finding:
    """Headings and the items of a list stand alone; other lines go on with the word before. The bullet or
    number of an item is no word. At least two words must follow each other. Headings with nothing else are
    read as a text.
    """
    initials = [[letters(word)[:1] for word in words] for words in _words_of(answer, _running_texts(answer))]
    wrong = sum(one == other for text in initials for one, other in pairwise(text))
    return _no_alliteration(answer, wrong, any(len(text) > 1 for text in initials))


@no_consecutive.official
def _(answer: Answer) -> Finding:
    words = bare(answer.text.lower()).split()
    return _no_alliteration(answer, sum(one[0] == second[0] for one, second in pairwise(words)), True)


@constraint(
    "words:keywords_specific_position",
    lambda keyword, n, m: f"The {ordinal(m)} word of the {ordinal(n)} sentence must be {keyword}.",
)
def keywords_specific_position(answer: Answer, keyword: Text, n: Positive, m: Positive) -> Finding:
    """Case does not matter. A keyword of several words begins at the `m`-th."""
    wanted = keyword_words(keyword)
    if n > len(answer.sentences):
        return Finding(False, f"{len(answer.sentences)} sentences, no {ordinal(n)}", answer.whole)
    sentence = answer.sentences[n - 1]
    placed = answer.words_in(sentence)[m - 1 : m - 1 + len(wanted)]
    shown = " ".join(word.text for word in placed) or "missing"
    return Finding(
        [key(word) for word in placed] == wanted,
        f"the {ordinal(m)} word of the {ordinal(n)} sentence is {shown}",
        spans(placed, "word") or (sentence.span("sentence"),),
    )


@keywords_specific_position.official
def _(answer: Answer, keyword: Text, n: Positive, m: Positive) -> Finding:
    keyword_words(keyword)
    tokens = [nltk_text.words(sentence) for sentence in sentences(answer.text)[n - 1 : n]]
    found = tokens[0][m - 1 : m] if tokens else []
    shown = found[0] if found else "missing"
    return Finding(
        found == [keyword.strip()],
        f"the {ordinal(m)} word of the {ordinal(n)} sentence is {shown}",
        answer.whole,
    )


@constraint("words:words_position", "The second word and the second to last one must both be {keyword}.")
def words_position(answer: Answer, keyword: Text) -> Finding:
    """Case does not matter. A keyword of several words begins at the second, ends at the second to last."""
    wanted = keyword_words(keyword)
    second = answer.words[1 : 1 + len(wanted)]
    second_to_last = answer.words[max(len(answer.words) - 1 - len(wanted), 0) : -1]
    passed = [key(word) for word in second] == [key(word) for word in second_to_last] == wanted
    marked = dict.fromkeys(spans((*second, *second_to_last), "word"))
    return Finding(passed, _edges_read(second, second_to_last), tuple(marked) or answer.whole)


@words_position.official
def _(answer: Answer, keyword: Text) -> Finding:
    keyword_words(keyword)
    tokens = nltk_text.words(answer.text)
    passed = len(tokens) > 1 and tokens[1] == tokens[-2] == keyword.strip()
    return Finding(passed, f"they are {', '.join(tokens[1:2] + tokens[-2:-1]) or 'missing'}", answer.whole)


# --------------------------------------------------------------------------- what they share


def _words_of(answer: Answer, parts: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """The words of each of these parts, where there are any."""
    return [words for words in answer.words_of(parts) if words]


def _running_texts(answer: Answer) -> list[Piece]:
    """What headings and items of a list divide: each of them, without its bullet or number, and what stands
    between. Lines below an item are part of its text.
    """
    text = answer.text
    cuts = {0, len(text)}
    titles = headings(answer)
    said = sum(map(_has_word, answer.lines)) if titles else 0
    if said > sum(map(_has_word, titles)):
        for title in titles:
            cuts.update((title.start, title.end))
    item_texts = {line.start: start for line, start in items(answer)}
    cuts.update(item_texts)
    bounds = ((item_texts.get(start, start), end) for start, end in pairwise(sorted(cuts)))
    return [Piece(start, end, text[start:end]) for start, end in bounds]


def _has_word(line: Piece) -> bool:
    return _LETTER_OR_DIGIT.search(line.text) is not None


def _edges_read(second: Sequence[Piece], second_to_last: Sequence[Piece]) -> str:
    if not second or not second_to_last:
        return "too few words"
    read = (" ".join(word.text for word in each) for each in (second, second_to_last))
    return f"they are {', '.join(read)}"


def _in_alphabetical_order(answer: Answer, initials: Sequence[str], least: int) -> Finding:
    if len(initials) < least:
        return Finding(False, _too_few(len(initials)), answer.whole)
    start = string.ascii_lowercase.find(initials[0])
    alphabet = string.ascii_lowercase[start:] + string.ascii_lowercase[:start]
    wanted = (alphabet[i % 26] for i in range(len(initials)))
    wrong = [i for i, (found, letter) in enumerate(zip(initials, wanted, strict=True)) if found != letter]
    reason = f"word {wrong[0] + 1} is the first that is out of order" if wrong else "all in order"
    return Finding(not wrong, reason, answer.whole)


def _few_vowels(answer: Answer, paragraphs: int, found: frozenset[str], enough: bool) -> Finding:
    reason = f"{paragraphs} paragraphs, {len(found)} different vowels"
    return Finding(enough and paragraphs == 1 and len(found) <= 3, reason, answer.whole)


def _each_word(
    answer: Answer, words: Sequence[Piece], has: Callable[[Piece], bool], what: str, least: int
) -> Finding:
    if len(words) < least:
        return Finding(False, _too_few(len(words)), answer.whole)
    wrong = [word.text for word in words if not has(word)]
    first = f", the first is {wrong[0]:.40}" if wrong else ""
    return Finding(not wrong, f"{len(wrong)} of {len(words)} words without {what}{first}", answer.whole)


def _too_few(words: int) -> str:
    return "one word alone" if words else "no words"


def _has_cluster(word: str) -> bool:
    return _CLUSTER.search(word) is not None


@lru_cache(maxsize=1024)
def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))


def _is_palindrome(word: str) -> bool:
    return len(word) >= 5 and word == word[::-1]


def _ten(answer: Answer, count: int, found: Sequence[Piece]) -> Finding:
    return Finding(
        count >= 10, f"{count} palindromes, at least 10 wanted", spans(found, "palindrome") or answer.whole
    )


def _no_word_too_often(answer: Answer, words: Sequence[str], most: int) -> Finding:
    word, count = max(Counter(words).items(), key=lambda item: item[1], default=("", 0))
    reason = f"{word:.40} {count} times, at most {most} allowed" if words else "no words"
    return Finding(count <= most, reason, answer.whole)


def _alternating(answer: Answer, counts: Sequence[int], enough: bool) -> Finding:
    wrong = sum(one % 2 == other % 2 for one, other in pairwise(counts))
    reason = f"{wrong} of {len(counts)} words do not alternate with the one before"
    return Finding(enough and not wrong, reason, answer.whole)


def _same_words(
    answer: Answer, pairs: Sequence[tuple[Piece, Piece]], what: str, wrong: int | None = None
) -> Finding:
    if wrong is None:
        wrong = sum([one.text != other.text and key(one) != key(other) for one, other in pairs])
    words = dict.fromkeys(chain.from_iterable(pairs))  # one word may be a sentence
    where = spans(words, "word") or answer.whole
    return Finding(bool(pairs) and not wrong, f"{wrong} of {len(pairs)} {what}", where)


def _no_alliteration(answer: Answer, wrong: int, enough: bool) -> Finding:
    return Finding(enough and not wrong, f"{wrong} words begin like the one before", answer.whole)
