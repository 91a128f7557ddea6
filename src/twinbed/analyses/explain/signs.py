"""Find the signs of causes in each run, by the role of its hosts: a number, or None if it was not measured or the cause had
nothing to work on.

Counters are the kernel's own in each host's network namespace, from the first to the last snapshot.  The table ``counters`` has
those that moved.  A missing one is 0 if the host has others of its kind.

The instrument ``counters`` times every wake-up of an idle CPU, in the machine's kernel and in those of guests.  Runs without
such times have the lab's estimate, if any: the number of wake-ups times the duration of one before the workload.  Limits:
wake-ups of other programs than the workload's count too.  Guests with several CPUs wake them through the machine, so both
kernels may count the same wait.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from twinbed.analyses.explain import causes
from twinbed.contracts.place import MACHINE
from twinbed.model.json import document, integer
from twinbed.model.record import Record
from twinbed.model.tables import Tables
from twinbed.model.wake_ups import WAITED_SHARE
from twinbed.observations.inside import matching, read

if TYPE_CHECKING:
    import pyarrow as pa

DELAYED_ACK_S = 0.04
"""TCP_DELACK_MIN of Linux (include/net/tcp.h): the least that an acknowledgement waits for its timer."""
HEADERS = 52
"""Bytes of the MTU without payload: headers of IPv4, and of TCP with time stamps."""
ROLES = ("client", "server")
_WAYS = {"client": "client_to_server", "server": "server_to_client"}
_NUMBER = re.compile(r"\d+$")
_TCP, _EXTENDED, _DEVICES = "snmp:Tcp.", "netstat:TcpExt.", "net/dev:"
_IN, _OUT = (tuple(f"snmp:{ip}.{way}" for ip in ("Ip", "Ip6")) for way in ("InReceives", "OutRequests"))
"""Packets as IP gets them: joined packets count once."""
_CPU_TIME = re.compile(r"workload_cpu_seconds_per_\w+")
_COUNTERS = r"^(snmp:(Tcp|Ip|Ip6)\.|netstat:TcpExt\.|net/dev:)"
_METRICS = rf"^(device_interrupts|packets|wire_packets|mean_segment_bytes|{_CPU_TIME.pattern})$"

Signs: TypeAlias = Mapping[tuple[str, str], float | None]
"""Cause and role -> its sign. The role is empty where all hosts are meant."""


@dataclass(slots=True)
class _Role:
    """The counters of the hosts of one role, summed, and the metrics of their links."""

    counters: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    seconds: list[float] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def has(self, kind: str) -> bool:
        return any(key.startswith(kind) for key in self.counters)

    def device(self, name: str) -> float:
        return sum(value for key, value in self.counters.items() if key.startswith(_DEVICES) and key.endswith(f".{name}"))

    def total(self, metric: str) -> float | None:
        return sum(self.metrics[metric]) if metric in self.metrics else None


Roles: TypeAlias = Mapping[str, Mapping[str, _Role]]
"""Run -> role."""


def signs(source: Tables, records: Sequence[Record]) -> dict[str, Signs]:
    """Return run -> its signs."""
    roles: dict[str, dict[str, _Role]] = {record.id: {role: _Role() for role in ROLES} for record in records}
    _counters(source, roles)
    _metrics(source, roles)
    windows = _windows(source.table("flows"), roles)
    waits = _waits(source.table("packetisation"), roles)
    waited = shares(source, records)
    by_run: dict[str, Signs] = {}
    for record in records:
        mtu = integer(document(record.settings["topology"].get("link") or {}).get("mtu", 1500))
        of_run: dict[tuple[str, str], float | None] = {}
        for role, of_role in roles[record.id].items():
            first = windows.get((record.id, role))
            of_run |= {
                (causes.INITIAL_WINDOW.name, role): None if first is None else first / (mtu - HEADERS),
                (causes.AUTOCORKING.name, role): _autocorking(of_role),
                (causes.TSO.name, role): _joined_when_sent(of_role, mtu),
                (causes.GRO.name, role): _joined_on_receipt(of_role, mtu),
                (causes.COALESCING.name, role): _coalesced(of_role),
                (causes.DELAYED_ACK.name, role): _held_back(of_role),
                (causes.NAGLE.name, role): waits.get((record.id, role)),
            }
        of_run[causes.IDLE_CPUS.name, ""] = waited.get(record.id)
        of_run[causes.CPU.name, ""] = _cpu_time(roles[record.id].values())
        by_run[record.id] = of_run
    return by_run


def _counters(source: Tables, roles: Roles) -> None:
    """Add up the counters of the hosts of a role, without the machine's, which has another kernel."""
    columns = ("run", "host", "key", "seconds", "difference")
    for run, host, key, seconds, difference in matching(source, "counters", "key", _COUNTERS, *columns):
        of_role = roles.get(run, {}).get(_NUMBER.sub("", host))
        if of_role is not None:
            of_role.counters[key] += difference
            of_role.seconds.append(seconds)


