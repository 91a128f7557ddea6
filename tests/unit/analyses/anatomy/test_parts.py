"""Parts of steps: joined by a connection's bytes whatever else happens, adding up, and null where a station lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from twinbed.analyses.anatomy import parts, stations, steps
from twinbed.analyses.anatomy.parts import PARTS, Group, Split
from twinbed.analyses.anatomy.stations import Host
from twinbed.analyses.anatomy.steps import Requests, Seen, Times

FIRST_NS = 1_700_000_000_000_000_000
REQUEST, HEAD, BODY = 84, 248, 500
FACTS = ("station", "connection", "time_ns", "end_ns", "sequence", "bytes", "flags", "thread", "process")
SYN, ACK, FIN = 2, 16, 1
LINKS_US = {
    "client": {
        "syn": 10,
        "syn_ack": 40,
        "request": 90,
        "request_end": 90,
        "response": 190,
        "response_end": 200,
        "client_fin": 260,
    },
    "server": {
        "syn": 12,
        "syn_ack": 38,
        "request": 92,
        "request_end": 92,
        "response": 188,
        "response_end": 198,
        "client_fin": 262,
    },
}
"""When links captured a request's packets."""
PARTS_US = {
    "accept": (4, 14, 3, 5),
    "ask": (5, 6, 14, 12, 5, 4, 4),
    "server": (6, 10, 20, 7, 30, 12, 4, 7),
    "finish": (3, 4, 8, 9, 16, 11, 5, 4),
}
"""What a request's steps are made of, in the order of their parts: they sum up to the links' times."""


def at(step: str, begins_us: float) -> dict[str, float]:
    """Part -> when it ends, but for the last, which ends at the link."""
    names = [part.name for part in PARTS[Seen.BOTH][step]]
    return dict(zip(names, begins_us + np.cumsum(PARTS_US[step]), strict=True))


def request(connection: int, begins_us: float, sequences: tuple[int, int], thread: int = 5) -> dict[str, list[dict[str, Any]]]:
    """Host -> its records of one request: written out by hand from the tables above, in the order of STATIONS.md."""
    asked, answered = sequences

    def row(
        station: str, us: float, sequence: int, size: int, flags: int = ACK, ends_us: float | None = None
    ) -> dict[str, Any]:
        ends = None if ends_us is None else FIRST_NS + round(1000 * (begins_us + ends_us))
        values = (connection, FIRST_NS + round(1000 * (begins_us + us)), ends, sequence % 2**32, size, flags, thread, 1)
        return dict(zip(FACTS, (station, *values), strict=True))

    def waits(us: float) -> dict[str, Any]:
        return row("wait", us - 3, 0, 1, ends_us=us) | {"connection": None}

    client, server = LINKS_US["client"], LINKS_US["server"]
    accept, ask = at("accept", server["syn"]), at("ask", client["syn_ack"])
    serve, finish = at("server", server["request_end"]), at("finish", client["response_end"])
    return {
        "client": [
            row("qdisc", 3, asked - 1, 0, SYN),
            row("connect", 2, asked, -115, ends_us=4),
            row("softirq", ask["softirq"], answered - 1, 0, SYN | ACK),
            row("socket", ask["socket"], answered - 1, 0, SYN | ACK),
            waits(ask["wake"]),
            row("write", ask["program"], asked + REQUEST, REQUEST, ends_us=ask["program"] + 30),
            row("qdisc", ask["send"], asked, REQUEST),
            row("driver", ask["qdisc"], asked, REQUEST),
            row("softirq", finish["softirq"], answered, HEAD + BODY),
            row("socket", finish["socket"], answered, HEAD + BODY),
            waits(finish["wake"]),
            row("read", finish["wake"] + 1, answered + HEAD + BODY, HEAD + BODY, ends_us=finish["read"]),
            row("close", finish["program"], asked + REQUEST, 0),
            row("qdisc", finish["send"], asked + REQUEST, 0, FIN | ACK),
            row("driver", finish["qdisc"], asked + REQUEST, 0, FIN | ACK),
        ],
        "server": [
            row("softirq", accept["softirq"], asked - 1, 0, SYN),
            row("qdisc", accept["answer"], answered - 1, 0, SYN | ACK),
            row("driver", accept["qdisc"], answered - 1, 0, SYN | ACK),
            row("softirq", serve["softirq"], asked, REQUEST),
            row("socket", serve["socket"], asked, REQUEST),
            waits(serve["wake"]),
            row("read", serve["wake"] + 1, asked + REQUEST, REQUEST, ends_us=serve["read"]),
            row("write", serve["program"], answered + HEAD + BODY, HEAD + BODY, ends_us=serve["program"] + 40),
            row("qdisc", serve["send"], answered, HEAD + BODY),
            row("driver", serve["qdisc"], answered, HEAD + BODY),
        ],
    }


