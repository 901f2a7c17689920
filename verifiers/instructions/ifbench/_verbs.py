"""Which English words begin an answer as verbs, by two lists of common ones."""

from __future__ import annotations

from collections.abc import Iterator

_ONLY_VERBS = (
    "accept accommodate accompany accomplish achieve acknowledge acquire adapt add adhere adjust admire "
    "admit adopt advise agree align allocate allow alter amplify analyse analyze announce anticipate "
    "apologize appear apply appoint appreciate approve arise arrange arrive ascend ask assemble assert "
    "assess assign assist assume assure attach attain attend attract avoid await awake bake be become beg "
    "begin behave behold believe belong bind blend boil boost borrow bring broaden browse build burn buy "
    "calculate capture carry cease celebrate choose clarify classify clean close collaborate collect "
    "combine come commence communicate compare compile complete comply compose compute conceive "
    "concentrate conclude conduct confirm connect conquer consider consist construct consult consume "
    "contain contemplate continue contribute convert convey convince cook cope correct craft create "
    "cultivate decide declare dedicate deepen defend define delete deliver demonstrate deny depend depict "
    "derive descend describe deserve detect determine develop devise differ dig diminish disagree discard "
    "discover discuss dismiss distinguish distribute dive divide do drag draw drown earn eat edit educate "
    "elaborate elevate eliminate embark embody embrace emerge emphasize employ empower enable encounter "
    "encourage end endeavor enforce engage enhance enjoy enlist ensure enter entertain envision equip "
    "escape establish evaluate evolve examine excel exclude execute exist expand expect experiment "
    "explain explore express extend extract facilitate fail feed feel fetch fill finalize find finish fix "
    "fly focus follow forbid forget forgive format foster fry fulfil fulfill gather generate get give "
    "glisten glow go grab grasp greet grow guess hang happen harness hear hide hire hold hum identify "
    "ignore illustrate imagine imitate implement imply improve include incorporate indicate infuse "
    "initiate innovate inquire insert insist inspect inspire install integrate introduce invent invest "
    "investigate invite involve justify keep kill kneel know launch lay lead learn leave lend let "
    "leverage listen load locate look lose maintain make manage maximize measure meet mention minimize "
    "mix modify move multiply navigate notice notify nurture obey observe obtain occur offer open operate "
    "optimize organize outline overcome participate pause pay perceive perform permit persist persuade "
    "pick ponder pour praise pray predict prefer prepare present preserve pretend prevent prioritize "
    "proceed produce promote propose prosper protect prove provide publish pull pulse pursue push put "
    "quit raise reach react read realize recall receive recite recognize recommend reconsider recover "
    "reduce refer refine reflect refrain refresh refuse regard regret reject relax rely remain remember "
    "remind remove render renew repeat replace represent require resist resolve respond rest restart "
    "restore retain retrieve reuse reveal revise revisit revolutionize rewrite rid ride run save say "
    "search secure see seek seem select sell send separate serve set settle sew share shatter shimmer "
    "shine shoot show simplify simulate sing sink sit skim sleep soak soar solve speak specify spend "
    "stand start stay stir stop strengthen strive stroll stumble submit succeed suggest summarize summon "
    "suppose surrender surround survive sustain swim tailor take talk teach tell tend terminate thank "
    "think thrive throw tie transcend transform translate try turn understand undertake undo unfold unite "
    "unleash unlock unpack unravel unveil upload use utilize validate verify visualize vow wait wake "
    "wander want wear weave whir whirl whisk whisper whistle win wipe wish wonder worry write yearn yell "
    "yield"
).split()
# As often nouns: verbs only before one of `_OBJECTS`, as in "Water the plants".
_NOUNS_TOO = (
    "access address advance answer approach attempt author balance ban base bear beat benefit blow board "
    "book bottle bow box break bridge brush bus call cap care cast cause challenge change channel charge "
    "charm chart check chop claim clear click climb coat code color colour comfort command comment "
    "concern contact contrast control copy count cover cross cup curb cut dance dare dash date deal "
    "debate debug decrease delay demand design desire detail display document dot double doubt download "
    "draft dream dress drill drink drive drop dust ease echo empty estimate exercise exhaust experience "
    "face fall fancy favor favour fear fight figure file film fire fish fit flip float flow fold force "
    "form frame free fuel function fund fuse gain garden gift glance grade grant grate grill grind ground "
    "group guard guide hand handle harvest head heat help highlight hit honor honour hook hope host house "
    "hug hunt hurry ignite impact increase input instruct interest iron issue jog join joke judge jump "
    "kick kiss knock label laugh level lift light limit line link list live lock love map march mark "
    "market mask master match matter melt mind mirror miss model monitor mount name narrate narrow need "
    "nest note number object order pack paint park part pass paste pattern peel phone picture pin pit "
    "place plan plant plate play plot plug pocket point pose post pound power practice press pressure "
    "price print process program project promise provision prune question quote race rain rank rate "
    "reason record release repair reply report request rescue research reserve respect return review "
    "reward ring rise risk rock roll root row ruin rule rush sample sand scale scan schedule scoop score "
    "screen seal season seat sense shadow shape shelter shield shift ship shop shout shower sign signal "
    "sketch skip slice slide slip slow smell smile smoke snap sort sound source space spark spell spin "
    "split spot spread sprinkle squeeze stack staff stage star state steer step stick stock store stream "
    "stress stretch strike structure study style sum supply support surface surprise suspect swap sweep "
    "swing switch tackle tag target task taste test time tip title toast top toss touch tour trace track "
    "trade train transfer trap travel treat trick trim trust type update upgrade value view visit voice "
    "volunteer vote walk warm warn wash waste watch water weigh welcome whip wind witness work worship "
    "wrap zip zoom"
).split()
_OBJECTS = frozenset(
    (
        "a an the my your his her its our their this that these those it them him me us you yourself "
        "everyone everything all each every both up down out off away together some another"
    ).split()
)
# Verbs that are more often names, nouns or adjectives where they begin a text: before one of `_OBJECTS`, too.
_NAMES_TOO = ("cook drew felt led left lent rose saw shot spoke thought woke won").split()
# "Will Smith", "May is": of these words only before somebody who will, may or must.
_MODAL_NAMES = frozenset("will may might must can".split())
_SUBJECTS = frozenset(
    (
        "i you he she it we they there this that these those the a an my your his her its our their all each "
        "every everyone everybody anyone anybody someone somebody nobody people be have not"
    ).split()
)
_NOT_BEHIND_VERBS = frozenset("is are was were has".split())  # "Run is" speaks of a word, not of running
_IRREGULAR = (
    "am is are was were been being has had having does did done goes went gone made said saw seen took "
    "taken came became began begun bought brought built chose chosen drew drawn drove driven ate eaten "
    "fell fallen felt fought found flew flown forgot forgotten forgave gave given got gotten grew grown "
    "heard held hid hidden kept knew known laid led left lent lost meant met paid quit ran read rose "
    "risen sang sung sat sent set shone shot showed shown slept sold sought spent spoke spoken stood "
    "strove striven swam swum taught thought threw thrown told tried understood undertook woke woken won "
    "wore worn wove woven wrote written broke broken overcame withdrew"
).split()
_AUXILIARIES = (
    "have may might must can could shall should will would do does did is are was were has had".split()
)
_CONTRACTED = [
    *(f"{word}n't" for word in _AUXILIARIES),
    "can't",
    "cannot",
    "won't",
    "shan't",
    "let's",
    "gonna",
]


