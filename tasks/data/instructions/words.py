"""The small vocabulary that the embedded prompts and answers are written in."""

from __future__ import annotations

# Each has a plural in -s, and none is a verb or an adjective that answers use.
NOUNS = (
    "river stone moon garden tree house road bird horse boat lamp clock door window bridge tower farm forest "
    "lake cloud star train ship market school castle mill field hill valley table chair mirror candle letter "
    "song king queen dog cat rabbit owl"
).split()
ADJECTIVES = "old new small big quiet bright dark cold warm green blue red round tall kind calm".split()
VERBS = "sleeps waits sings falls grows shines moves turns stands rests".split()
PREPOSITIONS = "near under behind above beside past".split()
CONJUNCTIONS = "and but or so yet".split()
OPENERS = "today here now then once".split()  # what a sentence may begin with
PLACEHOLDERS = "name city date color place".split()
END_PHRASES = ("the end.", "good night.", "that is all.", "farewell.")
SECTION_WORDS = ("Section", "Part")
REQUESTS = ("Write about the {}.", "Tell me about the {}.", "Describe the {}.")

# Shapes of sentences: N a noun, M nouns, A an adjective, V a verb, P a preposition, C a conjunction, D a
# digit, H a placeholder, O an opener. Each has a noun.
SHAPES = {
    "plain": ("the N is A", "the A N V", "the N V P the N", "the N is P the N"),
    "opener": ("O the N V", "O the N is A"),
    "number": ("we count D M P the N", "D M stand P the N"),
    "placeholder": ("we meet H P the N", "the N is in H"),
    "pronoun": ("we see the N P the N", "we like the A N"),
    "conjunction": ("the N V C the N V", "the N is A C the N V"),
}
