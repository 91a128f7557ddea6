"""Real TCP of every kind, made afresh: tshark says that the kind is there, and twinbed's rows are held against tcptrace's."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from tests.traffic import tshark
from tests.traffic.kinds import KINDS
from tests.traffic.peers import Documented, differences, tcptrace_rows
from tests.traffic.run import make

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")]

SYN, SYN_ACK = "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.flags.syn == 1 && tcp.flags.ack == 1"
FROM_A, FROM_B = "ip.src == 10.9.0.1", "ip.src == 10.9.0.2"
AGAIN, OUT_OF_ORDER = "tcp.analysis.retransmission", "tcp.analysis.out_of_order || tcp.analysis.retransmission"
LOST, DUPLICATE_ACK, SACK, DSACK = (
    *("tcp.analysis.lost_segment", "tcp.analysis.duplicate_ack", "tcp.options.sack_le", "tcp.options.sack.dsack"),
)
RESET, FIN, FAST = "tcp.flags.reset == 1", "tcp.flags.fin == 1", "tcp.analysis.fast_retransmission"
TIMESTAMP = "tcp.options.timestamp.tsval"
WRAPPED_A = (f"{FROM_A} && tcp.seq_raw > 4294900000", f"{FROM_A} && tcp.seq_raw < 100000")
WRAPPED_B = (f"{FROM_B} && tcp.seq_raw > 4294900000", f"{FROM_B} && tcp.seq_raw < 100000")

# Kind -> place of a capture -> display filter -> how many packets it chooses at least.
SHOWN: dict[str, dict[str, dict[str, int]]] = {
    "plain": {"a": {SYN: 3, SYN_ACK: 3, FIN: 6}, "b": {SYN: 3, FIN: 6}},
    "loss": {"a": {LOST: 2, SACK: 10, OUT_OF_ORDER: 4}, "b": {AGAIN: 3, FAST: 1, SACK: 10, DUPLICATE_ACK: 6}},
    "loss_without_sack": {"a": {LOST: 3}, "b": {OUT_OF_ORDER: 3, FAST: 1, DUPLICATE_ACK: 9, "!(tcp.options.sack_perm)": 100}},
    "loss_of_retransmission": {"b": {AGAIN: 3, SACK: 2}},
    "loss_of_handshakes": {"a": {SYN: 5, AGAIN: 2}, "b": {SYN: 4, SYN_ACK: 4}},
    "loss_of_acks": {"a": {"tcp.analysis.spurious_retransmission": 1, DSACK: 1}, "b": {AGAIN: 2, DSACK: 1}},
    "loss_both_ways": {
        "a": {f"{FROM_A} && ({AGAIN})": 2, f"{FROM_B} && ({OUT_OF_ORDER})": 2},
        "b": {f"{FROM_B} && ({AGAIN})": 2, f"{FROM_A} && {SACK}": 2, f"{FROM_B} && {SACK}": 2},
    },
    "loss_of_the_end": {"a": {f"{FROM_A} && {FIN}": 2}, "b": {f"{FROM_B} && {FIN}": 2, AGAIN: 2}},
    "reordering": {"a": {OUT_OF_ORDER: 5, LOST: 3, DUPLICATE_ACK: 10, SACK: 10}},
    "reordering_of_acks": {"a": {f"{FROM_A} && tcp.len == 0": 20}},
    "duplication": {"a": {"tcp.analysis.spurious_retransmission": 4, DSACK: 4}, "b": {DUPLICATE_ACK: 5}},
    "duplication_late": {"a": {"tcp.analysis.spurious_retransmission": 4, DSACK: 4}},
    "damage": {"a": {"tcp.checksum.status == 0": 2, "tcp.checksum.status == 1": 10}, "b": {OUT_OF_ORDER: 2}},
    "fragmentation": {"a": {"ip.flags.mf == 1": 8, "ip.frag_offset > 0": 8}, "b": {"ip.flags.df == 0 && tcp.len > 1000": 8}},
    "congestion_marks": {
        "a": {"ip.dsfield.ecn == 3": 2},
        "b": {"tcp.flags.cwr == 1 && tcp.len > 0": 1, "tcp.flags.ece == 1": 3},
    },
    "offload": {"a": {"frame.len > 3000": 5}, "b": {"frame.len > 3000": 5, "tcp.checksum.status == 0": 2}},
    "offload_loss": {"a": {"frame.len > 3000": 5, LOST: 2, SACK: 3}, "b": {OUT_OF_ORDER: 2}},
    "tiny_windows": {"a": {"tcp.window_size <= 2304 && ip.src == 10.9.0.2": 5, "tcp.analysis.window_full": 5}},
    "zero_windows": {"a": {"tcp.analysis.zero_window": 2, "tcp.analysis.keep_alive || tcp.analysis.zero_window_probe": 4}},
    "shrinking_windows": {"b": {"tcp.analysis.zero_window": 5, AGAIN: 2}},
    "keep_alive": {"a": {"tcp.analysis.keep_alive": 3, "tcp.analysis.keep_alive_ack": 1}},
    "urgent": {"a": {"tcp.flags.urg == 1 && tcp.urgent_pointer > 0": 4, AGAIN: 1}},
    "keystrokes": {"a": {f"{FROM_A} && tcp.len == 1": 20, f"{FROM_B} && tcp.len > 0": 20}},
    "segment_sizes": {"a": {f"{FROM_B} && tcp.len == 524": 10, f"{FROM_A} && tcp.len == 1188": 2, "tcp.len == 1": 2}},
    "bare_options": {"a": {"tcp.hdr_len == 20": 50, LOST: 1, "tcp.flags.syn == 1 && !tcp.options.wscale": 2}},
    "one_sided_timestamps": {
        "a": {f"{SYN} && tcp.options.timestamp.tsval": 1, f"{SYN_ACK} && !tcp.options.timestamp.tsval": 1}
    },
    "resets": {"a": {f"{FROM_A} && {RESET}": 2, f"{FROM_B} && {RESET}": 3, f"{RESET} && tcp.ack_raw == 0": 2}},
    "half_open": {"a": {SYN: 7, SYN_ACK: 3, RESET: 1, AGAIN: 4}, "b": {SYN_ACK: 4, SYN: 4}},
    "simultaneous_open": {place: {f"{end} && {SYN}": 1 for end in (FROM_A, FROM_B)} | {SYN_ACK: 2} for place in "ab"},
    "simultaneous_close": {"a": {f"{FROM_A} && {FIN}": 1, f"{FROM_B} && {FIN} && tcp.ack == 3001": 1}},
    "half_closed": {"a": {f"{FROM_A} && {FIN}": 1, f"{FROM_B} && tcp.len > 0 && tcp.ack == 252": 10, LOST: 1}},
    "port_reuse": {"a": {"tcp.analysis.reused_ports": 4, SYN: 5, f"{FROM_A} && {RESET}": 1, f"{FROM_B} && {RESET}": 1}},
    "port_reuse_in_turn": {"b": {"tcp.analysis.reused_ports": 10, SYN: 12}},
    "many_at_once": {"a": {SYN: 30, FIN: 60, "tcp.stream == 29": 5}},
    "wrap_of_upload": {"a": dict.fromkeys(WRAPPED_A, 3), "b": {AGAIN: 2}},
    "wrap_of_handshake": {"a": {f"{SYN} && tcp.seq_raw == {seq}": 1 for seq in (2**32 - 1, 2**32 - 2, 2**32 - 501)}},
    "wrap_of_both": {"a": dict.fromkeys((*WRAPPED_A, *WRAPPED_B), 3) | {SYN: 2, SACK: 2}},
    "wrap_without_beginning": {"a": dict.fromkeys((*WRAPPED_A, *WRAPPED_B), 3) | {f"!({SYN})": 50, DSACK: 1}},
    "ipv6": {"a": {"ipv6 && tcp.len > 0": 50, SACK: 2, LOST: 1}},
    "ipv6_offload": {"a": {"ipv6 && frame.len > 3000": 5, LOST: 1}},
    "vlan": {"trunk": {"vlan.id == 42": 20, AGAIN: 1}, "a": {"!vlan && tcp": 20}},
    "stacked_vlan": {"trunk": {"ieee8021ad.id == 7 && vlan.id == 42 && tcp": 20}},
    "data_with_syn": {"b": {f"{SYN} && tcp.len == 300": 2, f"{SYN} && tcp.len == 0": 1}},
    "jumbo": {"a": {"tcp.len > 8000": 10, LOST: 1}},
}
_NOT_OF_KIND = {"loss_without_sack": SACK, "wrap_without_beginning": SYN, "bare_options": TIMESTAMP}

# Where twinbed differs from tcptrace on purpose: column -> whether this is that difference.
DOCUMENTED: Documented = {}


Captures = dict[str, Future[dict[str, Path]]]


def test_every_kind_is_judged() -> None:
    assert SHOWN.keys() == KINDS.keys()


@pytest.fixture(scope="module")
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captures]:
    """Of the kinds that are asked for, made side by side: most of their time is waiting for TCP's timers."""
    folder = tmp_path_factory.mktemp("kinds")
    asked = " ".join(item.name for item in request.session.items)
    with ThreadPoolExecutor(4) as workers:
        yield {name: workers.submit(make, kind, folder / name) for name, kind in KINDS.items() if f"[{name}]" in asked}


