"""Interrupts by line, of /proc/interrupts: how many came during the run, on all CPUs together.

A line is known by what the kernel names it after (its chip and what handles it), as ``IO-APIC 4-edge ttyS0``, since its number
may differ between boots; lines of one name are one. Lines of the architecture keep their label: ``LOC``, ``RES``, ``ERR``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinbed.readers.counters.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE = "/proc/interrupts"
_KEY = re.compile(r"intr\.(?P<line>[^(.]+)(?:\((?P<name>.*)\))?(?:\.cpu\d+)?")


def table(places: Sequence[Place]) -> pa.Table:
    """One row a line of each kernel: host, line, count; null where a CPU's count is not known at both ends."""
    import pyarrow as pa

    rows: dict[tuple[str, str], float | None] = {}
    for place in places:
        for key, difference in place.deltas.get(SOURCE, {}).items() if place.has_kernel else ():
            match = _KEY.fullmatch(key)
            if match is None:
                continue
            line = match["name"] if match["line"].isdigit() and match["name"] else match["line"]
            so_far = rows.get((place.name, line), 0.0)
            rows[place.name, line] = None if so_far is None or difference is None else so_far + difference
    names = pa.schema([("host", pa.string()), ("line", pa.string()), ("count", pa.float64())])
    return pa.Table.from_pylist([{"host": host, "line": line, "count": of} for (host, line), of in rows.items()], schema=names)
