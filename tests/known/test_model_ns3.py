"""The model's TCP against ns-3's: the same flows over the same links (tests/golden/model)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from twinbed.model.topology import Link
from twinbed.testbeds.model.clock import Clock, Cpu
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.tcp import Handling, Sender, Tcp

with (Path(__file__).parents[1] / "golden/model/flow.csv").open() as file:
    ROWS = list(csv.DictReader(file))
NO_LOSS = [row for row in ROWS if row["queue_packets"] == "1000000"]
LOSS = [row for row in ROWS if row not in NO_LOSS]
PPP_BYTES = 2
SYN_SHORTER_BYTES = 20 - 16
"""Options of a SYN: Linux's, which the model has, and ns-3's."""


@dataclass
class Arrival:
    size_bytes: int = 0
    last_s: float = 0.0


def arrival(row: Mapping[str, str]) -> Arrival:
    """As ns-3's link, the delay comes after the queue: it is the path's latency here."""
    rate, size = int(row["rate_bit_s"]), int(row["bytes"])
    link = Link(rate=rate, queue=int(row["queue_packets"]), burst=0)
    there, back = (Direction(link, float(row["delay_s"]), Random(0)) for _ in range(2))
    tcp = Tcp(1448, 10, 2**29, "cubic" if "Cubic" in row["congestion_control"] else "reno", False, PPP_BYTES)
    clock, arrived = Clock(), Arrival()

    def read(part: int) -> None:
        arrived.size_bytes += part
        arrived.last_s = clock.now_s

    syn_bytes = tcp.syn_bytes - SYN_SHORTER_BYTES
    rtt_s = back.sure(there.sure(0.0, syn_bytes), syn_bytes)
    there.sure(rtt_s, tcp.header_bytes)
    free = Handling(0.0, 0.0)
    sender = Sender(clock, tcp, (there, back), (Cpu(clock, 0.0), Cpu(clock, 0.0)), (free, free), read, lambda: None, rtt_s)
    clock.at(rtt_s, sender.write, size)
    clock.run(2000.0, lambda: arrived.size_bytes >= size)
    return arrived


@pytest.mark.parametrize("row", NO_LOSS, ids=lambda row: f"{row['rate_bit_s']}-{row['delay_s']}-{row['bytes']}")
def test_flows_without_loss_take_what_they_take_in_ns3(row: Mapping[str, str]) -> None:
    """To the nanosecond that ns-3 counts in, for each of the segments of a flow at most."""
    arrived = arrival(row)
    assert arrived.size_bytes == int(row["bytes"]) == int(row["received_bytes"])
    segments = -(-arrived.size_bytes // 1448)
    assert arrived.last_s == pytest.approx(float(row["seconds"]), rel=0, abs=1e-9 * (segments + 3))


@pytest.mark.parametrize("row", LOSS, ids=lambda row: f"{row['congestion_control'][5:]}-{row['queue_packets']}")
def test_flows_that_overflow_a_queue_take_nearly_what_they_take_in_ns3(row: Mapping[str, str]) -> None:
    """How a sender recovers differs in detail; queues are from half of what is on its way to five times as much."""
    assert arrival(row).last_s == pytest.approx(float(row["seconds"]), rel=0.03)


def test_there_are_as_many_as_the_golden_file_says() -> None:
    assert (len(NO_LOSS), len(LOSS)) == (72, 6)
