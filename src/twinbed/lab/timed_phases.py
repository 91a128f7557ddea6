"""The phases of a run: which one it is in, how long each took, and the end of a phase that takes too long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from twinbed.contracts.host import Host
from twinbed.model.run import Phase

GRACE_S = 30.0
"""What a phase may take beyond the limits of the work in it."""


class TimedPhases:
    """Times phases, knows which one a run is in, and ends the run's hosts when a phase exceeds its limit.

    Each wait in a phase has a limit of its own; this limit holds for waits that nobody thought of.
    """

    def __init__(self, seconds: dict[str, float], on_phase: Callable[[Phase], None]) -> None:
        self._seconds, self._on_phase = seconds, on_phase
        self.current = Phase.UP
        self.hosts: Sequence[Host] = ()
        self.overran: str | None = None

    @contextlib.contextmanager
    def timed(self, phase: Phase, limit_s: float = 0.0) -> Iterator[None]:
        """``limit_s`` is what the work in the phase may take; the phase itself has some more for what is around it."""
        self.current = phase
        self._on_phase(phase)
        alarm = threading.Timer(limit_s + GRACE_S, self._end, (phase, limit_s + GRACE_S))
        alarm.daemon = True
        if phase is not Phase.UP:
            alarm.start()
        started = time.monotonic()
        try:
            yield
        finally:
            alarm.cancel()
            self._seconds[phase.value] = round(time.monotonic() - started, 6)

    def _end(self, phase: Phase, limit_s: float) -> None:
        self.overran = f"the phase was not done after {limit_s:g} s; its hosts were ended"
        for host in self.hosts:
            host.close()
