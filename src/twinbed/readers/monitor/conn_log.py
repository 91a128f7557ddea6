"""Zeek's conn.log, an object a line (``LogAscii::use_json=T``), as connections. Zeek leaves out what is unset.

Source: https://docs.zeek.org/en/lts/logs/conn.html.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.json import loads
from twinbed.readers.monitor.rows import IP_PROTOCOLS, Connection

_V6 = ":"


def read(text: str) -> Sequence[Connection]:
    """Raises ValueError with the line that is no connection, such as the last one of a file that was cut off."""
    rows: list[Connection] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_row(loads(line)))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"conn.log, line {number}: no connection of Zeek's ({error}): {line[:60]!r}") from error
    return rows


def _row(fields: dict[str, object]) -> Connection:
    protocol, originator = str(fields["proto"]), str(fields["id.orig_h"])
    is_v6_icmp = protocol == "icmp" and _V6 in originator
    numbers = {name: fields[name] for name in ("id.orig_p", "id.resp_p", "orig_pkts", "resp_pkts")}
    whole = {name: number for name, number in numbers.items() if isinstance(number, int) and not isinstance(number, bool)}
    if len(whole) < len(numbers):
        raise ValueError("a port or a number of packets is none")
    started = fields["ts"]
    return {
        "start_s": float(started) if isinstance(started, int | float) else None,
        "protocol": protocol,
        "ip_protocol": IP_PROTOCOLS["ipv6-icmp"] if is_v6_icmp else IP_PROTOCOLS.get(protocol, -1),
        "originator_address": originator,
        "originator_port": whole["id.orig_p"],
        "responder_address": str(fields["id.resp_h"]),
        "responder_port": whole["id.resp_p"],
        "state": str(fields["conn_state"]),
        "packets": whole["orig_pkts"] + whole["resp_pkts"],
    }