def exchange(port: int, begins_us: float, sequences: tuple[int, int], link: str) -> dict[str, Any]:
    asked, answered = sequences
    times = {f"{name}_ns": FIRST_NS + round(1000 * (begins_us + us)) for name, us in LINKS_US[link].items()}
    return {
        "client_address": "a",
        "client_port": port,
        "server_address": "b",
        "server_port": 80,
        "request_sequence": asked % 2**32,
        "request_end_sequence": (asked + REQUEST) % 2**32,
        "response_sequence": answered % 2**32,
        "response_end_sequence": (answered + HEAD + BODY) % 2**32,
        **times,
        "complete": True,
        "pattern": "S s A P p",
        "server_fin_ns": None,
        "next_ns": None,
    }


class Scene:
    """Requests on connections of their own, each with when it begins and its first sequence numbers."""

    def __init__(self, begins_us: Sequence[float], sequences: Sequence[tuple[int, int]], threads: Sequence[int]) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {"client": [], "server": []}
        self.exchanges: dict[str, list[dict[str, Any]]] = {"client": [], "server": []}
        for number, (begin, pair, thread) in enumerate(zip(begins_us, sequences, threads, strict=True)):
            for host, found in request(number, begin, pair, thread).items():
                self.rows[host] += found
                self.exchanges[host].append(exchange(1000 + number, begin, pair, host))
        self.count = len(begins_us)

    def split(self, *, own_clock: bool = False, seen: Seen = Seen.BOTH) -> tuple[Requests, Split]:
        schema = pa.schema([("station", pa.string()), *((name, pa.int64()) for name in FACTS[1:])])
        hosts = {}
        for host, rows in self.rows.items():
            ends = [("a", 1000 + number, "b", 80) for number in range(self.count)]
            turned = ends if host == "client" else [(*end[2:], *end[:2]) for end in ends]
            names = ("own_address", "own_port", "other_address", "other_port")
            numbered = [{"connection": at, **dict(zip(names, end, strict=True))} for at, end in enumerate(turned)]
            connections = pa.Table.from_pylist(numbered)
            hosts[host] = Host(pa.Table.from_pylist(rows, schema), connections, own_clock=own_clock)
        tables = {host: _table(rows) for host, rows in self.exchanges.items()}
        found = steps.requests(tables["client"], tables["server"], seen)
        return found, parts.split(tables["client"], tables["server"], found, hosts, seen)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    table = pa.Table.from_pylist(rows)
    for name in ("next_ns", "server_fin_ns"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int64()))
    return table


def expected() -> Iterator[tuple[str, float]]:
    for step, of_step in PARTS[Seen.BOTH].items():
        for part, us in zip(of_step, PARTS_US[step], strict=True):
            yield parts.name(step, part), us * 1e-6


def test_the_tables_of_this_test_agree() -> None:
    ends = {"accept": ("server", "syn", "syn_ack"), "ask": ("client", "syn_ack", "request")}
    ends |= {"server": ("server", "request_end", "response"), "finish": ("client", "response_end", "client_fin")}
    for step, (link, begin, end) in ends.items():
        assert sum(PARTS_US[step]) == LINKS_US[link][end] - LINKS_US[link][begin]


def test_requests_at_once_are_told_apart_by_their_bytes() -> None:
    """Two connections' packets come within microseconds of each other, with equal sequence numbers; of two more the
    numbers wrap within the request, or the answer."""
    sequences = [(5000, 9000), (5000, 9000), (2**32 - 40, 7), (100, 2**32 - 3)]
    found, each = Scene([0.0, 1.5, 1000.0, 5000.0], sequences, [5, 6, 5, 5]).split()
    assert len(found) == 4
    for name, seconds in expected():
        assert each.seconds[name] == pytest.approx(seconds, abs=1e-12), name
    assert each.incomplete == each.disordered == each.unbounded == 0
    assert set(each.bounds.values()) == {0.0}
    total = sum(each.whole[group] for group in Group)
    assert total == pytest.approx(found.total, abs=1e-12)
    assert each.whole[Group.PROGRAM] == pytest.approx(1e-6 * (12 + 7 + 30 + 9 + 16), abs=1e-12)
    assert each.whole[Group.WAITING] == pytest.approx(1e-6 * (14 + 20 + 8), abs=1e-12)


