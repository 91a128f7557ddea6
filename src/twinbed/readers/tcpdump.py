"""tcpdump: how it is started and ended without losing packets, and its counts of lost ones.

Ending: tcpdump 4.99 asks the kernel for blocks that are handed over when full or after 1 s.  Packets in a block would be lost
when it is interrupted.  So SIGUSR1 asks it for its counts until it has captured all that it had received when first asked.
With a preloaded library (crates/preload) blocks are handed over every 20 ms; without it that takes up to 1 s.  With it tcpdump
also starts where it is root of a user namespace alone.
Packets that come between the opening of the interface and the setting of the filter count as received, and are left out later
if the filter does not want them.  So on a busy link some never come, and tcpdump is asked until nothing has come for longer
than the kernel holds a block.

``--immediate-mode`` needs no such wait but wakes tcpdump for every packet.  In two noisy series on two shared CPUs ApacheBench
then had 0.77 to 0.84 of the requests without a capture, and 0.85 to 1.00 with blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.contracts.command import PRELOAD, Command, Ready

SIGINT = 2
QUIET_ANSWERS = 60
"""Between two of them 20 ms pass, and more: 1.2 s in all, where the kernel holds a block for 1 s at most."""

_ASKED = re.compile(rb"(\d+) packets? captured, (\d+) packets? received by filter, (\d+) packets? dropped by kernel\n")
_ENDED = re.compile(rb"(\d+) packets? captured\n(\d+) packets? received by filter\n(\d+) packets? dropped by kernel\n")


@dataclass(frozen=True, slots=True)
class Counters:
    """tcpdump's counts of a capture; ``received`` includes dropped packets."""

    captured: int
    received: int
    dropped: int

    @property
    def handled(self) -> int:
        return self.captured + self.dropped


def has_drained(stderr: bytes) -> bool:
    """Return whether tcpdump has dealt with all packets that it had received when SIGUSR1 first asked it.

    Also true if its counts did not change for so many answers that nothing can be left. ``stderr`` is all of its error output.
    Packets that came later do not count: a link is never wholly silent.
    """
    asked = [Counters(*map(int, numbers)) for numbers in _ASKED.findall(stderr)]
    if not asked:
        return False
    still = len(asked) > QUIET_ANSWERS and asked[-1].handled == asked[-1 - QUIET_ANSWERS].handled
    return still or asked[-1].handled >= asked[0].received


def ended(stderr: bytes) -> Counters | None:
    """Return the counters that tcpdump prints when it ends; None where it has not ended."""
    lines = _ENDED.findall(stderr)
    return Counters(*map(int, lines[-1])) if lines else None


def command(
    interface: str,
    file: str,
    *,
    snaplen: int,
    buffer_bytes: int,
    on: str,
    expression: Sequence[str] = (),
) -> Command:
    """Return the command that captures ``interface`` of the place ``on`` into an artifact."""
    argv = (
        "tcpdump",
        *("-i", interface),
        *("-w", f"{{artifacts}}/{file}"),
        *("-s", str(snaplen)),
        *("-B", str(buffer_bytes // 1024)),
        "-n",
        *("-Z", "root"),
        "--time-stamp-precision=nano",
        *expression,
    )
    return Command(
        *(on, argv, f"{file.rpartition('.')[0]}.tcpdump", Ready(says=b"listening on")),
        stop=SIGINT,
        drained=has_drained,
        env={"LD_PRELOAD": f"{{bin}}/{PRELOAD}"},
        # It maps its buffer whole as it starts.
        memory_bytes=buffer_bytes + 2 * 2**20,
    )
