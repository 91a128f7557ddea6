"""Own results next to the printed ones, of the same metric, testbed and payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.units import QuantityError, parse_duration, parse_rate, parse_size
from twinbed.published.printed import LINKS, Library, Table
from twinbed.published.verdicts import Held

OWN_NAMES: Mapping[str, str] = {"jitter": "path_delay_variation"}
"""Printed metric -> twinbed's, where the names differ; both are P95 - P50 of one-way delay."""
OF_MANY: Mapping[str, str] = {"flows": "pairs", "receivers": "pairs"}
"""Printed label -> twinbed's factor: how many there are at once."""


@dataclass(frozen=True, slots=True)
class Own:
    """One comparison of own results. ``payload`` in bytes, None where the workload has none."""

    metric: str
    testbed: str
    reference: str
    payload: int | None
    where: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str


def printed_with_own(library: Library, held: Sequence[Held], own: Sequence[Own]) -> Iterator[tuple[Held, Own | None]]:
    """Yield each printed comparison with each own one of the same; with None where there is none."""
    for row in held:
        same: list[Own | None] = [candidate for candidate in own if _same(library, row, candidate)]
        yield from ((row, match) for match in same or [None])


def _same(library: Library, row: Held, own: Own) -> bool:
    if own.metric != OWN_NAMES.get(row.metric, row.metric):
        return False
    if not _is_testbed(row.testbed, own.testbed):
        return False
    size = library.sizes.get(row.labels.get("payload", ""))
    return size is None or own.payload in (size.bytes, size.otherwise)


def _is_testbed(printed: str, own: str) -> bool:
    """Return whether a name means the same testbed: virtio is virtio-net-pci too, containers a container."""
    return own.casefold().startswith(printed.casefold().removesuffix("s"))


def printed_at(library: Library, table: Table, levels: Mapping[str, object], metric: str | None = None) -> str | None:
    """Return a table's text, as ``14420 ± 74.3``, for the levels of a study's factors, by names or dotted paths.

    ``metric`` is twinbed's name of the metric, for tables that print several.  None where the table has no number for the
    levels, or several.
    """
    own = {name.rpartition(".")[2]: level for name, level in levels.items()}
    cells = [cell for cell in table.cells if all(_is_level(library, label, value, own) for label, value in cell.labels.items())]
    if len({cell.metric for cell in cells}) > 1:
        cells = [cell for cell in cells if OWN_NAMES.get(cell.metric, cell.metric) == metric]
    means = [cell.printed for cell in cells if cell.kind == "mean"]
    spreads = [cell.printed for cell in cells if cell.kind != "mean"]
    return " ± ".join([*means, *spreads[:1]]) if len(means) == 1 else None


def _is_level(library: Library, label: str, printed: str, own: Mapping[str, object]) -> bool:
    """Return whether a printed label is the level of the study's factor of that meaning."""
    if label == "testbed":
        return _is_testbed(printed, str(own.get("testbed", "")))
    if label == "offloading":
        return own.get("offload") == {"yes": "on", "no": "off"}.get(printed)
    if label == "congestion_control":
        used = own.get("congestion_control", own.get("congestion"))
        return str(used).casefold() == printed.casefold()
    if label in OF_MANY:
        return str(own.get(OF_MANY[label])) == printed
    if label == "workers":
        return str(own.get("threads")) == printed
    try:
        if label == "payload":
            size = library.sizes.get(printed)
            return size is not None and parse_size(own.get("payload")) in (size.bytes, size.otherwise)
        if label == "seconds":
            return parse_duration(own.get("duration")) == float(printed)
        return label == "link" and parse_rate(own.get("rate")) == LINKS.get(printed)
    except QuantityError:
        return False
