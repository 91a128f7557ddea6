"""The instrument ``sockets``: its plan, and what it makes of files put together by docs/probe/SOCKETS.md and linux/tcp.h."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed.contracts.command import Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.place import BACKGROUND_PORTS, MACHINE, PROBE_PORT, Target
from twinbed.instruments.sockets import SocketsParams, sockets
from twinbed.metrics.sockets import METRICS
from twinbed.model.caution import Kind

SECOND = 1_000_000_000
START = {"monotonic_ns": 5 * SECOND, "realtime_ns": 1_700_000_000 * SECOND}
MEMBERS = (
    "B state, B ca_state, B retransmits, B probes, B backoff, B options, B wscales, B flags, I rto, I ato, I snd_mss, "
    "I rcv_mss, I unacked, I sacked, I lost, I retrans, I fackets, I last_data_sent, I last_ack_sent, "
    "I last_data_recv, I last_ack_recv, I pmtu, I rcv_ssthresh, I rtt, I rttvar, I snd_ssthresh, I snd_cwnd, "
    "I advmss, I reordering, I rcv_rtt, I rcv_space, I total_retrans, Q pacing_rate, Q max_pacing_rate, "
    "Q bytes_acked, Q bytes_received, I segs_out, I segs_in, I notsent_bytes, I min_rtt, I data_segs_in, "
    "I data_segs_out, Q delivery_rate, Q busy_time, Q rwnd_limited, Q sndbuf_limited, I delivered, I delivered_ce, "
    "Q bytes_sent, Q bytes_retrans, I dsack_dups, I reord_seen, I rcv_ooopack, I snd_wnd, I rcv_wnd, I rehash"
)
"""struct tcp_info in the order of linux/tcp.h (6.2), which has no gaps."""
LAYOUT = [tuple(member.split()) for member in MEMBERS.split(",")]
LINUX_3_2, LINUX_4_9, LINUX_5_4 = 104, 168, 232
"""Bytes: up to total_retrans; up to delivery_rate; up to snd_wnd."""


def tcp_info(length: int = 240, **members: int) -> bytes:
    assert not members.keys() - {name for _, name in LAYOUT}
    values = [members.get(name, 0) for _, name in LAYOUT]
    return struct.pack("<" + "".join(kind for kind, _ in LAYOUT), *values)[:length]


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", len(body), kind) + body


def socket(number: int, *, at_start: bool = False, remote_port: int = 80) -> bytes:
    local, remote = (bytes((10, 77, 0, host)) + bytes(12) for host in (1, 2))
    head = struct.pack("<IBBHHH", number, 4, at_start, 40_000 + number, remote_port, 0)
    return record(1, head + local + remote + struct.pack("<Q", 7_000 + number) + b"cubic")


def samples(at_s: float, infos: Mapping[int, bytes]) -> bytes:
    (length,) = {len(info) for info in infos.values()}
    head = struct.pack("<qII", START["monotonic_ns"] + round(at_s * SECOND), len(infos), length)
    return record(2, head + b"".join(struct.pack("<I", number) + info for number, info in infos.items()))


def whole(records: Sequence[bytes], *, opened: int = 1, left_out: int = 0, dropped: int = 0) -> bytes:
    head = {
        "format": "twinbed-sockets 1",
        "start": START,
        "interval_ns": SECOND,
        "opened": {"active": 100, "passive": 50},
    }
    end = {
        "end": START,
        "opened": {"active": 100 + opened, "passive": 50},
        "left_out": left_out,
        "skipped": 0,
        "dropped": dropped,
    }
    return json.dumps(head).encode() + b"\n" + b"".join(records) + record(4, json.dumps(end).encode())


def extract(folder: Path, content: bytes, host: str = "client") -> Extracted:
    (folder / host).mkdir()
    (folder / host / "sockets.tcp").write_bytes(content)
    return sockets.extract(SocketsParams(), folder)


def values(found: Extracted) -> dict[str, float | None]:
    return {value.metric: value.value for value in found.values}


def rows(found: Extracted) -> list[dict[str, Any]]:
    return found.tables["sockets"].to_pylist()


def test_it_is_planned_between_the_workloads_hosts() -> None:
    (command,) = sockets.plan(SocketsParams(), Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"}))
    argv = command.argv
    assert argv[:4] == ("twinbed-probe", "sockets", "--out", "{artifacts}/sockets.tcp")
    options = list(zip(argv[4::2], argv[5::2], strict=True))
    assert ("--interval", "0.01") in options and ("--bytes", str(32 * 2**20)) in options
    assert [value for name, value in options if name == "--peer"] == ["10.77.0.2"]
    without = [value for name, value in options if name == "--without"]
    assert {"22", str(PROBE_PORT), f"{BACKGROUND_PORTS[0]}-{BACKGROUND_PORTS[-1]}"} <= set(without)
    assert command.ready == Ready(says=b"ready")
    (of_server,) = sockets.plan(SocketsParams(), Target("server", {}, clients={"client": "10.77.0.1"}))
    assert "10.77.0.1" in of_server.argv
    assert sockets.plan(SocketsParams(), Target(MACHINE, {"p.client": "client"})) == ()


@pytest.mark.parametrize("settings", [{"interval": 0}, {"limit": "1kB"}])
def test_settings_that_are_none_are_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SocketsParams(**settings)


def test_members_of_a_tcp_info_are_read_in_base_units(tmp_path: Path) -> None:
    info = tcp_info(
        state=1,
        ca_state=3,
        flags=1,
        rto=204_000,
        snd_mss=1448,
        unacked=7,
        sacked=3,
        lost=2,
        retrans=1,
        pmtu=1500,
        rtt=1250,
        rttvar=300,
        snd_ssthresh=20,
        snd_cwnd=15,
        advmss=1460,
        reordering=3,
        rcv_space=14_600,
        total_retrans=9,
        pacing_rate=2_000_000,
        bytes_acked=2**40,
        bytes_received=11,
        segs_out=12,
        segs_in=13,
        notsent_bytes=14,
        min_rtt=900,
        data_segs_in=15,
        data_segs_out=16,
        delivery_rate=1_000_000,
        busy_time=4_000,
        rwnd_limited=1_000,
        sndbuf_limited=500,
        delivered=17,
        delivered_ce=18,
        bytes_sent=2**41,
        bytes_retrans=19,
        dsack_dups=21,
        reord_seen=22,
        rcv_ooopack=23,
        snd_wnd=65_536,
    )
    (row,) = rows(extract(tmp_path, whole([socket(0), samples(0.5, {0: info})])))
    assert row == {
        "host": "client",
        "socket": 0,
        "local_address": "10.77.0.1",
        "local_port": 40_000,
        "remote_address": "10.77.0.2",
        "remote_port": 80,
        "congestion": "cubic",
        "time_s": 1_700_000_000.5,
        "state": "established",
        "ca_state": "recovery",
        "cwnd": 15,
        "ssthresh": 20,
        "srtt_s": pytest.approx(1.25e-3),
        "rttvar_s": pytest.approx(3e-4),
        "rto_s": pytest.approx(0.204),
        "unacked": 7,
        "sacked": 3,
        "lost": 2,
        "retrans": 1,
        "snd_mss_bytes": 1448,
        "advmss_bytes": 1460,
        "pmtu_bytes": 1500,
        "reordering": 3,
        "rcv_space_bytes": 14_600,
        "total_retrans": 9,
        "pacing_rate": 16e6,
        "bytes_acked": 2**40,
        "bytes_received": 11,
        "segs_out": 12,
        "segs_in": 13,
        "notsent_bytes": 14,
        "min_rtt_s": pytest.approx(9e-4),
        "data_segs_in": 15,
        "data_segs_out": 16,
        "delivery_rate": 8e6,
        "busy_s": pytest.approx(4e-3),
        "rwnd_limited_s": pytest.approx(1e-3),
        "sndbuf_limited_s": pytest.approx(5e-4),
        "delivered": 17,
        "delivered_ce": 18,
        "bytes_sent": 2**41,
        "bytes_retrans": 19,
        "dsack_dups": 21,
        "reord_seen": 22,
        "rcv_ooopack": 23,
        "snd_wnd_bytes": 65_536,
        "app_limited": True,
    }


def test_what_the_kernel_has_no_value_of_is_null(tmp_path: Path) -> None:
    """Before the first loss, round trip and delivery, and without a limit to the pace."""
    info = tcp_info(state=1, snd_ssthresh=0x7FFFFFFF, min_rtt=0xFFFFFFFF, pacing_rate=2**64 - 1)
    (row,) = rows(extract(tmp_path, whole([socket(0), samples(0, {0: info})])))
    names = ("ssthresh", "min_rtt_s", "pacing_rate", "srtt_s", "delivery_rate")
    assert [row[name] for name in names] == [None] * 5
    assert (row["lost"], row["busy_s"], row["bytes_sent"], row["app_limited"]) == (0, 0.0, 0, False)


@pytest.mark.parametrize(
    ("length", "first_missing"),
    [(LINUX_3_2, "pacing_rate"), (LINUX_4_9, "busy_s"), (LINUX_5_4, None), (230, "snd_wnd_bytes")],
)
def test_what_an_older_kernel_does_not_give_is_null_and_never_0(tmp_path: Path, length: int, first_missing: str | None) -> None:
    members = {name: 1 for _, name in LAYOUT}
    (row,) = rows(extract(tmp_path, whole([socket(0), samples(0, {0: tcp_info(length, **members)})])))
    limited = row.pop("app_limited")
    names = list(row)
    missing = names[names.index(first_missing) :] if first_missing else []
    assert [name for name, value in row.items() if value is None] == missing
    assert limited is (None if length < LINUX_4_9 else True)


def test_values_of_an_older_kernel_are_missing(tmp_path: Path) -> None:
    infos = [tcp_info(LINUX_4_9, state=1, rtt=1000, snd_cwnd=10, total_retrans=count) for count in (1, 4)]
    found = values(extract(tmp_path, whole([socket(0), *(samples(at, {0: info}) for at, info in enumerate(infos))])))
    assert found["socket_retransmissions"] == 4
    assert found["cwnd_mean"] is None and found["rwnd_limited_share"] is None and found["application_limited_share"] is None


def test_means_are_over_the_time_in_which_sockets_were_busy(tmp_path: Path) -> None:
    """Socket 0 is busy for 2 s until its first sample, then 1 s, then not at all; socket 1 for 1 s in all."""
    zero = [
        tcp_info(state=1, snd_cwnd=10, rtt=1_000, busy_time=2_000_000, bytes_sent=1_000, delivery_rate=1_000_000),
        tcp_info(state=1, snd_cwnd=40, rtt=4_000, busy_time=3_000_000, bytes_sent=2_000, delivery_rate=4_000_000, flags=1),
        tcp_info(state=1, snd_cwnd=99, rtt=9_000, busy_time=3_000_000, bytes_sent=2_000, total_retrans=3),
    ]
    one = tcp_info(
        state=1, snd_cwnd=20, rtt=2_000, busy_time=1_000_000, bytes_sent=6_000, rwnd_limited=800_000, total_retrans=2
    )
    content = whole(
        [
            *(socket(0), samples(2, {0: zero[0]}), socket(1), samples(4, {0: zero[1], 1: one})),
            samples(6, {0: zero[2], 1: one}),
        ],
        opened=2,
    )
    found = values(extract(tmp_path, content))
    assert set(found) == {metric.name for metric in METRICS}
    assert found["cwnd_mean"] == pytest.approx((2 * 10 + 1 * 40 + 1 * 20) / 4)
    assert found["srtt_mean"] == pytest.approx((2 * 1 + 1 * 4 + 1 * 2) / 4 * 1e-3)
    assert found["delivery_rate_mean"] == 8e6, "the second is limited by the application, the others have none"
    assert found["socket_retransmissions"] == 3 + 2
    assert found["rwnd_limited_share"] == pytest.approx(0.8 / 4)
    assert found["sndbuf_limited_share"] == 0
    assert found["network_limited_share"] == pytest.approx(3.2 / 4)
    # Of 4 s between its samples socket 0 was busy for 1, and sent 1000 bytes; socket 1 sent nothing any more.
    assert found["application_limited_share"] == pytest.approx(3 / 4)
    assert (found["connections_sampled"], found["connections_opened"]) == (2, 2)
    assert found["connections_sampled_share"] == 1
    assert found["socket_sample_interval"] == pytest.approx(2)


def test_a_connection_that_nothing_is_sent_on_does_not_count_as_idle(tmp_path: Path) -> None:
    """As iperf3's control connection beside the one with the data."""
    infos = [
        {0: tcp_info(state=1, busy_time=at * 1_000_000, bytes_sent=at * 10**9), 1: tcp_info(state=1, busy_time=0, bytes_sent=0)}
        for at in range(4)
    ]
    content = whole([socket(0), socket(1), *(samples(at, each) for at, each in enumerate(infos))], opened=2)
    assert values(extract(tmp_path, content))["application_limited_share"] == 0


