"""What official readings share."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

from verifiers.instructions.constraint import UnverifiableError


@lru_cache(maxsize=1024)
def official_pattern(argument: str, pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Public checkers take some arguments for regular expressions.

    Args:
        argument: as the constraint has it, for the message.
        pattern: with the argument in it.

    Raises:
        UnverifiableError: it is none, on which the public checker ends with an exception.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # "[[" may mean something else one day
        try:
            return re.compile(pattern, flags)
        except (re.error, OverflowError, RecursionError, ValueError) as error:
            raise UnverifiableError(
                f"the public checker fails here: it takes {argument!r:.80} for a regular expression ({error})"
            ) from None