def _metrics(source: Tables, roles: Roles) -> None:
    columns = ("run", "host", "direction", "metric", "value")
    for run, host, direction, metric, value in matching(source, "metrics", "metric", _METRICS, *columns):
        role = _NUMBER.sub("", host)
        of_role = roles.get(run, {}).get(role)
        if of_role is not None and direction in ("", _WAYS[role]):
            of_role.metrics[f"{metric} sent" if direction else metric].append(value)


def _windows(flows: pa.Table, roles: Mapping[str, object]) -> dict[tuple[str, str], float]:
    """Return (run, role) -> mean bytes that connections sent before the first acknowledgement, of connections that sent any. A
    connection that had no more to send shows that its window was no smaller."""
    windows: dict[tuple[str, str], float] = {}
    if not flows.num_rows:
        return windows
    import pyarrow.compute as pc

    for role, way in (("client", "a2b"), ("server", "b2a")):
        first = f"initial_window_bytes_{way}"
        sent = flows.filter(pc.and_(pc.starts_with(flows["link"], "client"), pc.greater(flows[first], 0)))
        for row in sent.select(["run", first]).group_by("run").aggregate([(first, "mean")]).to_pylist():
            if row["run"] in roles:
                windows[row["run"], role] = row[f"{first}_mean"]
    return windows


def _waits(table: pa.Table, roles: Mapping[str, object]) -> dict[tuple[str, str], float]:
    """Return (run, role) -> the share of its connections' sending time in which payload waited by Nagle's algorithm."""
    by_host: dict[tuple[str, str], float] = {}
    if not table.num_rows or "nagle_wait_s" not in table.column_names:
        return by_host
    import pyarrow.compute as pc

    for role, way in (("client", "originator"), ("server", "responder")):
        sent = pc.and_(pc.starts_with(table["link"], "client"), pc.equal(table["direction"], way))
        timed = table.filter(pc.and_(sent, pc.is_valid(table["nagle_wait_s"]))).select(["run", "nagle_wait_s", "duration_s"])
        # In one thread, so that sums are the same to the last digit.
        for row in (
            timed.group_by("run", use_threads=False).aggregate([("nagle_wait_s", "sum"), ("duration_s", "sum")]).to_pylist()
        ):
            if row["run"] in roles and row["duration_s_sum"]:
                by_host[row["run"], role] = row["nagle_wait_s_sum"] / row["duration_s_sum"]
    return by_host


def _autocorking(role: _Role) -> float | None:
    sent = sum(role.counters.get(key, 0.0) for key in _OUT)
    return min(1.0, role.counters.get(f"{_EXTENDED}TCPAutoCorking", 0.0) / sent) if sent else None


def _joined_when_sent(role: _Role, mtu: int) -> float | None:
    """Return the share; None if payload came in small pieces, so that there was nothing to join."""
    packets, wire = role.total("packets sent"), role.total("wire_packets sent")
    sizes = role.metrics.get("mean_segment_bytes sent")
    if not packets or not wire or not sizes or max(sizes) < mtu / 2:
        return None
    return max(0.0, 1 - packets / wire)


def _joined_on_receipt(role: _Role, mtu: int) -> float | None:
    """Return the share; None if packets were small, or came joined already."""
    packets, size = role.device("rx_packets"), role.device("rx_bytes")
    if not packets or not mtu / 2 <= size / packets <= mtu + 100:
        return None
    received = sum(role.counters.get(key, 0.0) for key in _IN)
    return min(1.0, max(0.0, 1 - received / packets))


def _coalesced(role: _Role) -> float | None:
    """Return the share, for hosts with their own kernel. Devices other than NICs hardly interrupt during a workload."""
    interrupts, packets = role.total("device_interrupts"), role.device("rx_packets") + role.device("tx_packets")
    return None if interrupts is None or not packets else max(0.0, 1 - interrupts / packets)


