"""Interrupts of a run: answered at once, and no second one breaks off the clean-up that the first began."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST = b"\nstopping: the run in flight is taken down ...\n"
AGAIN = b"\nstill stopping: what the run made is removed first (SIGKILL ends at once; nothing stays behind then either)\n"
_STDERR = 2


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """The first signal to end raises KeyboardInterrupt in the block, further ones are only answered. Signals that are ignored
    (nohup) stay so."""
    interrupted = False

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        again, interrupted = interrupted, True
        # Not by print: the signal may have come in the middle of one.
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
