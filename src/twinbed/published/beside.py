"""Own results beside the printed ones: which of them are about the same metric, testbed and payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.published.printed import Library
from twinbed.published.verdicts import Held

OWN_NAMES: Mapping[str, str] = {"jitter": "path_delay_variation"}
"""Printed metric -> twinbed's, where the names differ; both are P95 - P50 of one-way delay."""


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


def beside(library: Library, held: Sequence[Held], own: Sequence[Own]) -> Iterator[tuple[Held, Own | None]]:
    """Each printed comparison with each own one that is about the same; with None where there is none."""
    for row in held:
        same: list[Own | None] = [each for each in own if _same(library, row, each)]
        yield from ((row, each) for each in same or [None])


def _same(library: Library, row: Held, own: Own) -> bool:
    if own.metric != OWN_NAMES.get(row.metric, row.metric):
        return False
    # virtio is virtio-net-pci too, containers a container.
    if not own.testbed.casefold().startswith(row.testbed.casefold().removesuffix("s")):
        return False
    size = library.sizes.get(row.labels.get("payload", ""))
    return size is None or own.payload in (size.bytes, size.otherwise)