def _held_back(role: _Role) -> float | None:
    if not role.has(_TCP) or not role.seconds:
        return None
    return min(1.0, DELAYED_ACK_S * role.counters.get(f"{_EXTENDED}DelayedACKs", 0.0) / max(role.seconds))


def _cpu_time(roles: Iterable[_Role]) -> float | None:
    known = [(metric, values) for role in roles for metric, values in role.metrics.items()]
    times = [value for metric, values in known if _CPU_TIME.fullmatch(metric) for value in values]
    return sum(times) if times else None


_COUNT, _SECONDS = "idle_wake_ups", "idle_wake_up_seconds"
_BY_WORK = re.compile(rf"{_COUNT}_per_(\w+)")


@dataclass(frozen=True, slots=True)
class Waits:
    """Wake-ups of idle CPUs for each unit of work, mean over runs."""

    work: str
    """The unit of work, such as ``request``."""
    wake_ups: float
    each_s: float
    work_s: float
    """The time that a client takes for a unit of work."""

    @property
    def waited_s(self) -> float:
        """Return the time that programs waited for each unit of work."""
        return self.wake_ups * self.each_s


@dataclass(slots=True)
class _Run:
    """Sums over the kernels of a run."""

    wake_ups: float = 0.0
    seconds: float = 0.0
    by_work: dict[str, float] = field(default_factory=dict)


def shares(source: Tables, records: Sequence[Record]) -> dict[str, float]:
    """Return run -> the share of its clients' time in which programs waited for idle CPUs, as timed, or by the lab's
    estimate."""
    timed, by_run = _timed(source), _estimated(source)
    for record in records:
        lasted_s = _lasted_s(record)
        if record.id in timed and lasted_s:
            by_run[record.id] = min(1.0, timed[record.id].seconds / lasted_s)
    return by_run


def waits(source: Tables, records: Sequence[Record]) -> dict[str, Waits]:
    """Return run -> its wake-ups by the work done, of runs whose kernels timed any."""
    timed, by_run = _timed(source), {}
    for record in records:
        timed_run, lasted_s = timed.get(record.id), _lasted_s(record)
        if timed_run is None or timed_run.wake_ups <= 0 or lasted_s <= 0 or len(timed_run.by_work) != 1:
            continue
        ((work, by_work),) = timed_run.by_work.items()
        if by_work <= 0:
            continue
        each_s = timed_run.seconds / timed_run.wake_ups
        by_run[record.id] = Waits(work, by_work, each_s, lasted_s * by_work / timed_run.wake_ups)
    return by_run


def mean(of_runs: Sequence[Waits]) -> Waits | None:
    """Return the mean over runs of the wake-ups, of the time that they took, and of the time for the work."""
    if not of_runs:
        return None
    wake_ups, waited_s = fmean(of_run.wake_ups for of_run in of_runs), fmean(of_run.waited_s for of_run in of_runs)
    return Waits(of_runs[0].work, wake_ups, waited_s / wake_ups, fmean(of_run.work_s for of_run in of_runs))


def _timed(source: Tables) -> dict[str, _Run]:
    """Return run -> the wake-ups of its kernels; only of runs whose machine timed them."""
    by_run: dict[str, _Run] = defaultdict(_Run)
    machines = set()
    wanted = rf"^{_SECONDS}$|^{_COUNT}(_per_\w+)?$"
    for run, host, metric, value in matching(source, "metrics", "metric", wanted, "run", "host", "metric", "value"):
        own = by_run[run]
        if metric == _SECONDS:
            own.seconds += value
            machines |= {run} if host == MACHINE else set()
        elif metric == _COUNT:
            own.wake_ups += value
        elif by_work := _BY_WORK.fullmatch(metric):
            own.by_work[by_work[1]] = own.by_work.get(by_work[1], 0.0) + value
    return {run: of_run for run, of_run in by_run.items() if run in machines}


def _estimated(source: Tables) -> dict[str, float]:
    return {
        run: float(value)
        for run, place, fact, value in read(source, "facts", "run", "place", "fact", "value")
        if (place, fact) == (MACHINE, WAITED_SHARE) and value not in (None, "null")
    }


def _lasted_s(record: Record) -> float:
    return sum(client.end_s - client.start_s for client in record.clients)