LACKING = [
    ("server", "socket", ("server",)),
    ("server", "read", ("accept", "server")[1:]),
    ("server", "write", ("server",)),
    ("client", "close", ("finish",)),
    ("client", "write", ("ask",)),
]


@pytest.mark.parametrize(("host", "station", "touched"), LACKING)
def test_a_station_that_lacks_leaves_its_step_whole(host: str, station: str, touched: Sequence[str]) -> None:
    scene = Scene([0.0, 3000.0], [(5000, 9000), (7, 11)], [5, 5])
    scene.rows[host] = [
        row for row in scene.rows[host] if not (row["station"] == station and row["connection"] == 0 and row["bytes"] >= 0)
    ]
    _, each = scene.split()
    assert each.incomplete == 1
    for name, seconds in expected():
        known = [not np.isnan(value) for value in each.seconds[name]]
        assert known[1] and each.seconds[name][1] == pytest.approx(seconds, abs=1e-12)
        if name.split(".")[0] in touched:
            assert not known[0], name
    assert np.isnan(each.whole[Group.PROGRAM][0]) and not np.isnan(each.whole[Group.PROGRAM][1])


def test_a_thread_that_waits_in_the_read_itself_or_is_busy() -> None:
    scene = Scene([0.0, 3000.0], [(5000, 9000), (7, 11)], [5, 5])
    scene.rows["server"] = [row for row in scene.rows["server"] if row["station"] != "wait"]
    blocked, _ = (row for row in scene.rows["server"] if row["station"] == "read")
    blocked["time_ns"] -= 100_000
    _, each = scene.split()
    # In the read: until it returns. Busy: until the read is entered, a microsecond after what would have been the wake-up.
    assert each.seconds["server.wake"] == pytest.approx([27e-6, 21e-6], abs=1e-12)
    assert each.seconds["server.read"] == pytest.approx([0.0, 6e-6], abs=1e-12)


def test_stations_out_of_order_are_counted_and_not_used() -> None:
    scene = Scene([0.0, 3000.0], [(5000, 9000), (7, 11)], [5, 5])
    (row,) = (row for row in scene.rows["server"] if row["station"] == "driver" and row["connection"] == 0 and row["bytes"])
    row["time_ns"] -= 50_000
    _, each = scene.split()
    assert (each.incomplete, each.disordered) == (1, 1)
    assert np.isnan(each.seconds["server.program"][0])


def test_a_packet_sent_again_counts_where_it_was_first() -> None:
    scene = Scene([0.0], [(5000, 9000)], [5])
    again = [row | {"time_ns": row["time_ns"] + 5_000_000} for row in scene.rows["client"] if row["bytes"] == REQUEST]
    scene.rows["client"] += [row for row in again if row["station"] in ("qdisc", "driver")]
    _, each = scene.split()
    assert each.seconds["ask.qdisc"] == pytest.approx(4e-6, abs=1e-12)


@pytest.mark.parametrize("drift", [0.0, 80e-6])
def test_a_guest_s_clock_is_bounded_by_its_packets(drift: float) -> None:
    begins = [1000.0 * number for number in range(40)]
    scene = Scene(begins, [(5000 + 9 * number, 9000) for number in range(40)], [5] * 40)
    for rows in scene.rows.values():
        for row in rows:
            for name in ("time_ns", "end_ns"):
                if row[name] is not None:
                    past = row[name] - FIRST_NS
                    row[name] += 3_600_000_000_123 + round(drift * past)
    _, each = scene.split(own_clock=True)
    assert each.unbounded == each.incomplete == 0
    # The server's least ways are 4 and 5 µs (accept), the client's 3 (finish) and 4: half their sum is what is not known.
    assert each.bounds["server.softirq"] == pytest.approx(4.5e-6, abs=3e-9)
    assert each.bounds["finish.driver"] == pytest.approx(3.5e-6, abs=3e-9)
    crossing = {parts.name(step, part) for step, of_step in PARTS[Seen.BOTH].items() for part in of_step if part.crosses}
    for name, seconds in expected():
        slack = each.bounds[name] + 5e-9
        assert (slack > 1e-6) == (name in crossing)
        assert np.abs(each.seconds[name] - seconds).max() <= slack, name
    for step, whole in PARTS_US.items():
        total = sum(each.seconds[parts.name(step, part)] for part in PARTS[Seen.BOTH][step])
        assert total == pytest.approx(1e-6 * sum(whole), abs=1e-12)


