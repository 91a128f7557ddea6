"""An observer's features of each run, as numbers, and the setting that removes each feature.

In: the tables ``fingerprints`` and ``windows``.  The passive observer watches a client's link.  A row is a block of packets of
each direction, with the fingerprints that need no more packets; fingerprints that need more belong to the longest block.  The
active observer and the observer on the host have one row a run.  Addresses, ports, names of hosts, the order of runs and the
time of day are in no table that is read.

A setting removes a feature if it makes the feature alike on both testbeds by construction.  For example, the kernel's window is
set, offload on the NIC is switched off, or the hardware's names are chosen.  No setting reaches some features, such as
durations; they are the residue.  Each setting belongs to testbeds' drivers, or to the topology (``topology.``).
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
"""Blocks of one length that are used from each run, evenly spaced."""
OF_ONE_PACKET = frozenset(
    [
        *("tcp_signature", "tcp_options", "tcp_quirks", "syn_window", "window_scale", "mss"),
        *("ttl", "df", "ecn", "ip_ecn", "mac_vendor", "mac_local", "ja3", "ja3s", "ja4"),
    ]
)
"""Features that a single SYN or hello shows, whatever the table's value is based on."""
SHORTEST_S = 1e-9
"""The shortest time that captures resolve."""
KEYS = ("run", "link", "direction", "packets", "block", "seconds")

Value: TypeAlias = float | str | None
Observation: TypeAlias = dict[str, Value]


@dataclass(slots=True)
class Seen:
    """One observer's features of one run."""

    once: Observation = field(default_factory=dict)
    """Features with one value for the whole run."""
    needs: dict[str, int] = field(default_factory=dict)
    """Feature of ``once`` -> the packets or probes that it needs."""
    blocks: dict[int, list[Observation]] = field(default_factory=dict)
    """Number of packets -> blocks of that length."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Number of packets -> mean duration of its blocks."""

    def takes(self, feature: str) -> int:
        """Return the number of packets or probes that a feature needs."""
        return self.needs.get(feature, min(self.blocks, default=1))

    def at(self, packets: int | None, *, whole: bool) -> list[Observation]:
        """Return the rows of an observation of that many packets; ``whole`` adds all of ``once``, whatever it needs."""
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
        return Matrix(
            self.rows[:, chosen], self.runs, {name: tuple(place[column] for column in at) for name, at in kept.items()}
        )


def seen_by(source: Tables) -> dict[str, dict[str, Seen]]:
    """Return observer -> run -> features; observers without a record are missing."""
    by_observer: dict[str, dict[str, Seen]] = defaultdict(lambda: defaultdict(Seen))
    for row in sorted(source.table("fingerprints").to_pylist(), key=lambda row: str(row["host"])):
        name = f"{row['host'].rstrip('0123456789')}.{row['feature']}"
        seen = by_observer[row["observer"]][row["run"]]
        # The first of several hosts of a role stands for all.
        if name not in seen.once:
            seen.once[name] = row["text"] if row["value"] is None else _number(name, row["value"])
            seen.needs[name] = 1 if row["feature"] in OF_ONE_PACKET else row["seen"] or 1
    for run, seen in _windows(source):
        by_observer[PASSIVE][run].blocks, by_observer[PASSIVE][run].seconds = seen.blocks, seen.seconds
    return {observer: dict(by_observer[observer]) for observer in OBSERVERS if observer in by_observer}


def _windows(source: Tables) -> Iterator[tuple[str, Seen]]:
    links: dict[str, str] = {}
    for run, link in read(source, "windows", "run", "link"):
        links[run] = min(links.get(run, link), link, key=lambda name: (not name.startswith(CLIENT), name))
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
    """Return times as logarithms: a run that is a hundred times as slow as another would hide all other differences."""
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
    """Return the lengths in packets that all runs allow, ascending: single packets (a SYN) first, then blocks. ``[None]`` if
    nothing is counted in packets."""
    blocks = sorted(set.intersection(*(set(run.blocks) for run in runs)))
    if not blocks:
        return [None]
    once = {max(run.needs.get(name, 0) for run in runs) for run in runs for name in run.once}
    return [*sorted(length for length in once if length < blocks[0]), *blocks]


def matrix(runs: Sequence[Sequence[Observation]]) -> Matrix:
    """Return the rows of all runs as numbers. A text gets a column for each value, a number its own, and one more that marks
    missing values. Features that are alike in all rows get no column."""
    every = [row for rows in runs for row in rows]
    columns: dict[str, tuple[int, ...]] = {}
    numbers: list[list[float]] = []
    for name in dict.fromkeys(name for row in every for name in row):
        values = [row.get(name) for row in every]
        own = [column for column in _columns(values) if len(set(column)) > 1]
        if own:
            columns[name] = tuple(range(len(numbers), len(numbers) + len(own)))
            numbers += own
    rows = np.array(numbers, dtype=np.float64).T if numbers else np.zeros((len(every), 0))
    return Matrix(rows, np.repeat(np.arange(len(runs)), [len(rows) for rows in runs]), columns)


def _columns(values: Sequence[Value]) -> list[list[float]]:
    if any(isinstance(value, str) for value in values):
        return [
            [float(value == category) for value in values]
            for category in sorted({str(value) for value in values if value is not None})
        ]
    # One NaN object, so that equal columns compare as equal.
    missing = [float(value is None) for value in values]
    return [[np.nan if value is None else float(value) for value in values], missing]


def of_runs(runs: Sequence[Sequence[Observation]], feature: str) -> list[Value]:
    """Return one value for each run: the first text, or the mean of numbers."""
    of_run: list[Value] = []
    for rows in runs:
        values = [value for row in rows if (value := row.get(feature)) is not None]
        numbers = [value for value in values if not isinstance(value, str)]
        of_run.append(fmean(numbers) if numbers and len(numbers) == len(values) else values[0] if values else None)
    if any(isinstance(value, str) for value in of_run):
        return [None if value is None else str(value) for value in of_run]
    return of_run


@dataclass(frozen=True, slots=True)
class Remedy:
    """A setting, and the value to give it on both testbeds; None: any value, the same on both."""

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
"""Feature (without host and direction) -> the setting that removes it. Reasons: docs/detectability.md."""
TOGETHER = ("sg", "tso", "gso", "gro")
"""The settings that ``offload`` sets."""


def remedy_of(feature: str) -> Remedy | None:
    """Return the setting that removes a feature, whatever its host or direction; None if no setting does."""
    return REMEDIES.get(feature.rpartition(".")[2])


def is_applied(remedy: Remedy, settings: tuple[Document, Document]) -> bool:
    """Return whether both testbeds have the remedy already, by the settings of a run of each. It then did not help."""
    values = [_value(remedy.setting, document) for document in settings]
    return values[0] == values[1] and values[0] is not None and remedy.value in (None, values[0])


def _value(setting: str, settings: Document) -> str | None:
    """Return the value of a setting as text; None if it is not set."""
    value: Json = settings
    for name in setting.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if setting == OFFLOAD.setting and value is None:
        alone = [settings.get(name) for name in TOGETHER]
        value = alone[0] if all(other == alone[0] for other in alone) else None
    return None if value is None else str(value)
