"""Real TCP of many kinds, made afresh: tshark says that the kind is there, and twinbed's rows are held against tcptrace's."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.draws import SOAKING
from tests.traffic import tshark
from tests.traffic.documented import INSTALLED, UNREADABLE
from tests.traffic.kinds import KINDS
from tests.traffic.peers import differences, tcptrace_rows
from tests.traffic.run import make

from twinbed import _core

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")]

SYN, SYN_ACK = "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.flags.syn == 1 && tcp.flags.ack == 1"
FROM_A, FROM_B = "ip.src == 10.9.0.1", "ip.src == 10.9.0.2"
# Which of the two tshark calls a segment sent again depends on milliseconds.
SENT_AGAIN = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
LOST, DUPLICATE_ACK, SACK, DSACK = (
    *("tcp.analysis.lost_segment", "tcp.analysis.duplicate_ack", "tcp.options.sack_le", "tcp.options.sack.dsack"),
)
RESET, FIN = "tcp.flags.reset == 1", "tcp.flags.fin == 1"
TIMESTAMP = "tcp.options.timestamp.tsval"
WRAPPED_A = (f"{FROM_A} && tcp.seq_raw > 4294900000", f"{FROM_A} && tcp.seq_raw < 100000")
WRAPPED_B = (f"{FROM_B} && tcp.seq_raw > 4294900000", f"{FROM_B} && tcp.seq_raw < 100000")

# Kind -> place of a capture -> display filter -> how many packets it chooses at least. What depends on how packets fell in
# time (whether anything followed a lost one before the timer) is asked for a third as often as it is mostly seen. A
# super-packet has two segments where a busy machine makes round trips long.
SHOWN: dict[str, dict[str, dict[str, int]]] = {
    "plain": {"a": {SYN: 3, SYN_ACK: 3, FIN: 6}, "b": {SYN: 3, FIN: 6}},
    "loss": {"a": {LOST: 1, SACK: 3, SENT_AGAIN: 4}, "b": {SENT_AGAIN: 3, SACK: 3, DUPLICATE_ACK: 1}},
    "loss_without_sack": {"a": {LOST: 1}, "b": {SENT_AGAIN: 3, DUPLICATE_ACK: 1, "!(tcp.options.sack_perm)": 100}},
    "loss_of_retransmission": {"b": {SENT_AGAIN: 3, SACK: 1}},
    "loss_of_handshakes": {"a": {SYN: 5, SENT_AGAIN: 2}, "b": {SYN: 4, SYN_ACK: 4}},
    "loss_of_acks": {"a": {"tcp.analysis.spurious_retransmission": 1, DSACK: 1}, "b": {SENT_AGAIN: 2, DSACK: 1}},
    "loss_both_ways": {
        "a": {f"{FROM_A} && ({SENT_AGAIN})": 2, f"{FROM_B} && ({SENT_AGAIN})": 2},
        "b": {f"{FROM_B} && ({SENT_AGAIN})": 2, f"{FROM_A} && {SACK}": 2, f"{FROM_B} && {SACK}": 2},
    },
    "loss_of_the_end": {"a": {f"{FROM_A} && {FIN}": 2}, "b": {f"{FROM_B} && {FIN}": 2, SENT_AGAIN: 2}},
    "reordering": {"a": {SENT_AGAIN: 5, LOST: 1, DUPLICATE_ACK: 1, SACK: 3}},
    "reordering_of_acks": {"a": {f"{FROM_A} && tcp.len == 0": 20}},
    "duplication": {"a": {"tcp.analysis.spurious_retransmission": 1, DSACK: 1}, "b": {DUPLICATE_ACK: 1}},
    "duplication_late": {"a": {"tcp.analysis.spurious_retransmission": 1, DSACK: 1}},
    "damage": {"a": {"tcp.checksum.status == 0": 2, "tcp.checksum.status == 1": 10}, "b": {SENT_AGAIN: 2}},
    "fragmentation": {"a": {"ip.flags.mf == 1": 8, "ip.frag_offset > 0": 8}, "b": {"ip.flags.df == 0 && tcp.len > 1000": 8}},
    "congestion_marks": {
        "a": {"ip.dsfield.ecn == 3": 2},
        "b": {"tcp.flags.cwr == 1 && tcp.len > 0": 1, "tcp.flags.ece == 1": 3},
    },
    "offload": {"a": {"frame.len > 2000": 2}, "b": {"frame.len > 2000": 2, "tcp.checksum.status == 0": 2}},
    "offload_loss": {"a": {"frame.len > 2000": 2, LOST: 1, SACK: 1}, "b": {SENT_AGAIN: 2}},
    "tiny_windows": {"a": {"tcp.window_size <= 2304 && ip.src == 10.9.0.2": 5, "tcp.analysis.window_full": 5}},
    "zero_windows": {"a": {"tcp.analysis.zero_window": 2, "tcp.analysis.keep_alive || tcp.analysis.zero_window_probe": 4}},
    "shrinking_windows": {"b": {"tcp.analysis.zero_window": 5, SENT_AGAIN: 2}},
    "keep_alive": {"a": {"tcp.analysis.keep_alive": 3, "tcp.analysis.keep_alive_ack": 1}},
    "urgent": {"a": {"tcp.flags.urg == 1 && tcp.urgent_pointer > 0": 4, SENT_AGAIN: 1}},
    "keystrokes": {"a": {f"{FROM_A} && tcp.len == 1": 20, f"{FROM_B} && tcp.len > 0": 20}},
    "segment_sizes": {"a": {f"{FROM_B} && tcp.len == 524": 10, f"{FROM_A} && tcp.len == 1188": 2, "tcp.len == 1": 2}},
    "bare_options": {"a": {"tcp.hdr_len == 20": 50, LOST: 1, "tcp.flags.syn == 1 && !tcp.options.wscale": 2}},
    "one_sided_timestamps": {
        "a": {f"{SYN} && tcp.options.timestamp.tsval": 1, f"{SYN_ACK} && !tcp.options.timestamp.tsval": 1}
    },
    "resets": {"a": {f"{FROM_A} && {RESET}": 2, f"{FROM_B} && {RESET}": 3, f"{RESET} && tcp.ack_raw == 0": 2}},
    "half_open": {"a": {SYN: 7, SYN_ACK: 3, RESET: 1, SENT_AGAIN: 4}, "b": {SYN_ACK: 4, SYN: 4}},
    "simultaneous_open": {place: {f"{end} && {SYN}": 1 for end in (FROM_A, FROM_B)} | {SYN_ACK: 2} for place in "ab"},
    "simultaneous_close": {"a": {f"{FROM_A} && {FIN}": 1, f"{FROM_B} && {FIN} && tcp.ack == 3001": 1}},
    "half_closed": {"a": {f"{FROM_A} && {FIN}": 1, f"{FROM_B} && tcp.len > 0 && tcp.ack == 252": 10, LOST: 1}},
    "port_reuse": {"a": {"tcp.analysis.reused_ports": 4, SYN: 5, f"{FROM_A} && {RESET}": 1, f"{FROM_B} && {RESET}": 1}},
    "port_reuse_in_turn": {"b": {"tcp.analysis.reused_ports": 10, SYN: 12}},
    "many_at_once": {"a": {SYN: 30, FIN: 60, "tcp.stream == 29": 5}},
    "wrap_of_upload": {"a": dict.fromkeys(WRAPPED_A, 3), "b": {SENT_AGAIN: 2}},
    "wrap_of_handshake": {"a": {f"{SYN} && tcp.seq_raw == {seq}": 1 for seq in (2**32 - 1, 2**32 - 2, 2**32 - 501)}},
    "wrap_of_both": {"a": dict.fromkeys((*WRAPPED_A, *WRAPPED_B), 3) | {SYN: 2, SACK: 1}},
    "wrap_without_beginning": {"a": dict.fromkeys((*WRAPPED_A, *WRAPPED_B), 3) | {f"!({SYN})": 50, DSACK: 1}},
    "ipv6": {"a": {"ipv6 && tcp.len > 0": 50, SACK: 1, LOST: 1}},
    "ipv6_offload": {"a": {"ipv6 && frame.len > 2000": 2, LOST: 1}},
    "vlan": {"trunk": {"vlan.id == 42": 20, SENT_AGAIN: 1}, "a": {"!vlan && tcp": 20}},
    "stacked_vlan": {"trunk": {"ieee8021ad.id == 7 && vlan.id == 42 && tcp": 20}},
    "data_with_syn": {"b": {f"{SYN} && tcp.len == 300": 2, f"{SYN} && tcp.len == 0": 1}},
    "jumbo": {"a": {"tcp.len > 8000": 10, LOST: 1}},
}
_NOT_OF_KIND = {"loss_without_sack": SACK, "wrap_without_beginning": SYN, "bare_options": TIMESTAMP}


TRIED = list(KINDS) if SOAKING else list(KINDS)[::3]
"""Captures of every kind are in tests/golden/tcp; `make soak` makes every kind afresh."""


@dataclass(frozen=True, slots=True)
class Made:
    """``lacking`` is what tshark does not see of the kind, ``foreign`` how many packets cannot belong to it."""

    captures: dict[str, Path]
    lacking: dict[str, int]
    foreign: int


def judged(name: str, folder: Path) -> Made:
    captures, lacking, foreign = make(KINDS[name], folder), {}, 0
    for place, shown in SHOWN[name].items():
        *found, strange = tshark.counts(captures[place], *shown, _NOT_OF_KIND.get(name, "frame.number == 0"))
        lacking |= {f"{place}: {each}": count for each, count in zip(shown, found, strict=True) if count < shown[each]}
        foreign += strange
    return Made(captures, lacking, foreign)


@pytest.fixture(scope="module")
def kinds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Made]]]:
    """Those that are asked for, made side by side: most of their time is waiting for TCP's timers."""
    folder = tmp_path_factory.mktemp("kinds")
    asked = " ".join(item.name for item in request.session.items)
    with ThreadPoolExecutor(4) as workers:
        yield {name: workers.submit(judged, name, folder / name) for name in KINDS if f"[{name}]" in asked}


