"""Find differences between the testbeds' hosts that are known to change results and were not asked for: a caution each.

Hosts of a role count together, as in the analysis ``passport``, which shows all that differs. The order is from what bounds a
connection's rate (buffers, congestion control, the initial window) to what may do anything or nothing (the kernel's version).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.place import MACHINE
from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import Records
from twinbed.model.json import loads
from twinbed.model.tables import Tables
from twinbed.observations.samples import distinct_rows


@dataclass(frozen=True, slots=True)
class _Matter:
    """``settings``: those of a testbed that ask for it."""

    table: str
    name: str
    what: str
    settings: tuple[str, ...] = ()


MATTERS = (
    _Matter("facts", "tcp rmem", "receive buffers (tcp_rmem)", ("buffers", "receive_buffer")),
    _Matter("facts", "tcp wmem", "send buffers (tcp_wmem)", ("buffers", "send_buffer")),
    _Matter("fingerprints", "window_scale", "window scale in SYNs", ("buffers", "receive_buffer")),
    _Matter("facts", "congestion control", "congestion control", ("congestion_control",)),
    _Matter("facts", "initial window", "initial window (initcwnd)"),
    _Matter("facts", "qdisc", "queueing discipline of the NIC"),
    _Matter("applied", "mtu", "MTU"),
    _Matter("facts", "kernel", "kernel"),
)
"""Most suspicious first."""
_COLUMNS = {
    "facts": ("place", "fact", "value"),
    "applied": ("subject", "setting", "found"),
    "fingerprints": ("host", "feature", "text"),
}
"""Columns of each table: host, the thing's name, its value."""
_NUMBER = re.compile(r"\d+$")
_ROLES = ("client", "server")
_UNKNOWN = ("", "null", "None")
_MOST_VALUES = 3
Values = Mapping[str, frozenset[str]]
"""Role -> the values of one thing on its hosts, without those that are not known."""


def differences(tables: Tables, reference: str, testbeds: Sequence[str]) -> Iterator[Caution]:
    """Yield the differences of each testbed from the reference. A thing is left out if either side does not know it, or if the
    testbeds' own settings of it differ: that is then the question."""
    records = Records.of(tables.records)
    rows = {name: [*_rows(tables, name, records)] for name in _COLUMNS}
    known = {matter: _values(rows[matter.table], matter) for matter in MATTERS}
    asked = _asked(records)
    for testbed in testbeds:
        for matter in MATTERS if testbed != reference else ():
            if any(asked[reference, name] != asked[testbed, name] for name in matter.settings):
                continue
            reference_values, testbed_values = (known[matter].get(name, {}) for name in (reference, testbed))
            roles = [
                role
                for role in _ROLES
                if reference_values.get(role) and testbed_values.get(role) and reference_values[role] != testbed_values[role]
            ]
            if roles:
                sides = ((reference, reference_values), (testbed, testbed_values))
                text = ", ".join(f"{_text(of[role] for role in roles)} on {name}" for name, of in sides)
                whose = "" if len(roles) == len(_ROLES) else f" of {roles[0]}s"
                yield Caution(Kind.STACKS_DIFFER, f"{matter.what}{whose}: {text}", testbed)


def _rows(tables: Tables, name: str, records: Records) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Return a table's distinct (testbed, (host, the thing's name, its value))."""
    return distinct_rows(tables.table(name), _COLUMNS[name], records, records.testbeds)


def _values(rows: Iterable[tuple[str, tuple[str, ...]]], matter: _Matter) -> Mapping[str, Values]:
    """Return testbed -> values."""
    values: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for testbed, (place, name, value) in rows:
        role = _NUMBER.sub("", place)
        if name == matter.name and role != MACHINE and value and value not in _UNKNOWN:
            values[testbed][role].add(" ".join(_plain(value).split()))
    return {name: {role: frozenset(texts) for role, texts in roles.items()} for name, roles in values.items()}


def _asked(records: Records) -> Mapping[tuple[str, str], frozenset[str]]:
    """Return (testbed, setting) -> its values at all ends and in all runs."""
    asked: dict[tuple[str, str], frozenset[str]] = defaultdict(frozenset)
    for settings in records.settings.distinct():
        for name, value in _leaves(settings["testbed"]):
            asked[str(settings["testbed"]["name"]), name] |= {value}
    return asked


def _leaves(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield name, json.dumps(value)


def _plain(value: str) -> str:
    """Return a value of a table: the tables hold what was read back as JSON, or as the text that it was."""
    try:
        return str(loads(value)) if value.startswith('"') else value
    except ValueError:
        return value


def _text(of_roles: Iterable[frozenset[str]]) -> str:
    values = sorted(frozenset().union(*of_roles))
    return " or ".join(values[:_MOST_VALUES]) + (" or more" if len(values) > _MOST_VALUES else "")
