"""Ctrl-C that lets a step finish."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

ECHO = 0.5  # seconds: launchers pass on to their processes the Ctrl-C that those got from the terminal, too


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Inside, the first Ctrl-C only sets the yielded flag; the second raises KeyboardInterrupt at once.

    Outside of the main thread, where signals cannot be handled, the flag stays False.
    """
    pressed: float | None = None

    def handle(_signal: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed is None:
            pressed = time.monotonic()
        elif time.monotonic() - pressed > ECHO:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    former = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: pressed is not None
    finally:
        signal.signal(signal.SIGINT, former)