def test_every_kind_is_judged() -> None:
    assert SHOWN.keys() == KINDS.keys()


@pytest.mark.parametrize("name", TRIED)
def test_kind_is_there_and_tcptrace_agrees(name: str, kinds: dict[str, Future[Made]]) -> None:
    made = kinds[name].result()
    assert (made.lacking, made.foreign) == ({}, 0)
    for place, capture in made.captures.items():
        ours = _core.flows([capture])[0].to_pylist()
        if f"{name.replace('_', '-')}-{place}" in UNREADABLE:
            assert (len(ours), tcptrace_rows(capture)) == (1, [])
        else:
            assert differences(ours, tcptrace_rows(capture), INSTALLED) == [], capture


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


def test_all_of_it_dies_with_whoever_asked_for_it(tmp_path: Path) -> None:
    program = f"import pathlib, tests.traffic.run as run; run.make(run.KINDS['keep_alive'], pathlib.Path({str(tmp_path)!r}))"
    asking = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    until(lambda: (tmp_path / "b.pcap").exists(), asking)
    assert len(running(tmp_path)) >= 4
    asking.kill()
    asking.wait()
    until(lambda: running(tmp_path) == [], asking)


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        if process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.01)


def running(folder: Path) -> list[str]:
    """Programs that have the folder among their arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


def test_a_kind_that_fails_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=re.escape("KeyError: 'nothing'")):
        make(replace(KINDS["plain"], name="nothing"), tmp_path)
    assert running(tmp_path) == []
