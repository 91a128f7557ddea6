"""What is watched on every host with a kernel of its own around a workload, whatever the instruments: the kernel's log, for
NICs that stall; the clocks, for steps and for how fast they run; at the end, whether there was space for what programs wrote.

Everything is read before the instruments begin or after they have ended.
"""

from __future__ import annotations

import re

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts import files
from twinbed.hosts.error import HostError
from twinbed.lab.clocks import Reading, read, same_rate
from twinbed.links.network import on_all
from twinbed.model.caution import Caution, Kind
from twinbed.readers.kernel_log import nic_trouble

KERNEL_LOG = "kernel.log"
"""The artifact: the host's kernel log from the mark on."""
STEP_S = 0.1
"""A clock that moved by more was set. Time daemons slew smaller differences, which turns both clocks alike. Two clocks that are
read one after the other agree within the time that a busy CPU may be late in between."""
_KMSG = "/dev/kmsg"
_STAMP = re.compile(r"^\[\s*\d+\.\d+\]\s*")
_INFORMATION = "<6>"


class Watch:
    """The watch of one run."""

    def __init__(self, bed: Bed, site: Site) -> None:
        self._bed, self._site = bed, site
        self._mark = f"twinbed: run {site.run} begins"
        self._own_kernel = [target.name for target in bed.targets if target.own_kernel]
        self._with_clocks = [target.name for target in bed.targets if target.own_kernel or target.name == MACHINE]
        self._first: dict[str, Reading] = {}
        self._begun: dict[str, Reading] = {}
        self._unmarked: dict[str, str] = {}
        self.rates: dict[str, Applied] = {}
        """The clock rates of hosts with clocks of their own, as last read."""

    def clocks(self) -> None:
        """Read the clocks for the first time: the earlier this is, the more exactly their rates are known."""
        self._first = self._read()

    def begin(self) -> None:
        """Read the clocks, and mark the place in the kernels' logs. Raises HostError for a clock of another rate."""
        self._begun = self._read()
        for name in self._own_kernel:
            self.rates[name] = same_rate(name, self._first[name], self._begun[name])
        on_all(self._own_kernel, self._put_mark)

    def end(self, *, limit_s: float, complete: bool = True) -> list[Caution]:
        """What has happened since ``begin``. Raises HostError for a host that does not answer, has no space left or a clock of
        another rate; where the run is not ``complete`` anyway, these are passed over."""
        every: list[Caution] = []

        def look(name: str) -> list[Caution]:
            events: list[Caution] = []
            try:
                now = read(self._bed.hosts[name], limit_s)
                events += _steps(name, self._begun[name], now)
                if name in self._own_kernel:
                    events += self._log(name, limit_s)
                    self._space_left(name, limit_s)
                    self.rates[name] = same_rate(name, self._first[name], now)
            except HostError:
                if complete:
                    raise
            return events

        for cautions in on_all(list(self._begun), look):
            every += cautions
        return every

    def _read(self) -> dict[str, Reading]:
        return dict(zip(self._with_clocks, on_all(self._with_clocks, lambda name: read(self._bed.hosts[name])), strict=True))

    def _put_mark(self, name: str) -> None:
        try:
            self._bed.hosts[name].write(_KMSG, f"{_INFORMATION}{self._mark}\n".encode())
        except HostError as error:
            self._unmarked[name] = str(error)

    def _log(self, name: str, limit_s: float) -> list[Caution]:
        if name in self._unmarked:
            return [Caution(Kind.UNREADABLE, f"{name}: its kernel's log: {self._unmarked[name]}")]
        log = self._bed.hosts[name].run(["dmesg"], limit_s=limit_s, check=False)
        if log.code != 0:
            return [Caution(Kind.UNREADABLE, f"{name}: its kernel's log: {log.stderr.decode(errors='replace').strip()}")]
        # A log that was overwritten since has no mark, and all of it is newer.
        since = log.text.rpartition(f"{self._mark}\n")[2]
        with files.create(self._site.place(name) / KERNEL_LOG) as sink:
            sink.write(since.encode())
        trouble = nic_trouble(name, (_STAMP.sub("", line) for line in since.splitlines()))
        return [trouble] if trouble else []

    def _space_left(self, name: str, limit_s: float) -> None:
        """Many programs do not notice when what they write is cut off."""
        host = self._bed.hosts[name]
        free_blocks = host.run(["stat", "-f", "-c", "%a", host.artifacts], limit_s=limit_s).text
        if free_blocks.strip() == "0":
            raise HostError(f"{name}: no space left at {host.artifacts}: what its programs wrote may be cut off")


def _steps(name: str, begun: Reading, now: Reading) -> list[Caution]:
    step_s = now.ahead_s - begun.ahead_s
    if abs(step_s) <= STEP_S:
        return []
    where = "the machine" if name == MACHINE else name
    direction = "forward" if step_s > 0 else "back"
    return [Caution(Kind.CLOCK_STEP, f"{where}: its clock was set {direction} by {abs(step_s):.3f} s")]
