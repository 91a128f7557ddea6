"""What a calibration is tied to: the testbeds as they were, and that nothing speaks against either's figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.place import MACHINE
from twinbed.model.caution import Caution, Kind
from twinbed.model.tables import Tables

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
"""Of hosts: what rates hang on, and what a number from another testbed says nothing of."""
DISQUALIFYING = (Kind.SOFTWARE_CPU, Kind.CPU_EXHAUSTED)
_NUMBER = re.compile(r"\d+$")
_UNKNOWN = ("", "null", "None", None)
Passport = Mapping[str, Sequence[str]]


def passport(tables: Tables, testbed: str) -> Passport:
    """Return ``client: kernel`` -> its values over all runs of a testbed; what nobody recorded is not there."""
    runs = {record.id for record in tables.records if record.settings["testbed"]["name"] == testbed}
    table = tables.table("facts")
    found: dict[str, set[str]] = {}
    if table.num_rows:
        rows = zip(*(table[name].to_pylist() for name in ("run", "place", "fact", "value")), strict=True)
        for run, place, fact, value in rows:
            if run in runs and fact in FACTS and place != MACHINE and value not in _UNKNOWN:
                found.setdefault(f"{_NUMBER.sub('', place)}: {fact}", set()).add(str(value))
    return {name: sorted(values) for name, values in sorted(found.items())}


def differences(one: Passport, other: Passport) -> Iterator[str]:
    """Yield what both know, and is not the same."""
    for name in one.keys() & other.keys():
        if list(one[name]) != list(other[name]):
            yield f"{name} is {', '.join(other[name])}, was {', '.join(one[name])}"


def objections(cautions: Sequence[Caution], cheap: str, dear: str) -> Mapping[Kind, str]:
    """Return what disqualifies: a caution on either testbed. An emulated CPU does not, where both have one."""
    found: dict[Kind, str] = {}
    of = {kind: [each for each in cautions if each.kind is kind and each.subject in (cheap, dear)] for kind in DISQUALIFYING}
    for kind, those in of.items():
        if those and not (kind is Kind.SOFTWARE_CPU and {each.subject for each in those} == {cheap, dear}):
            found[kind] = "; ".join(f"{each.subject}: {each.detail or kind.meaning}" for each in those)
    return found
