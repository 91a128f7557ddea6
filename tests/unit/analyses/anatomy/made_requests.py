"""Requests made by hand as the tables ``steps`` and ``step_packets`` have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinbed.analyses.anatomy.sampled import Request, joined
from twinbed.analyses.anatomy.steps import Seen

EXCHANGE = {"client_address": "a", "client_port": 1, "server_address": "b", "server_port": 80, "request_sequence": 7}
WAY_NS = 1000
"""From link to link, unless a packet is given another."""
FIRST_NS = 1_700_000_000_000_000_000
LETTERS = "SsAPapAfFa"
TIMES_US = (0, 10, 20, 40, 50, 100, 110, 120, 150, 160)
"""When the sender's link sees each."""


def packet(
    letter: str, us: float, size: int = 0, position: int = 0, acknowledges: int | None = 0, wire: int = 1
) -> dict[str, Any]:
    """``us``: when its sender's link sees it, in microseconds from the request's first packet on."""
    return {
        "from": "client" if letter.isupper() else "server",
        "kind": letter,
        "position": position,
        "payload_bytes": size,
        "wire_packets": wire,
        "acknowledges": acknowledges,
        "time_ns": round(us * 1000),
    }


def twelve() -> list[dict[str, Any]]:
    """A request as the quickstart has them, of ten packets and two acknowledgments more."""
    return [
        packet("S", 0, acknowledges=None),
        packet("s", 10),
        packet("A", 20),
        packet("P", 40, 84),
        packet("a", 50, acknowledges=84),
        packet("p", 100, 248, acknowledges=84),
        packet("A", 110, position=84, acknowledges=248),
        packet("p", 120, 500, 248, 84),
        packet("A", 130, position=84, acknowledges=748),
        packet("f", 140, position=748, acknowledges=84),
        packet("F", 170, position=84, acknowledges=749),
        packet("a", 190, position=749, acknowledges=85),
    ]


STATIONS_US = {
    "syn": 0,
    "syn_ack": 10,
    "request": 40,
    "request_end": 40,
    "response": 100,
    "response_end": 120,
    "client_fin": 170,
}
SENT_BY_SERVER = ("syn_ack", "response", "response_end", "server_fin")


def at_links(
    packets: Sequence[Mapping[str, Any]], *, way_ns: int = WAY_NS, ahead_ns: int = 0, lost: Sequence[int] = ()
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of both links; ``ahead_ns``: of the server's clock; ``lost``: places of packets that do not arrive."""
    client, server = [], []
    for at, each in enumerate(packets):
        sent, received = (client, server) if each["from"] == "client" else (server, client)
        sent.append({**each, "time_ns": FIRST_NS + each["time_ns"]})
        if at not in lost:
            received.append({**each, "time_ns": FIRST_NS + each["time_ns"] + way_ns})
    server = [{**each, "time_ns": each["time_ns"] + ahead_ns} for each in server]
    both = tuple(sorted(rows, key=lambda row: row["time_ns"]) for rows in (client, server))
    return both[0], both[1]


def step_rows(
    stations_us: Mapping[str, float] = STATIONS_US,
    *,
    way_ns: int = WAY_NS,
    ahead_ns: int = 0,
    pattern: str = "S s A P a p+ A f F a",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row of ``steps`` at each link."""
    client: dict[str, Any] = {"pattern": pattern, "next_ns": None, "server_fin_ns": None, "reset_ns": None, "silence_ns": 1}
    server: dict[str, Any] = dict(client)
    for name, us in stations_us.items():
        sent = FIRST_NS + round(us * 1000)
        of_server = name in SENT_BY_SERVER
        client[f"{name}_ns"] = sent + way_ns * of_server
        server[f"{name}_ns"] = sent + way_ns * (not of_server) + ahead_ns
    return client, server


def request(
    packets: Sequence[Mapping[str, Any]] | None = None,
    seen: Seen = Seen.BOTH,
    *,
    way_ns: int = WAY_NS,
    ahead_ns: int = 0,
    lost: Sequence[int] = (),
    stations_us: Mapping[str, float] = STATIONS_US,
) -> Request:
    links = at_links(twelve() if packets is None else packets, way_ns=way_ns, ahead_ns=ahead_ns, lost=lost)
    return joined(seen, *links, *step_rows(stations_us, way_ns=way_ns, ahead_ns=ahead_ns))


def long(payload_packets: int = 880, *, wire: int = 1) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A request whose answer has so many packets, an acknowledgment after every tenth; and its stations."""
    packets = twelve()[:6]
    position, us = 248, 100.0
    for number in range(payload_packets):
        us += 10
        packets.append(packet("p", us, 1448 * wire, position, 84, wire))
        position += 1448 * wire
        if number % 10 == 9:
            packets.append(packet("A", us + 3, position=84, acknowledges=position))
    packets.append(packet("e", us + 10, 100, position, 84))
    packets.append(packet("F", us + 40, position=84, acknowledges=position + 101))
    packets.append(packet("a", us + 60, position=position + 101, acknowledges=85))
    return packets, {**STATIONS_US, "response_end": us + 10, "client_fin": us + 40}
