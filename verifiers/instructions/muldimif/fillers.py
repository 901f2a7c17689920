"""Words that say nothing that could be checked. Any other word must have been taken by a reader.

The list holds what frames a demand ("please ensure that it is"), what praises or explains ("concise", "for
clarity"), and nouns for the answer. It must not hold a word that picks a part, a place, an order, a number, a
choice or a manner ("end", "before", "only", "or", "all", "at", "throughout", "different").
"""

from __future__ import annotations

import re

# Nouns that mean the answer as a whole.
WHOLE = frozenset(
    """
    agreement analysis answer article blog breakdown code content curriculum definition description
    diagram document email essay exam explanation guide information introduction it letter lines list
    message methodology narrative news note outline output paper paragraph paraphrase passage poem post
    presentation primer proposal question questionnaire reason recommendation reply report response
    result review script sentence solution speech statement story summary test text textbook timeline
    translation version worksheet writing
    """.split()
)
_FRAME = frozenset(
    """
    a additionally also an and are as be being by can contain contained containing contains crucial do does
    employ employed employing ensure ensured ensuring essential explicitly feature features featured
    featuring finally
    follow following follows furthermore has have having importance important importantly include included
    includes including inclusion incorporate incorporated incorporates incorporating integral is it its
    main make making
    mandatory mindful must necessary need needed needs of please present presented provide provided provides
    providing remember required requirement requires requiring shall should specific specifically
    specified sure
    that the there they this to use used uses using utilize utilized utilizing which with your
    """.split()
)
_MAKING = frozenset(
    """
    adhere adheres adhering allowing appear appearing appears articulated composed comprise comprised
    comprises
    comprising consist consisting consists constraint constraints contributing crafted create created
    creating describe described designed
    display displayed edited format formatted formatting given involve involves keep keeping long
    maintain maintaining
    maintains marked markdown meeting meets organization organize organized organizing paraphrased punctuation
    reflecting rephrased represented revised reworded rewritten rules serves standards structure
    structured structuring
    syntax use written proper
    """.split()
)
_PRAISE = frozenset(
    """
    adequate adequately appropriate brevity brief clarity clear clearly coherence coherent comprehensive
    concise concisely conciseness
    conclusive consistency consistent coverage depth detail detailed details easy effective effectively
    emphasis emphasizing engaging enough focus
    focused exploration formal impactful information informative key moreover overall overview
    professional readability relevant simple
    simplicity strict strictly style stylistic succinct sufficient thorough thoroughly thoroughness well
    well-organized well-structured yet
    """.split()
)
_NOUNS = frozenset(
    """
    answers brief constraint content context data element elements example examples explanations
    information instructions
    keyword language length limit limitation limitations object options presentation questions range
    references requirement
    requirements section sections subject text topic topics total
    """.split()
)
FILLERS = _FRAME | _MAKING | _PRAISE | _NOUNS | WHOLE
_WHOLE = "|".join(sorted(WHOLE))
# Prepositions say where, so they are harmless only before a noun for the answer or a phrase that is known.
PHRASES = re.compile(
    rf"\b(?:in|into|within|for|of|to|from) (?:(?:the|your|this|a|an|its|final|entire|whole|overall|given|"
    rf"following|corrected|edited|revised) )*(?:{_WHOLE})\b(?!'s)|"
    rf"\b(?:the|your|this) (?:entire|whole|final|overall|edited|corrected|revised|reworded|rewritten) "
    rf"(?:{_WHOLE})\b|"
    rf"\bas (?:an? )?(?:essential |integral |key |necessary |part |component |element )+of (?:the |your "
    rf")(?:{_WHOLE}|discussion|exploration)\b|"
    r"\b(?:punctuation|consistency|consistency and emphasis) throughout\b(?! \w)|\bproper sentence "
    r"structure\b|"
    r"\bas markdown\b|\bwhile(?= not exceeding\b)|"
    r"\bbut(?= (?:it |this table )?(?:should|must|not|no more|no fewer|no less|at most|at least|"
    r"limit|make)\b)|\ball (?:the )?necessary details are covered\b|"
    r"\bof the (?:topic|subject(?: matter)?|term|concept)\b|\b(?:specific |formal )+tone\b|\bspecific "
    r"style\b|"
    r"\bin (?:a |the |an |proper |valid )*(?:markdown(?: format(?:ting)?| syntax)?|format|style|"
    r"length|total|detail|structure|presentation|(?:clear|concise|structured|organized) (?:format|"
    r"manner|way))\b|"
    r"\bfor (?:better |more |added |improved |the |sake |of )*(?:clarity|brevity|readability|simplicity|"
    r"conciseness|"
    r"emphasis|maintaining|proper punctuation)\b|"
    r"\bin (?:order )?(?=to\b)|\bin such a way(?= that it\b)"
)
TOKEN = re.compile(r"\w+(?:['-]\w+)*|[^\w\s¤,.;:()\"'“”‘’「」\-–—!?/&*，。；：！？、#]")
