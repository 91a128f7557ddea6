"""Extrapolate from captures of a sample of the links to all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from twinbed.metrics.metric import Value
from twinbed.metrics.packets import LARGEST, SUMS
from twinbed.model.caution import Caution, Kind
from twinbed.model.drawn import Drawn
from twinbed.statistics.finite import Work, total

LEVEL = 0.95
_NAMED = ("packets", "bytes", "retransmitted_segments")


def of_all(values: Sequence[Value], drawn: Drawn, work: Mapping[str, float]) -> Iterator[Value]:
    """Yield the values, with those of the run as a whole extrapolated to all its pairs.

    Sums are estimated from the clients that were drawn.  Means and shares stay those of the sample, and a largest value on any
    link is unknown.  ``work``: client -> the work that it did; if it is known of all, sums are estimated by it.  A capture
    slows its pairs, so that they do less than the others, but each piece of work needs as much.
    """
    clients = [client for client, _ in drawn.pairs]
    known = len(work) == drawn.of and all(work.get(client, 0) > 0 for client in clients)
    of_drawn = Work([work[client] for client in clients], math.fsum(work.values())) if known else None
    of_client = {(value.metric, value.direction, value.host): value.value for value in values}
    for value in values:
        if value.host:
            yield value
        elif value.metric in LARGEST:
            yield replace(value, value=None)
        elif value.metric in SUMS:
            of_clients = [of_client.get((value.metric, value.direction, client)) for client in clients]
            yield _estimated(value, of_clients, drawn.of, of_drawn)
        else:
            yield value


def _estimated(value: Value, of_clients: Sequence[float | None], of: int, work: Work | None) -> Value:
    """Return nothing where one of the sample is missing: the others were not drawn at random."""
    known = [number for number in of_clients if number is not None]
    if not known or len(known) < len(of_clients):
        return replace(value, value=None)
    estimate = total(known, of, work, LEVEL)
    return replace(value, value=estimate.estimate, low=estimate.low, high=estimate.high)


def caution(values: Iterable[Value], drawn: Drawn) -> Caution:
    """Return a caution with the size of the sample and the uncertainty of the main totals."""
    of_run = {value.metric: value for value in values if not value.host and not value.direction}
    texts = [text for name in _NAMED if name in of_run and (text := _text(of_run[name]))]
    return Caution(Kind.SAMPLED, f"{len(drawn.pairs)} of {drawn.of} pairs; {LEVEL:.0%} intervals: {', '.join(texts) or 'none'}")


def _text(value: Value) -> str:
    if value.value is None:
        return ""
    if value.low is None or value.high is None:
        return f"{value.metric} {value.value:.6g} (all drawn alike: no interval)"
    return f"{value.metric} {value.value:.6g} ({value.low:.6g} to {value.high:.6g})"
