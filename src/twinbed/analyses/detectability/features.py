"""What an observer has of each run, as numbers: rows of an observation of so many packets, or one a run.

In: the tables ``fingerprints`` and ``windows``.  The passive observer stands at a client's link: a row is a block of packets of
each direction, with the fingerprints that take no more packets; those that take more belong to the longest.  The active
observer and the one on the host have one row a run.  Addresses, ports, names of hosts, the order of runs and the time of the
day are in no table that is read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinbed.model.json import Document, Json
from twinbed.model.tables import Tables
from twinbed.observations.inside import CLIENT, read

OBSERVERS = ("passive", "active", "host")
PASSIVE = OBSERVERS[0]
BLOCKS = 4
"""Of one length that are taken of each run, evenly from all that there are."""
OF_ONE_PACKET = frozenset(
    [
        *("tcp_signature", "tcp_options", "tcp_quirks", "syn_window", "window_scale", "mss"),
        *("ttl", "df", "ecn", "ip_ecn", "mac_vendor", "mac_local", "ja3", "ja3s", "ja4"),
    ]
)
"""What any one SYN or hello says, however many the table's value rests on."""
SHORTEST_S = 1e-9
"""Captures tell no shorter times."""
KEYS = ("run", "link", "direction", "packets", "block", "seconds")

Value: TypeAlias = float | str | None
Observation: TypeAlias = dict[str, Value]


