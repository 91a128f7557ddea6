"""Interrupts of a run: answered at once, and a second one does not break off the clean-up."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST = b"\nstopping: the current run is being removed ...\n"
AGAIN = b"\nstill stopping: the clean-up takes a moment (SIGKILL ends at once and leaves nothing behind either)\n"
_STDERR = 2


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first signal, and only answer later ones. Ignored signals (nohup) stay ignored."""
    interrupted = False

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        again, interrupted = interrupted, True
        # Not by print, which the signal may have interrupted.
        with contextlib.suppress(OSError):
            os.write(_STDERR, AGAIN if again else FIRST)
        if not again:
            raise KeyboardInterrupt

    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) != signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, answer)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