def begins_with_verb(words: list[str]) -> bool:
    """Whether the first of these words, all in lower case, is a verb. Words that are on no list are not."""
    if not words:
        return False
    first, second = words[0], words[1] if len(words) > 1 else ""
    if second in _NOT_BEHIND_VERBS and not first.endswith("ing"):
        return False
    if first in _MODAL_NAMES:
        return second in _SUBJECTS
    if first in _NOUN_FORMS:
        return second in _OBJECTS
    return first in _VERB_FORMS


def _forms(verb: str) -> Iterator[str]:
    """Its regular forms, as "plan", "plans", "planned", "planning", and a few that nobody writes."""
    yield verb
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
    yield from (f"{verb}s", f"{stem}ed", f"{stem}ing")
    if verb[-1] in "sxzho":
        yield f"{verb}es"
    if verb.endswith("ie"):
        yield f"{verb[:-2]}ying"
    if verb[-1] == "y" and verb[-2] not in "aeiou":
        yield from (f"{verb[:-1]}ies", f"{verb[:-1]}ied")
    if len(verb) > 2 and verb[-1] not in "aeiouhwxy" and verb[-2] in "aeiou" and verb[-3] not in "aeiou":
        yield from (f"{verb}{verb[-1]}ed", f"{verb}{verb[-1]}ing")


_NOUN_FORMS = frozenset([form for verb in _NOUNS_TOO for form in _forms(verb)] + _NAMES_TOO)
_VERB_FORMS = frozenset(
    [form for verb in _ONLY_VERBS for form in _forms(verb)] + _IRREGULAR + _AUXILIARIES + _CONTRACTED
)
