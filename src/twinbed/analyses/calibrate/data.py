"""The data of a calibration: the runs of two testbeds, what links can carry, and the facts that it is valid for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.contracts.place import MACHINE
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.record import IMPORTED, Record
from twinbed.model.run import Level, level_text
from twinbed.model.tables import Tables
from twinbed.model.topology import topology_of
from twinbed.model.units import magnitudes
from twinbed.observations.frame import Frame
from twinbed.statistics.physics import Accounting, Path, tcp_goodput

WIDE = 16.0
"""Plain numbers that span more than this ratio are used as logarithms; sizes, rates and times always are."""
CLIENTS = ("threads", "concurrency", "connections", "clients", "pairs")
"""Factors that a rate of requests grows with, in the joint law."""
GOODPUT = "goodput"
ROUNDED = 1.001
"""A run may exceed the limit by this ratio, since sources round."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one testbed, as columns of one length."""

    levels: Mapping[str, Sequence[Level]]
    """Factor -> each run's level."""
    blocks: Sequence[int]
    values: Sequence[float]
    """In the unit of the response, above 0."""

    def __len__(self) -> int:
        return len(self.values)

    def only(self, wanted: Mapping[str, Level]) -> Runs:
        """Return the runs at these levels, without their factors."""
        kept = [at for at in range(len(self)) if all(self.levels[name][at] == level for name, level in wanted.items())]
        return Runs(
            {name: [of[at] for at in kept] for name, of in self.levels.items() if name not in wanted},
            [self.blocks[at] for at in kept],
            [self.values[at] for at in kept],
        )


@dataclass(frozen=True, slots=True)
class Input:
    """A factor that is a number, and its measured range."""

    name: str
    unit: str
    """bytes, bit/s or s; empty for plain numbers."""
    is_log: bool
    low: float
    """The least level, or its logarithm if ``is_log``."""
    span: float
    is_short: bool = False
    """True if sizes are written as ``64k`` and ``1m``; a plain number is then a size too."""

    def scaled(self, level: Level) -> float:
        """Return a level scaled to 0 to 1 over the measured range. Raises TwinbedError if it is no such number."""
        known = magnitudes([level, "1k"] if self.is_short else [level])[0]
        if known is None:
            raise TwinbedError(
                f"{self.name} is {level_text(level)}, which is not a number", advice="give a number or a quantity"
            )
        if known[0] != self.unit:
            raise TwinbedError(
                f"{self.name} is {level_text(level)}, in another unit", advice=f"give it in {self.unit or 'plain numbers'}"
            )
        number = known[1]
        if self.is_log:
            number = float(np.log(number)) if number > 0 else -np.inf
        return (number - self.low) / self.span

    def number(self, scaled: float) -> float:
        """Return a scaled level in base units."""
        at = self.low + self.span * scaled
        return float(np.exp(at)) if self.is_log else at


def runs_of(frame: Frame, testbed: str, factors: Sequence[str]) -> Runs:
    """Return the runs of one testbed. Raises TwinbedError if a value has no logarithm."""
    own = frame.only("testbed", [testbed])
    if len(own) and float(own.y.min()) <= 0:
        raise TwinbedError(
            f"{frame.response} is {own.y.min():g} in a run of {testbed}, and a calibration needs ratios",
            advice="choose a response that is above 0 in every run",
        )
    columns = {name: own.columns[name] for name in factors}
    block = own.columns["block"]
    return Runs(
        {name: [column.levels[code] for code in column.codes] for name, column in columns.items()},
        [int(str(block.levels[code])) for code in block.codes],
        [float(value) for value in own.y],
    )


def inputs_of(cheap: Runs, expensive: Runs) -> Sequence[Input]:
    """Return the factors whose levels are all numbers or quantities of one unit, and vary."""
    return [
        factor for name in cheap.levels if (factor := _input(name, [*cheap.levels[name], *expensive.levels[name]])) is not None
    ]


def others(cheap: Runs, expensive: Runs, inputs: Sequence[Input]) -> Iterator[Mapping[str, Level]]:
    """Yield the combinations of other factors' levels that both testbeds have."""
    names = [name for name in cheap.levels if name not in {factor.name for factor in inputs}]
    cheap_levels, expensive_levels = (
        dict.fromkeys(tuple(runs.levels[name][at] for name in names) for at in range(len(runs))) for runs in (cheap, expensive)
    )
    for levels in cheap_levels:
        if levels in expensive_levels:
            yield dict(zip(names, levels, strict=True))