def test_a_clock_that_packets_do_not_bound_gives_no_parts() -> None:
    scene = Scene([0.0], [(5000, 9000)], [5])
    scene.rows["server"] = [row for row in scene.rows["server"] if row["station"] != "driver"]
    _, each = scene.split(own_clock=True)
    assert each.unbounded == 1
    assert np.isnan(each.seconds["server.socket"]).all() and not np.isnan(each.seconds["ask.socket"]).any()


def test_hosts_that_capture_for_themselves_need_no_driver() -> None:
    """Their captures see a packet before the driver does, by the host's own clock."""
    scene = Scene([0.0], [(5000, 9000)], [5])
    for rows in scene.rows.values():
        rows[:] = [row for row in rows if row["station"] != "driver"]
    found, each = scene.split(own_clock=True, seen=Seen.APART)
    assert each.incomplete == each.unbounded == 0
    assert each.seconds["server.qdisc"] == pytest.approx((4 + 7) * 1e-6, abs=1e-12)
    assert sum(each.whole[group] for group in Group) == pytest.approx(found.total, abs=1e-12)


def test_bytes_are_found_as_an_obvious_search_finds_them() -> None:
    noise = np.random.default_rng(4)
    count = 300
    columns = {
        "connection": noise.integers(0, 5, count),
        "time_ns": np.sort(noise.integers(0, 10**6, count)),
        "end_ns": np.zeros(count, np.int64),
        "sequence": noise.integers(0, 2000, count) * 7,
        "bytes": noise.integers(0, 15, count),
        "flags": np.zeros(count, np.int64),
        "thread": noise.integers(0, 4, count),
    }
    rows = stations._Rows.of({name: np.asarray(values, np.int64) for name, values in columns.items()})
    wanted, byte = noise.integers(-1, 6, 500), noise.integers(0, 14_000, 500)
    found = rows.holding(wanted, byte)
    for connection, position, place in zip(wanted.tolist(), byte.tolist(), found.tolist(), strict=True):
        starts = [
            (-int(rows.sequence[row]), row)
            for row in range(count)
            if rows.connection[row] == connection and rows.bytes[row] and rows.sequence[row] <= position
        ]
        nearest = min(starts, default=None)
        holds = nearest is not None and position < -nearest[0] + rows.bytes[nearest[1]]
        assert place == (nearest[1] if holds and nearest else -1)
    times = Times(noise.integers(0, 10**6, 500), np.ones(500, bool))
    after = rows.next_of(rows.thread, wanted, times, rows.time_ns)
    before = rows.last_of(rows.thread, wanted, times, rows.time_ns)
    pairs = zip(wanted.tolist(), times.ns.tolist(), after.tolist(), before.tolist(), strict=True)
    for owner, moment, next_row, last_row in pairs:
        own = [row for row in range(count) if rows.thread[row] == owner]
        assert next_row == min((row for row in own if rows.time_ns[row] >= moment), default=-1)
        assert last_row == max((row for row in own if rows.time_ns[row] < moment), default=-1)


def test_next_request_on_the_connection_ends_the_step() -> None:
    """A connection that is kept: the step ends where the next request is written."""
    scene = Scene([0.0], [(5000, 9000)], [5])
    begin = LINKS_US["client"]["client_fin"]
    (close,) = (row for row in scene.rows["client"] if row["station"] == "close")
    close |= {"station": "write", "bytes": REQUEST, "sequence": 5000 + 2 * REQUEST, "end_ns": close["time_ns"] + 1}
    for row in scene.rows["client"]:
        if row["flags"] & FIN:
            row |= {"flags": ACK, "bytes": REQUEST}
    (first,) = scene.exchanges["client"]
    first["next_ns"], first["client_fin_ns"] = first["client_fin_ns"], None
    second = exchange(1000, begin - LINKS_US["client"]["request"], (5000 + REQUEST, 9000 + HEAD + BODY), "client")
    scene.exchanges["client"].append(second | {"syn_ns": None, "syn_ack_ns": None})
    _, each = scene.split()
    for part, us in zip(PARTS[Seen.BOTH]["finish"], PARTS_US["finish"], strict=True):
        assert each.seconds[parts.name("finish", part)][0] == pytest.approx(us * 1e-6, abs=1e-12), part.name
