"""The contracts that plugins fulfil.  Workloads and instruments *plan* argument lists and *parse* bytes; they start nothing.

A plugin is an object with the attributes below; ``registry.py`` lists them all.  ``params`` is a frozen pydantic model
class: its fields are the settings a study file may give, its field descriptions are what error messages and the manual say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Caution

if TYPE_CHECKING:
    import pyarrow as pa

MACHINE = "machine"
"""The name of the place where a testbed's switches, taps and shapers are: the machine that carries the lab."""
MACHINE2 = "machine2"
"""The servers' machine, where a trunk joins it to that of clients, or to each of several."""


PROBE_PORT = 2112
"""The UDP port of an instrument's own packets, which captures leave out: they are no part of the workload."""
BACKGROUND_PORTS = range(2120, 2123)
"""Where servers of a background load listen, TCP or UDP; captures leave them out too."""


@dataclass(frozen=True, slots=True)
class Ready:
    """How to know that a started program is ready. Exactly one of the two is given; there are no fixed sleeps."""

    listening: int | None = None
    """A TCP port that it listens on, seen from its own host."""
    says: bytes | None = None
    """A text on its standard output or error."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run on a host: an argument list, never a shell string. In arguments and the environment ``{artifacts}``
    stands for the folder on that host that is collected into the run folder, ``{bin}`` for where twinbed's own programs are.
    """

    host: str
    argv: tuple[str, ...]
    stdout: str | None = None
    """Name of the artifact that its standard output becomes; None discards nothing: it goes to ``<program>.out``."""
    ready: Ready | None = None
    """Given for a program that stays; None for one that runs to its end."""
    stop: int = 15
    """The signal that ends a program that stays."""
    drained: Callable[[bytes], bool] | None = None
    """For a program that buffers: polled with what it said after SIGUSR1, until it says that all has been written."""
    env: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 30.0
    """Time limit: to become ready, or for one that runs to its end, to end."""
    stop_limit_s: float | None = None
    """Time limit of a program that stays to end, once it was told to; None is the usual one."""
    round: int = 0
    """Of programs that are started together: those of a lower round are ready before those of a higher are started, and
    are told to end after them."""


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """What a workload wants done, in order: files put, servers started, warm-up run, then all clients at once."""

    files: Sequence[tuple[str, str, bytes]] = ()
    """(host, absolute path, content)"""
    prepare: Sequence[Command] = ()
    servers: Sequence[Command] = ()
    warm_up: Sequence[Command] = ()
    clients: Sequence[Command] = ()


@dataclass(frozen=True, slots=True)
class Places:
    """Where a background load can be put. Pairs are (client host, server host, server address)."""

    machines: Sequence[str]
    """What carries the testbed."""
    pairs: Sequence[tuple[str, str, str]]
    """The workload's own clients and servers."""
    bystanders: Sequence[tuple[str, str, str]] = ()
    """Hosts beside them, which take no part in the workload."""


@dataclass(frozen=True, slots=True)
class BackgroundPlan:
    """What a background load wants done: files put, then programs started that stay."""

    files: Sequence[tuple[str, str, bytes]] = ()
    """(host, absolute path, content)"""
    commands: Sequence[Command] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A place an instrument can be put: a host, or the machine's side of the links."""

    name: str
    """A host's name, or MACHINE."""
    interfaces: Mapping[str, str]
    """Interface -> the host whose link it is an end of (on a host itself: its own name)."""
    own_kernel: bool = False
    """A guest or a machine of its own; False for containers, whose /proc/stat and kernel log are the machine's."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """On a client: the servers that its workload asks, with their addresses."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """On a server: its clients, with their addresses. Drivers leave both to the lab, which knows the topology."""
    captures: bool = False
    """Whether links are captured here: on the machines that have the hosts' links, or where they are not ours on the hosts."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read from artifacts: values, tables for deeper analyses, cautions."""

    values: Sequence[Value] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    cautions: Sequence[Caution] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """One setting, as asked and as read back from the system after it was set."""

    subject: str
    setting: str
    asked: Any
    found: Any
    source: str
    """The command whose output said so."""
    tolerance: float = 0.0
    """Relative difference that is the system's own granularity, not a disagreement."""

    @property
    def agrees(self) -> bool:
        if self.asked is None or self.asked == self.found:
            return True
        numbers = isinstance(self.asked, int | float) and isinstance(self.found, int | float)
        return numbers and abs(self.found - self.asked) <= self.tolerance * abs(self.asked)