def _input(name: str, levels: Sequence[Level]) -> Input | None:
    known = magnitudes(levels)
    quantities = {quantity for quantity in known if quantity is not None}
    units, numbers = {unit for unit, _ in quantities}, [number for _, number in quantities]
    if None in known or len(units) != 1 or len(numbers) < 2:
        return None
    unit, low, high = units.pop(), min(numbers), max(numbers)
    is_log = low > 0 and (bool(unit) or high / low > WIDE)
    if is_log:
        low, high = float(np.log(low)), float(np.log(high))
    is_short = unit == "bytes" and any(isinstance(level, str) and level[-1:] in "kKmMgG" for level in levels)
    return Input(name, unit, is_log, low, high - low, is_short)


def limit(tables: Tables, testbed: str, response: str, runs: Runs) -> float | None:
    """Return the most that links can carry, in bit/s of goodput. None for other responses, for links without a rate, and if
    ``runs`` exceed it."""
    metric, *where = response.split("@")
    if metric != GOODPUT:
        return None
    rates = [list(_carried(record, bool(where))) for record in tables.records if record.settings["testbed"]["name"] == testbed]
    if not rates or not all(rates):
        return None
    most = max(rate for own in rates for rate in own)
    return None if max(runs.values, default=0.0) > most * ROUNDED else most


def _carried(record: Record, is_of_host: bool) -> Iterator[float]:
    topology = topology_of(record.settings["topology"])
    if topology.link.rate is not None:
        # A shaper of ours counts less of each frame than a wire does.
        counted = Accounting.WIRE if record.settings["testbed"]["kind"] == IMPORTED else Accounting.SHAPER
        links = 1 if is_of_host else len(topology.names())
        yield links * tcp_goodput(topology.link.rate, Path(mtu=topology.link.mtu, accounting=counted))


FACTS = (
    "kernel",
    "cpu",
    "cpus",
    "accelerator",
    "NIC driver",
    "NIC model",
    "NIC firmware",
    "tcp rmem",
    "tcp wmem",
    "congestion control",
    "initial window",
    "qdisc",
)
"""Facts of hosts that rates depend on: a calibration is valid only for the same ones."""
DISQUALIFYING = (Kind.SOFTWARE_CPU, Kind.CPU_EXHAUSTED)
_NUMBER = re.compile(r"\d+$")
_UNKNOWN = ("", "null", "None", None)
Passport = Mapping[str, Sequence[str]]


def passport(tables: Tables, testbed: str) -> Passport:
    """Return ``client: kernel`` -> its values over all runs of a testbed, for recorded facts."""
    runs = {record.id for record in tables.records if record.settings["testbed"]["name"] == testbed}
    table = tables.table("facts")
    facts: dict[str, set[str]] = {}
    if table.num_rows:
        rows = zip(*(table[name].to_pylist() for name in ("run", "place", "fact", "value")), strict=True)
        for run, place, fact, value in rows:
            if run in runs and fact in FACTS and place != MACHINE and value not in _UNKNOWN:
                facts.setdefault(f"{_NUMBER.sub('', place)}: {fact}", set()).add(str(value))
    return {name: sorted(values) for name, values in sorted(facts.items())}


def differences(before: Passport, now: Passport) -> Iterator[str]:
    """Yield the facts that both recorded and that differ."""
    for name in before.keys() & now.keys():
        if list(before[name]) != list(now[name]):
            yield f"{name} is {', '.join(now[name])}, was {', '.join(before[name])}"


def objections(cautions: Sequence[Caution], cheap: str, expensive: str) -> Mapping[Kind, str]:
    """Return the disqualifying cautions on either testbed. An emulated CPU does not disqualify if both testbeds have one."""
    texts: dict[Kind, str] = {}
    of = {
        kind: [caution for caution in cautions if caution.kind is kind and caution.subject in (cheap, expensive)]
        for kind in DISQUALIFYING
    }
    for kind, of_kind in of.items():
        if of_kind and not (kind is Kind.SOFTWARE_CPU and {caution.subject for caution in of_kind} == {cheap, expensive}):
            texts[kind] = "; ".join(f"{caution.subject}: {caution.detail or kind.meaning}" for caution in of_kind)
    return texts
