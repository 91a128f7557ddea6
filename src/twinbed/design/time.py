"""What a study will take: seconds and bytes, estimated before anything runs.

A params model may know better than the guesses here, by any of these methods:

- ``estimate_seconds()``: of a workload, how long it runs; of a testbed, what it takes to come up and go down; of an instrument
  or a background load, what it adds to a run.
- ``estimate_bytes(link_rate)``: the bytes written per second of workload at most, of a workload for each client, of an
  instrument for each host's link; ``link_rate`` is in bit/s.

Times are estimates; bytes are an upper bound, reached only where every link is full both ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from twinbed.model.run import Run

TESTBED_SECONDS = 5.0
"""Bringing a testbed up and down, where its driver does not say."""
WORKLOAD_SECONDS = 10.0
"""A workload that neither says nor has a duration."""
UNSHAPED_RATE = 10_000_000_000
"""bit/s taken for a link without a rate."""
PACKET_BYTES = 1000
"""A typical packet: with requests and acknowledgements beside full segments, captures average 500 to 1000 bytes."""
PACKET_HEADER_BYTES = 16
"""Of a packet in a pcap file."""
OTHER_BYTES_PER_SECOND = 8192
"""Of an instrument that neither says nor captures packets: counters of a host, read each second."""


@dataclass(frozen=True, slots=True)
class Expense:
    """Seconds on the clock and bytes on disk."""

    seconds: float
    bytes: int


def capture_bytes(link_rate: int, snaplen: int) -> float:
    """Bytes per second of a capture of one link that is full both ways, with ``snaplen`` bytes kept of each packet."""
    packets = 2 * link_rate / 8 / PACKET_BYTES
    return packets * (min(snaplen, PACKET_BYTES) + PACKET_HEADER_BYTES)


def run_expense(run: Run) -> Expense:
    """What one run takes."""
    workload_s = _seconds(run.workload.params, _duration(run.workload.params))
    seconds = _seconds(run.testbed.params, TESTBED_SECONDS) + workload_s
    seconds += sum(_seconds(choice.params, 0.0) for choice in run.beside())
    rate = run.topology.link.rate or UNSHAPED_RATE
    clients, links = run.topology.pairs, 2 * run.topology.pairs
    per_second = clients * _bytes_per_second(run.workload.params, rate, 0.0)
    for choice in run.instruments.values():
        per_second += links * _bytes_per_second(choice.params, rate, OTHER_BYTES_PER_SECOND)
    return Expense(seconds, round(per_second * workload_s))


def expense(runs: Iterable[Run]) -> Expense:
    """What some runs take, one after another."""
    seconds, size = 0.0, 0
    for run in runs:
        one = run_expense(run)
        seconds += one.seconds
        size += one.bytes
    return Expense(seconds, size)


def _duration(params: Any) -> float:
    duration = getattr(params, "duration", None)
    return float(duration) if isinstance(duration, int | float) else WORKLOAD_SECONDS


def _seconds(params: Any, otherwise: float) -> float:
    estimate = getattr(params, "estimate_seconds", None)
    return float(estimate()) if callable(estimate) else otherwise


def _bytes_per_second(params: Any, link_rate: int, otherwise: float) -> float:
    estimate = getattr(params, "estimate_bytes", None)
    if callable(estimate):
        return float(estimate(link_rate))
    snaplen = getattr(params, "snaplen", None)
    return capture_bytes(link_rate, snaplen) if isinstance(snaplen, int) else otherwise
