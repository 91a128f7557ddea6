"""What captures of a sample of the links say of all of them."""

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
    """The values, with those of the run as a whole said of all its pairs: sums are estimated from the clients that were drawn,
    means and shares stay those of the sample, and what is the most on any link is not known.

    ``work``: client -> the work that it did, by which sums are estimated where it is known of all: a capture slows the pairs
    that it is on, so that they do less than the others, while what a piece of work takes is the same.
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
    """Missing where one of the sample is: those that are there were not drawn at random."""
    known = [each for each in of_clients if each is not None]
    if not known or len(known) < len(of_clients):
        return replace(value, value=None)
    estimate = total(known, of, work, LEVEL)
    return replace(value, value=estimate.estimate, low=estimate.low, high=estimate.high)


def caution(values: Iterable[Value], drawn: Drawn) -> Caution:
    """How many were drawn, and how far the draw leaves the foremost totals open."""
    of_run = {value.metric: value for value in values if not value.host and not value.direction}
    texts = [text for name in _NAMED if name in of_run and (text := _text(of_run[name]))]
    return Caution(Kind.SAMPLED, f"{len(drawn.pairs)} of {drawn.of} pairs; {LEVEL:.0%} intervals: {', '.join(texts) or 'none'}")


def _text(value: Value) -> str:
    if value.value is None:
        return ""
    if value.low is None or value.high is None:
        return f"{value.metric} {value.value:.6g} (all drawn alike: no interval)"
    return f"{value.metric} {value.value:.6g} ({value.low:.6g} to {value.high:.6g})"
