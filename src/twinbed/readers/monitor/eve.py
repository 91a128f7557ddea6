"""Suricata's eve.json, an object a line: its alerts, and its flow records as connections.

A flow that Suricata calls ``new`` was never established (S0 of a connection log).  The others count as established (SF): their
states and reasons (closed, timeout, forced at the end of a file) do not show how they ended.  Other kinds of events are only
counted.
Source: https://docs.suricata.io/en/suricata-7.0.10/output/eve/eve-json-format.html.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from twinbed.model.json import loads
from twinbed.readers.monitor.rows import IP_PROTOCOLS, Connection

KNOWN = "event_type"


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of an alert."""

    generator: int
    """``gid``: 1 for rules."""
    id: int
    text: str
    category: str
    severity: int | None


@dataclass(frozen=True, slots=True)
class UnreadLine:
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Eve:
    """The content of a file. ``unread`` are lines that are no event; a file that was cut off ends with one."""

    alerts: Mapping[Signature, int]
    connections: Sequence[Connection]
    events: Mapping[str, int] = field(default_factory=dict)
    """Kind -> number."""
    unread: Sequence[UnreadLine] = ()
    began_s: float | None = None
    """The earliest time in it."""


def read(text: str) -> Eve:
    """Read a file without raising: a line that cannot be read is in ``unread``."""
    alerts: Counter[Signature] = Counter()
    connections: list[Connection] = []
    events: Counter[str] = Counter()
    unread: list[UnreadLine] = []
    times: list[float] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            event = loads(line)
            kind = event[KNOWN]
            if not isinstance(kind, str):
                raise TypeError(f"{KNOWN} is {kind!r}")
            if kind == "alert":
                alerts[_signature(event["alert"])] += 1
            elif kind == "flow":
                connections.append(_connection(event))
            events[kind] += 1
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            unread.append(UnreadLine(number, f"no event of Suricata's ({_why(error)}): {line[:60]!r}"))
            continue
        if (moment := _seconds(event.get("timestamp"))) is not None:
            times.append(moment)
    return Eve(alerts, connections, events, unread, min(times, default=None))


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"JSON ends or breaks at column {error.colno}"
    return f"without {error}" if isinstance(error, LookupError) else str(error)


def _signature(alert: Mapping[str, object]) -> Signature:
    severity = alert.get("severity")
    return Signature(
        _count(alert["gid"]),
        _count(alert["signature_id"]),
        str(alert.get("signature", "")),
        str(alert.get("category", "")),
        None if severity is None else _count(severity),
    )


def _connection(event: Mapping[str, object]) -> Connection:
    flow = event["flow"]
    if not isinstance(flow, dict):
        raise TypeError("flow is no object")
    protocol = str(event["proto"]).lower()
    ip_protocol = IP_PROTOCOLS.get(protocol)
    if ip_protocol is None:
        ip_protocol = int(protocol) if protocol.isascii() and protocol.isdigit() else -1
    return {
        "start_s": _seconds(flow.get("start")),
        "protocol": "icmp" if protocol == "ipv6-icmp" else protocol,
        "ip_protocol": ip_protocol,
        "originator_address": str(event["src_ip"]),
        "originator_port": _count(event.get("src_port", event.get("icmp_type", 0))),
        "responder_address": str(event["dest_ip"]),
        "responder_port": _count(event.get("dest_port", event.get("icmp_code", 0))),
        "state": "S0" if flow.get("state") == "new" else "SF",
        "packets": _count(flow["pkts_toserver"]) + _count(flow["pkts_toclient"]),
    }


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TypeError(f"{value!r:.40} is no count")
    return value


def _seconds(value: object) -> float | None:
    try:
        return datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except (ValueError, OverflowError):
        return None
