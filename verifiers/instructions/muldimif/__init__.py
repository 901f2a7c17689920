"""The constraints of MulDimIF (Ye et al. 2025), which say in free text what they want.

`ids` names them, `wording` takes a text apart, `reading` (with `words`, `form` and `scopes`) makes rules of
it, `rules` holds the rules, `layout` the parts of an answer that they speak of, and `families` enters all of
it into the list of constraints.
"""

from verifiers.instructions.muldimif.ids import constraint_id, constraint_of

__all__ = ["constraint_id", "constraint_of"]