@pytest.mark.parametrize("name", KINDS)
def test_kind_is_there_and_tcptrace_agrees(name: str, captures: Captures) -> None:
    made = captures[name].result()
    for place, shown in SHOWN[name].items():
        absent = [_NOT_OF_KIND[name]] if name in _NOT_OF_KIND else []
        *found, none = tshark.counts(made[place], *shown, *(absent or ["frame.number == 0"]))
        missing = {each: count for each, count in zip(shown, found, strict=True) if count < shown[each]}
        assert not missing and none == 0, f"{made[place]}: {missing}, {none} that do not belong"
    # The seam: `flows` is the one thing asked of twinbed.
    if flows := getattr(importlib.import_module("twinbed._core"), "flows", None):
        for capture in made.values():
            assert differences(flows(capture), tcptrace_rows(capture), DOCUMENTED) == [], capture


@pytest.mark.parametrize(
    ("kind", "place", "chosen", "number", "sinks"),
    [
        ("reordering", "a", f"{FROM_B} && tcp.len > 0", "tcp.seq", 4),
        ("reordering_of_acks", "b", f"{FROM_A} && tcp.len == 0 && !({FIN})", "tcp.ack", 3),
    ],
)
def test_numbers_sink(kind: str, place: str, chosen: str, number: str, sinks: int, tmp_path: Path) -> None:
    """Reordering and not loss, whatever tshark calls it: numbers sink where packets arrive, and not where they are sent."""
    made = make(KINDS[kind], tmp_path)
    for where, at_least, at_most in ((place, sinks, 1_000), ("ab".replace(place, ""), 0, 0)):
        numbers = [int(packet[number]) for packet in tshark.packets(made[where], number, chosen=chosen)]
        first_time = [each for at, each in enumerate(numbers) if each not in numbers[:at]]
        sunk = sum(later < earlier for earlier, later in pairwise(first_time))
        assert at_least <= sunk <= at_most, where


def test_nothing_of_it_is_left(tmp_path: Path, leaves_nothing: None) -> None:
    make(KINDS["plain"], tmp_path)


def test_a_kind_that_fails_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=re.escape("KeyError: 'nothing'")):
        make(type(KINDS["plain"])("nothing", KINDS["plain"].settings, KINDS["plain"].make), tmp_path)
