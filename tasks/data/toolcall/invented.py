"""Tools that nobody has: names, parameters and wordings composed from word lists."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from tasks.data.text2sql.generate import nonsense
from tasks.data.text2sql.words import ENTITIES
from tasks.data.toolcall import words
from tasks.data.toolcall.model import Parameter, Tool, choice, decimal, flag, several, text, whole

# What a tool does -> how requests say it; {} is what it does it to.
_ACTIONS = {
    "find": ("find {}", "search for {}", "look for {}", "i am looking for {}"),
    "get": ("get {}", "give me {}", "fetch {}", "i need {}"),
    "show": ("show {}", "show me {}", "let me see {}", "what is {}"),
    "book": ("book {}", "reserve {}", "i want to book {}"),
    "rent": ("rent {}", "hire {}", "i need to rent {}"),
    "buy": ("buy {}", "order {}", "i want to buy {}", "get me {}"),
    "sell": ("sell {}", "i want to sell {}"),
    "set": ("set {}", "change {}", "adjust {}", "turn {}"),
    "start": ("start {}", "begin {}", "run {}", "switch on {}"),
    "stop": ("stop {}", "end {}", "switch off {}"),
    "open": ("open {}", "unlock {}"),
    "close": ("close {}", "shut {}", "lock {}"),
    "send": ("send {}", "mail {}", "i have to send {}"),
    "make": ("make {}", "create {}", "build {}"),
    "add": ("add {}", "put in {}", "insert {}"),
    "delete": ("delete {}", "remove {}", "throw away {}"),
    "copy": ("copy {}", "make a copy of {}"),
    "move": ("move {}", "bring {}", "take {}"),
    "check": ("check {}", "test {}", "how is {}", "is there {}"),
    "count": ("count {}", "how many are {}", "find the number of {}"),
    "log": ("log {}", "note {}", "write down {}", "i had {}"),
    "plan": ("plan {}", "schedule {}"),
    "rate": ("rate {}", "give a rating of {}"),
    "call": ("call {}", "phone {}", "i want to talk to {}"),
    "clean": ("clean {}", "wash {}"),
    "fix": ("fix {}", "repair {}"),
    "paint": ("paint {}", "draw {}"),
    "track": ("track {}", "follow {}", "where is {}"),
    "play": ("play {}", "i want to hear {}"),
    "feed": ("feed {}", "give food to {}"),
    "measure": ("measure {}", "how big is {}"),
    "share": ("share {}", "split {}"),
}
_QUALITIES = "price size state name color owner place speed weight age number level time quality".split()
_DETERMINERS = ("a ", "the ", "the ", "my ", "")
_POOLS: tuple[tuple[str, tuple[str, ...] | str], ...] = (
    ("city", words.CITIES),
    ("place", words.PLACES),
    ("person", words.PEOPLE),
    ("name", words.PEOPLE),
    ("title", words.TITLES),
    ("color", words.COLORS),
    ("day", words.DAYS),
    ("room", words.ROOMS),
    ("dish", words.DISHES),
    ("food", words.FOODS),
    ("genre", words.GENRES),
    ("company", words.COMPANIES),
    ("item", words.ITEMS),
    ("subject", words.SUBJECTS),
    ("event", words.EVENTS),
    ("text", words.TEXTS),
    ("topic", words.TOPICS),
    ("word", words.WORDS),
    ("language", words.LANGUAGES),
    ("team", words.TEAMS),
    ("file", words.FILES),
    ("folder", words.FOLDERS),
)
_PAIRS = (("start", "goal"), ("source", "target"), ("origin", "end"))  # from one to the other
_COUNTS = (
    "days nights hours minutes weeks seats people guests copies pages songs items times stars points percent "
    "grams meters degrees floors rows tickets boxes cups steps"
).split()
_MEASURES = (
    "amount size limit volume level number year weight height length depth price age speed code".split()
)
_UNITS = "km miles liters meters hours degrees kilos euros dollars".split()
_CHOICES = (
    "small medium large",
    "left right",
    "red green blue",
    "low high",
    "hot cold",
    "morning noon evening",
    "north south east west",
    "car bike bus",
    "gold silver bronze",
    "fast slow",
    "old new",
    "paper glass metal",
)
_FLAGS = (
    "urgent silent fast fresh secret public daily dry warm strict random clean final private exact".split()
)
_PREPOSITIONS = "in at for of with on about near by under from to".split()


def invent(rng: Random, *, held_out: Collection[str] = (), strange: float = 0.4) -> Tool:
    """A tool with one to three parameters, named otherwise than those `held_out`.

    Args:
        rng: the source of chance.
        held_out: names that it must not have.
        strange: share of names and values that are nonsense, which can only be copied.
    """
    noun = nonsense(rng) if rng.random() < strange else rng.choice(ENTITIES)[0].replace("_", " ")
    if rng.random() < 0.15:  # boat_speed: what is the speed of the boat
        quality = rng.choice(_QUALITIES)
        name = f"{noun}_{quality}"
        heads = [
            wording.format(f"the {quality}|of the {noun}")
            for wording in ("what is {}", "show {}", "tell me {}", "check {}")
        ]
    else:
        action = rng.choice(list(_ACTIONS))
        name = f"{action}_{noun}"
        heads = [wording.format(rng.choice(_DETERMINERS) + noun) + "|" for wording in _ACTIONS[action]]
    name = name.replace(" ", "_")
    if name in held_out:
        return invent(rng, held_out=held_out, strange=strange)
    required, optional = rng.choice(((1, 0), (1, 1), (1, 1), (2, 0), (2, 1), (2, 0), (1, 2)))
    needed = _required(rng, required, strange)
    others = [_optional(rng, strange) for _ in range(optional)]
    parameters = {own.name: own for own in (*others, *(own for own, _ in needed))}
    ordered = sorted(parameters.values(), key=lambda own: not own.required)
    asks = []
    for head in rng.sample(heads, min(2, len(heads))):
        rng.shuffle(needed)
        before, _, after = head.partition("|")
        phrases = [after, *(phrase for _, phrase in needed)]
        asks.append(f"{before} |{' '.join(filter(None, phrases))}")
    return Tool(name, tuple(ordered), tuple(asks))


def _required(rng: Random, count: int, strange: float) -> list[tuple[Parameter, str]]:
    """Parameters with the phrase that says each, of different names."""
    if count == 2 and rng.random() < 0.2:
        start, goal = rng.choice(_PAIRS)
        pool = rng.choice((words.CITIES, words.PEOPLE, tuple(words.CURRENCIES.split())))
        return [(text(start, pool), f"from {{{start}}}"), (text(goal, pool), f"to {{{goal}}}")]
    found: dict[str, tuple[Parameter, str]] = {}
    bare = False  # one value may come without a word that says which it is
    while len(found) < count:
        own = _parameter(rng, strange)
        phrase = _phrase(rng, own, bare=not bare)
        if own.name not in found:
            bare = bare or own.name not in phrase.replace("{" + own.name + "}", "")
            found[own.name] = own, phrase
    return list(found.values())


def _parameter(rng: Random, strange: float) -> Parameter:
    """One without phrases of its own."""
    form = rng.random()
    odd = rng.random() < strange / 2
    if form < 0.42:
        name, pool = rng.choice(_POOLS)
        if odd:
            name = nonsense(rng)
        if rng.random() < strange:
            pool = tuple(nonsense(rng) for _ in range(8))
        return text(name, pool)
    if form < 0.67:
        low = rng.choice((1, 2, 10, 100, 1900))
        name = nonsense(rng) if odd else rng.choice(_COUNTS if rng.random() < 0.6 else _MEASURES)
        return whole(name, low, {1: 20, 2: 99, 10: 500, 100: 9999, 1900: 2024}[low])
    if form < 0.78:
        return decimal(nonsense(rng) if odd else rng.choice(_UNITS + _MEASURES), 1, rng.choice((10, 99)))
    if form < 0.88:
        name = nonsense(rng) if odd else rng.choice("size side unit kind mode way type form class".split())
        listed = " ".join({nonsense(rng): None for _ in range(2)}) if odd else rng.choice(_CHOICES)
        return choice(name, listed)
    if rng.random() < 0.4:
        return several(rng.choice(("numbers", "values", "scores")), range(2, 99))
    name, pool = rng.choice((("toppings", words.TOPPINGS), ("people", words.PEOPLE), ("items", words.ITEMS)))
    return several(nonsense(rng) if odd else name, pool)


def _phrase(rng: Random, own: Parameter, *, bare: bool) -> str:
    """A wording of a parameter's value, which stands in braces under its name; `bare`: without its name."""
    value = f"{{{own.name}}}"
    if own.kind in ("integer", "number") and own.name in (*_COUNTS, *_UNITS):
        return rng.choice((f"{value} {own.name}", f"for {value} {own.name}", f"with {value} {own.name}"))
    if bare and rng.random() < 0.6:
        return rng.choice((value, *(f"{word} {value}" for word in _PREPOSITIONS)))
    if own.kind == "array":
        return rng.choice((f"with {own.name} {value}", f"of the {own.name} {value}"))
    return rng.choice(
        (
            f"with {own.name} {value}",
            f"of {own.name} {value}",
            f"whose {own.name} is {value}",
            f"in {value} {own.name}" if own.listed else f"at {own.name} {value}",
        )
    )


def _optional(rng: Random, strange: float) -> Parameter:
    """One with phrases that ask for it."""
    if rng.random() < 0.25:
        name = nonsense(rng) if rng.random() < strange else rng.choice(_FLAGS)
        if rng.random() < 0.2:
            return flag(name, f"without {name}", f"but not {name}", default=True)
        return flag(name, f"and make it {name}", f"in {name} mode", f"that is {name}", f"as {name}")
    own = _parameter(rng, strange)
    while own.kind == "array":
        own = _parameter(rng, strange)
    phrases = {_phrase(rng, own, bare=False).replace(f"{{{own.name}}}", "{}") for _ in range(2)}
    default = rng.choice(own.pool) if own.kind == "integer" or own.listed else None
    return Parameter(own.name, own.kind, own.pool, own.listed, default, tuple(sorted(phrases)))