@dataclass(frozen=True, slots=True)
class Bed:
    """A testbed that is up: its hosts, with MACHINE where it has one; where instruments can be put; what was set and read
    back; and what it is made of (place -> fact -> value)."""

    hosts: Mapping[str, Any]
    addresses: Mapping[str, str]
    targets: Sequence[Target]
    applied: Sequence[Applied]
    passport: Mapping[str, Mapping[str, Any]]
    cautions: Sequence[Caution] = ()
    lab: str = ""
    """The id of the lab it is in."""
    troubles: Callable[[], Sequence[str]] = tuple
    """What has befallen hosts that spoils a run whether or not its programs noticed: a guest that ended, memory that ran out.
    May be asked at any time."""
    at_end: Callable[[], Sequence[Caution]] = tuple
    """What can only be told once the workload is over: links that went down, clocks that were stepped."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that preflight tried: what, whether it works, what it found, and the command that would mend it."""

    what: str
    works: bool
    found: str
    mend: str = ""
    required: bool = True
    group: str = ""
    """What kind of thing it is, for a matrix of them; empty for what only one study asks."""
    tried: bool = True
    """False for what cannot be tried as things stand; it then counts as not working."""


class Testbed(Protocol):
    """A driver: a way to get hosts and links."""

    name: str
    params: type
    summary: str

    def check(self, params: Any) -> Sequence[Check]: ...

    def up(self, params: Any, topology: Any, site: Any) -> AbstractContextManager[Any]: ...


@runtime_checkable
class Able(Testbed, Protocol):
    """A driver that can do more or less of what it offers, by what the machine has."""

    def abilities(self, installed: Any, *, boot: bool) -> Sequence[Check]:
        """What of it works here, each tried. ``boot``: also what takes long to try."""
        ...


@runtime_checkable
class OwnPrograms(Testbed, Protocol):
    """A driver whose hosts may use programs of their own in place of the image's."""

    def check_programs(self, params: Any, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        """Whether they are there. ``wanted``: host -> what is started on it, by name or by path."""
        ...


class Workload(Protocol):
    """A workload: what clients ask of servers, and how to read what they said."""

    name: str
    params: type
    summary: str
    metrics: Sequence[Metric]
    work: str
    """The metric that counts the work done (requests): extensive metrics are divided by it."""
    rate: str
    """The metric that says how fast work is done; with several pairs each client has its own, which fairness is of."""

    def plan(self, params: Any, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        """``pairs`` are (client host, server host, server address)."""
        ...

    def parse(self, params: Any, artifacts: Path) -> Extracted: ...


@dataclass(frozen=True, slots=True)
class Described:
    """What a workload's numbers are, where that hangs on its settings."""

    metrics: Sequence[Metric]
    work: str
    rate: str


@runtime_checkable
class Varying(Protocol):
    """A workload whose metrics hang on its settings."""

    def described(self, params: Any) -> Described: ...


class Instrument(Protocol):
    """An instrument: what to run beside the workload, and how to read what it recorded."""

    name: str
    params: type
    summary: str
    metrics: Sequence[Metric]

    def plan(self, params: Any, target: Target) -> Sequence[Command]: ...

    def extract(self, params: Any, artifacts: Path) -> Extracted: ...


class Background(Protocol):
    """A load beside the workload: begun before the instruments, ended after them.

    Its params have ``programs()`` (what hosts must have installed) and ``machine_programs()`` (what the machine must have:
    program -> Debian's package), and may have ``unfit(topology)`` (the setting that this topology cannot fulfil, why, and what
    is allowed; None where all can be done).
    """

    name: str
    params: type
    summary: str
    metrics: Sequence[Metric]
    trials: Mapping[str, Any]
    """What of it can work or not by itself, such as ``where: machine`` -> the least settings that show it."""

    def plan(self, params: Any, places: Places) -> BackgroundPlan:
        """Every command is one that stays until it is told to end."""
        ...

    def extract(self, params: Any, artifacts: Path) -> Extracted:
        """What it really did."""
        ...