def test_a_connection_that_has_said_its_last_is_not_idle(tmp_path: Path) -> None:
    """Busy for 1 of 2 s; then it waits for the other end to close, and can send no more (FIN_WAIT2)."""
    infos = [
        tcp_info(state=state, busy_time=busy * 1_000_000, bytes_sent=busy) for state, busy in ((1, 0), (1, 1), (5, 1), (5, 1))
    ]
    content = whole([socket(0), *(samples(at, {0: info}) for at, info in enumerate(infos))])
    assert values(extract(tmp_path, content))["application_limited_share"] == 0.5


def test_what_a_connection_counted_before_the_start_is_not_the_runs(tmp_path: Path) -> None:
    infos = [
        tcp_info(state=1, snd_cwnd=cwnd, busy_time=busy, total_retrans=count)
        for cwnd, busy, count in ((50, 9_000_000, 70), (10, 10_000_000, 71))
    ]
    content = whole([socket(0, at_start=True), *(samples(at, {0: info}) for at, info in enumerate(infos))], opened=0)
    found = values(extract(tmp_path, content))
    assert (found["cwnd_mean"], found["socket_retransmissions"]) == (10, 1)
    assert (found["connections_sampled"], found["connections_sampled_share"]) == (0, None)


def test_connections_that_nobody_saw_are_a_caution(tmp_path: Path) -> None:
    """Of 12 that were opened 2 were others'; one of the workload's 10 has a sample."""
    found = extract(tmp_path, whole([socket(0), samples(1, {0: tcp_info(state=1)})], opened=12, left_out=2))
    assert values(found)["connections_sampled_share"] == pytest.approx(0.1)
    (caution,) = found.cautions
    assert (caution.kind, caution.subject) == (Kind.UNSAMPLED, "client")
    assert "1 of 10 connections" in caution.detail