@dataclass(slots=True)
class Seen:
    """What one observer has of one run."""

    once: Observation = field(default_factory=dict)
    """What the whole run has one of."""
    needs: dict[str, int] = field(default_factory=dict)
    """Feature of ``once`` -> the packets or probes that it took."""
    blocks: dict[int, list[Observation]] = field(default_factory=dict)
    """Packets -> blocks of so many."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Packets -> how long so many take, as the mean over blocks."""

    def takes(self, feature: str) -> int:
        """Return the number of packets or probes that a feature takes."""
        return self.needs.get(feature, min(self.blocks, default=1))

    def at(self, packets: int | None, *, whole: bool) -> list[Observation]:
        """Return the rows of an observation of so many packets; ``whole`` adds all that a run has once, whatever it took."""
        once = {name: value for name, value in self.once.items() if whole or self.needs[name] <= (packets or 0)}
        return [{**once, **block} for block in self.blocks.get(packets or 0, [{}])]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of several runs as numbers; NaN is missing. ``columns`` maps features to theirs."""

    rows: NDArray[np.float64]
    runs: NDArray[np.intp]
    columns: Mapping[str, tuple[int, ...]]

    def without(self, features: Sequence[str]) -> Matrix:
        """Return the matrix without the columns of these features."""
        kept = {name: at for name, at in self.columns.items() if name not in features}
        chosen = [column for at in kept.values() for column in at]
        place = {column: new for new, column in enumerate(chosen)}
        return Matrix(self.rows[:, chosen], self.runs, {name: tuple(place[each] for each in at) for name, at in kept.items()})


def seen_by(source: Tables) -> dict[str, dict[str, Seen]]:
    """Return what each observer has of each run; observers that nothing was recorded for are missing."""
    found: dict[str, dict[str, Seen]] = defaultdict(lambda: defaultdict(Seen))
    for row in sorted(source.table("fingerprints").to_pylist(), key=lambda row: str(row["host"])):
        name = f"{row['host'].rstrip('0123456789')}.{row['feature']}"
        seen = found[row["observer"]][row["run"]]
        # Of several hosts of a role the first one stands for all.
        if name not in seen.once:
            seen.once[name] = row["text"] if row["value"] is None else _number(name, row["value"])
            seen.needs[name] = 1 if row["feature"] in OF_ONE_PACKET else row["seen"] or 1
    for run, seen in _windows(source):
        found[PASSIVE][run].blocks, found[PASSIVE][run].seconds = seen.blocks, seen.seconds
    return {observer: dict(found[observer]) for observer in OBSERVERS if observer in found}


def _windows(source: Tables) -> Iterator[tuple[str, Seen]]:
    links: dict[str, str] = {}
    for run, link in read(source, "windows", "run", "link"):
        links[run] = min(links.get(run, link), link, key=lambda each: (not each.startswith(CLIENT), each))
    by_run: dict[str, dict[int, dict[int, dict[str, Mapping[str, Value]]]]] = {}
    for row in source.table("windows").to_pylist():
        if row["link"] == links[row["run"]]:
            of_length = by_run.setdefault(row["run"], {}).setdefault(row["packets"], {})
            of_length.setdefault(row["block"], {})[row["direction"]] = row
    for run, lengths in by_run.items():
        seen = Seen()
        for packets, blocks in lengths.items():
            chosen = [sorted(blocks)[at] for at in _evenly(len(blocks))]
            seen.blocks[packets] = [_block(blocks[at]) for at in chosen]
            seconds = [float(row["seconds"] or 0) for at in chosen for row in blocks[at].values()]
            seen.seconds[packets] = sum(seconds) / len(seconds)
        yield run, seen


def _number(name: str, value: float) -> float:
    """Times by their logarithm: one run that is a hundred times as slow as another would hide all other differences."""
    return math.log(max(value, SHORTEST_S)) if name.endswith("_s") else value


def _evenly(count: int) -> list[int]:
    return sorted({round(at) for at in np.linspace(0, count - 1, min(count, BLOCKS))})


def _block(directions: Mapping[str, Mapping[str, Value]]) -> Observation:
    return {
        f"{direction}.{name}": value if value is None or isinstance(value, str) else _number(name, value)
        for direction, row in directions.items()
        for name, value in row.items()
        if name not in KEYS
    }


def lengths(runs: Sequence[Seen]) -> list[int | None]:
    """Return how many packets all runs can be observed over, ascending: what single packets give (a SYN), then blocks.
    ``[None]`` where nothing is known by packets."""
    blocks = sorted(set.intersection(*(set(run.blocks) for run in runs)))
    if not blocks:
        return [None]
    once = {max(run.needs.get(name, 0) for run in runs) for run in runs for name in run.once}
    return [*sorted(each for each in once if each < blocks[0]), *blocks]


def matrix(runs: Sequence[Sequence[Observation]]) -> Matrix:
    """Return the rows of all runs as numbers. A text has a column for each of its values. A number has its own, and one more
    that says that it is missing where it is in some rows alone. What all rows have alike has none."""
    every = [row for rows in runs for row in rows]
    columns: dict[str, tuple[int, ...]] = {}
    numbers: list[list[float]] = []
    for name in dict.fromkeys(name for row in every for name in row):
        values = [row.get(name) for row in every]
        own = [each for each in _columns(values) if len(set(each)) > 1]
        if own:
            columns[name] = tuple(range(len(numbers), len(numbers) + len(own)))
            numbers += own
    rows = np.array(numbers, dtype=np.float64).T if numbers else np.zeros((len(every), 0))
    return Matrix(rows, np.repeat(np.arange(len(runs)), [len(rows) for rows in runs]), columns)


def _columns(values: Sequence[Value]) -> list[list[float]]:
    if any(isinstance(value, str) for value in values):
        return [
            [float(value == each) for value in values] for each in sorted({str(value) for value in values if value is not None})
        ]
    # One NaN object, so that equal columns are seen to be.
    missing = [float(value is None) for value in values]
    return [[np.nan if value is None else float(value) for value in values], missing]


def of_runs(runs: Sequence[Sequence[Observation]], feature: str) -> list[Value]:
    """Return one value of each run: of a text its first, of a number the mean of its rows."""
    found: list[Value] = []
    for rows in runs:
        values = [value for row in rows if (value := row.get(feature)) is not None]
        numbers = [value for value in values if not isinstance(value, str)]
        found.append(fmean(numbers) if numbers and len(numbers) == len(values) else values[0] if values else None)
    if any(isinstance(value, str) for value in found):
        return [None if value is None else str(value) for value in found]
    return found


@dataclass(frozen=True, slots=True)
class Remedy:
    """A setting, and the value that it takes on both testbeds; None is any, the same on both."""

    setting: str
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.setting}: {self.value or 'the same'}"


BUFFERS = Remedy("buffers", "alike")
OFFLOAD = Remedy("offload", "off")
NIC = Remedy("nic")
REMEDIES: Mapping[str, Remedy] = {
    **dict.fromkeys(
        ("window_scale", "syn_window", "window_mean", "tcp_signature", "nmap_win", "nmap_ops", "nmap_ecn"), BUFFERS
    ),
    **dict.fromkeys(("bytes_mean", "bytes_sd", "full_share"), OFFLOAD),
    "mss": Remedy("topology.link.mtu"),
    "ttl": Remedy("topology.routers"),
    "icmp_ttl": Remedy("topology.routers"),
    "push_share": Remedy("autocorking", "off"),
    "ack_share": Remedy("quickack", "on"),
    **dict.fromkeys(("mac_vendor", "mac_local", "net_mac_vendors"), Remedy("mac_prefix")),
    **dict.fromkeys(("pci_ids", "net_drivers", "arp_reply_bytes"), NIC),
    "burst_share": Remedy("coalescing", "off"),
    **dict.fromkeys(("cpuid_hypervisor", "cpuid_hypervisor_vendor", "cpu_model", "cpu_vendor", "cpu_flags"), Remedy("cpu")),
    **dict.fromkeys(("timer_cost_s", "cpuid_cost_s", "rdtsc_cost_s"), Remedy("accelerator")),
}
"""By the feature's own name, whatever its host or direction. Why, feature by feature: docs/detectability.md."""
TOGETHER = ("sg", "tso", "gso", "gro")
"""What ``offload`` sets."""


def remedy_of(feature: str) -> Remedy | None:
    """Return the setting that removes a feature, whatever its host or direction; None where no setting does."""
    return REMEDIES.get(feature.rpartition(".")[2])


def is_applied(remedy: Remedy, settings: tuple[Document, Document]) -> bool:
    """Return whether both testbeds, by the settings of a run of each, have it already: then it did not remove the feature."""
    values = [_value(remedy.setting, each) for each in settings]
    return values[0] == values[1] and values[0] is not None and remedy.value in (None, values[0])


def _value(setting: str, settings: Document) -> str | None:
    """As text; None where it is left as it is found."""
    value: Json = settings
    for name in setting.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if setting == OFFLOAD.setting and value is None:
        alone = [settings.get(name) for name in TOGETHER]
        value = alone[0] if all(each == alone[0] for each in alone) else None
    return None if value is None else str(value)
