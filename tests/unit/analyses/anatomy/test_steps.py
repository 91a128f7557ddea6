"""Steps from stations: what is planted comes out, and the steps add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from twinbed.analyses.anatomy import steps
from twinbed.analyses.anatomy.steps import STEPS, Seen

US = 1000
BASE_NS = 1_795_412_763_950_093_638
"""A time of today: as a float it would be 256 ns off."""
STATIONS = {
    "syn_ns": 0,
    "syn_ack_ns": 130,
    "request_ns": 200,
    "request_end_ns": 201,
    "response_ns": 900,
    "response_end_ns": 1900,
    "client_fin_ns": 1950,
    "server_fin_ns": 1910,
    "next_ns": None,
}
"""Microseconds at the client's link."""
AT_SERVER = {
    "syn_ns": 10,
    "syn_ack_ns": 110,
    "request_ns": 215,
    "request_end_ns": 221,
    "response_ns": 870,
    "response_end_ns": 1860,
    "client_fin_ns": 1960,
    "server_fin_ns": 1900,
    "next_ns": None,
}
EXPECTED = {
    "syn": 10,
    "accept": 100,
    "syn_back": 20,
    "ask": 70,
    "request": 21,
    "server": 649,
    "first_byte": 30,
    "transfer": 1000,
    "finish": 50,
}
"""Seen by one clock; microseconds."""
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("client_address", "server_address", "pattern")),
        *((name, pa.int64()) for name in ("client_port", "server_port", "request_sequence")),
        ("complete", pa.bool_()),
        *((name, pa.int64()) for name in (*STATIONS, "reset_ns")),
    ]
)


def row(stations: dict[str, int | None], sequence: int = 1, shift_ns: int = 0, **more: Any) -> dict[str, Any]:
    times = {name: None if us is None else BASE_NS + us * US + shift_ns for name, us in stations.items()}
    names = {"client_address": "10.0.0.1", "client_port": 4000, "server_address": "10.0.0.2", "server_port": 80}
    return {**names, "request_sequence": sequence, "complete": True, "pattern": "S s A P p", **times, **more}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SCHEMA)


def microseconds(found: steps.Requests) -> dict[str, float]:
    return {name: float(seconds[0]) * 1e6 for name, seconds in found.durations.items()}


def test_each_step_is_the_time_between_its_stations() -> None:
    found = steps.requests(table(row(STATIONS)), table(row(AT_SERVER)), Seen.BOTH)
    assert microseconds(found) == pytest.approx(EXPECTED, abs=1e-6)
    assert found.total[0] == pytest.approx(1950e-6, abs=1e-12)
    assert (int(found.begins_ns[0]), int(found.ends_ns[0])) == (BASE_NS, BASE_NS + 1950 * US)


@pytest.mark.parametrize("hours", [-3, 0, 5])
def test_clocks_that_disagree_change_no_step_of_two_clocks(hours: int) -> None:
    found = steps.requests(table(row(STATIONS)), table(row(AT_SERVER, shift_ns=hours * 3600 * 10**9)), Seen.APART)
    there_and_back = {"handshake": 30.0, "accept": 100.0, "ask": 70.0, "path": 51.0, "server": 649.0}
    assert microseconds(found) == pytest.approx({**there_and_back, "transfer": 1000.0, "finish": 50.0}, abs=1e-6)


def test_of_the_clients_link_alone_what_lies_behind_it_is_one_step() -> None:
    found = steps.requests(table(row(STATIONS)), None, Seen.CLIENT)
    seen = {"handshake": 130.0, "ask": 70.0, "answer": 700.0, "transfer": 1000.0, "finish": 50.0}
    assert microseconds(found) == pytest.approx(seen, abs=1e-6)


@pytest.mark.parametrize("seen", Seen)
def test_steps_add_up_to_the_request(seen: Seen) -> None:
    """Whatever the stations, whichever captures there are."""
    noise = np.random.default_rng(3)
    rows = []
    for sequence in range(200):
        ours, theirs = (np.sort(noise.integers(0, 10**6, 9)).tolist() for _ in range(2))
        kept_alive = sequence % 3 == 0
        stations = dict(zip(STATIONS, [*ours[:6], ours[7], ours[6], ours[8]], strict=True))
        at_server = dict(zip(STATIONS, [*theirs[:6], theirs[7], theirs[6], None], strict=True))
        if kept_alive:
            stations |= {"syn_ns": None, "syn_ack_ns": None}
        rows.append((row(stations, sequence), row(at_server, sequence)))
    found = steps.requests(table(*(one for one, _ in rows)), table(*(two for _, two in reversed(rows))), seen)
    assert len(found) + found.disordered == 200
    assert set(found.durations) == {step.name for step in STEPS[seen]}
    assert found.total == pytest.approx((found.ends_ns - found.begins_ns) * 1e-9, abs=1e-9)


def test_a_request_on_an_open_connection_has_no_handshake() -> None:
    later = {**STATIONS, "syn_ns": None, "syn_ack_ns": None, "client_fin_ns": None, "server_fin_ns": None, "next_ns": 2500}
    found = steps.requests(table(row(later)), table(row({**AT_SERVER, "syn_ns": None, "syn_ack_ns": None})), Seen.BOTH)
    handshake = {"syn": 0.0, "accept": 0.0, "syn_back": 0.0, "ask": 0.0}
    assert microseconds(found) == pytest.approx({**EXPECTED, **handshake, "finish": 600.0}, abs=1e-6)


def test_what_lacks_a_step_is_counted_and_left_out() -> None:
    client = table(
        row(STATIONS, 1),
        row(STATIONS, 2, complete=False),
        row({**STATIONS, "response_ns": None}, 3),
        row(STATIONS, 4),
        row({**STATIONS, "response_ns": 100}, 5),
    )
    server = table(row(AT_SERVER, 1), row(AT_SERVER, 2), row(AT_SERVER, 3), row(AT_SERVER, 5))
    found = steps.requests(client, server, Seen.BOTH)
    # 2 has no answer, 3 no first byte, 4 is not in the other capture; 5 was answered before it was asked.
    assert (len(found), found.incomplete, found.disordered) == (1, 3, 1)
    assert len(steps.requests(client, table(), Seen.BOTH)) == 0


def test_what_lies_between_requests_of_a_closed_loop() -> None:
    """Two users: each request takes 3 ms, and each user waits 2 ms before the next."""
    begins = [(5 * at + offset) * 10**6 for at in range(50) for offset in (0, 1)]
    loop = steps.Requests({}, np.array(begins), np.array(begins) + 3 * 10**6, [""] * 100, 0, 0, np.arange(100))
    assert steps.users(loop.begins_ns, loop.ends_ns) == 2
    # The ends of the run hold no wait: a hundredth of it.
    assert steps.between_s(loop) == pytest.approx(2e-3, rel=0.05)
    back_to_back = steps.Requests({}, np.arange(10) * 10**6, (np.arange(10) + 1) * 10**6, [""] * 10, 0, 0, np.arange(10))
    assert steps.users(back_to_back.begins_ns, back_to_back.ends_ns) == 1
    assert steps.between_s(back_to_back) == pytest.approx(0, abs=1e-12)
    assert steps.between_s(steps.Requests({}, np.zeros(1, np.int64), np.ones(1, np.int64), [""], 0, 0, np.arange(1))) is None