def test_samples_without_room_are_a_caution(tmp_path: Path) -> None:
    found = extract(tmp_path, whole([socket(0), samples(1, {0: tcp_info(state=1)})], dropped=5))
    (caution,) = found.cautions
    assert caution.kind is Kind.UNSAMPLED and "no room for 5 samples" in caution.detail


def test_a_host_without_connections_has_no_values_but_how_many(tmp_path: Path) -> None:
    found = extract(tmp_path, whole([], opened=0))
    known = {name: value for name, value in values(found).items() if value is not None}
    assert known == {"connections_opened": 0, "connections_sampled": 0}
    assert (found.tables["sockets"].num_rows, found.cautions) == (0, [])


CONTENT = whole([socket(0), samples(1, {0: tcp_info(state=1)})])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT[:-5], "it has no end"),
        (b"", "not whole"),
        (CONTENT.replace(b"twinbed-sockets 1", b"twinbed-sockets 9"), "not whole"),
        (whole([samples(1, {3: tcp_info()})]), "sockets that it does not describe, such as 3"),
        (whole([record(9, b"")]), "kind 9"),
        (whole([record(2, struct.pack("<qII", 0, 2, 240))]), "do not fill"),
        (whole([record(1, b"short")]), "cannot be read"),
        (whole([socket(0), samples(0, {0: tcp_info()}), samples(1, {0: tcp_info(104)})]), "104 and 240 bytes"),
    ],
)
def test_what_is_broken_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extract(tmp_path, content)


def test_without_a_file_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sockets.extract(SocketsParams(), tmp_path)
