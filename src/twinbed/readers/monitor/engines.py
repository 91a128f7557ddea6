"""The engines that read a capture once it is kept: how each is run, with checksums checked and ignored, and its output.

Zeek's conn.log is an object a line (``LogAscii::use_json=T``), without fields that are unset.
Source: https://docs.zeek.org/en/lts/logs/conn.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.command import Command
from twinbed.model.json import loads
from twinbed.readers.monitor import eve
from twinbed.readers.monitor.rows import CHECKED, IGNORED, IP_PROTOCOLS, Connection

_V6 = ":"


def read_conn_log(text: str) -> Sequence[Connection]:
    """Read Zeek's conn.log. Raises ValueError with a line that is no connection, such as the last of a cut file."""
    rows: list[Connection] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_conn_log_row(loads(line)))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"conn.log, line {number}: no connection of Zeek's ({error}): {line[:60]!r}") from error
    return rows


def _conn_log_row(fields: dict[str, object]) -> Connection:
    protocol, originator = str(fields["proto"]), str(fields["id.orig_h"])
    is_v6_icmp = protocol == "icmp" and _V6 in originator
    numbers = {name: fields[name] for name in ("id.orig_p", "id.resp_p", "orig_pkts", "resp_pkts")}
    whole = {name: number for name, number in numbers.items() if isinstance(number, int) and not isinstance(number, bool)}
    if len(whole) < len(numbers):
        raise ValueError("a port or a number of packets is no whole number")
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


SETTINGS = Path(__file__).with_name("suricata.yaml")
RULES = Path(__file__).with_name("suricata.rules")
"""Suricata's rules, where a study names none."""
WRITES = {"suricata": "eve.json", "zeek": "conn.log"}
VERSION = {"suricata": "-V", "zeek": "--version"}
INSTALL = {
    "suricata": "Debian 12 has it in backports: add the suite bookworm-backports to apt's sources, then"
    " apt-get install --no-install-recommends -t bookworm-backports suricata",
    "zeek": "Debian 12 has no package; https://zeek.org/get-zeek has one, which installs to /opt/zeek/bin (setting: program)",
}


@dataclass(frozen=True, slots=True)
class Written:
    """An engine's output for one link."""

    checksums: str
    connections: Sequence[Connection]
    alerts: Mapping[eve.Signature, int] | None
    """None for an engine without alerts."""


def commands(
    engine: str, program: str, rules: str | None, on: str, link: str, capture: str, limit_s: float
) -> Iterator[Command]:
    """Yield the commands that read one capture twice, each into a folder of its own."""
    for checksums in (IGNORED, CHECKED):
        folder = f"{{artifacts}}/{engine}-{checksums}-{link}"
        yield Command(on, ("mkdir", "-p", folder), f"mkdir-{engine}-{checksums}-{link}.out")
        output = f"{engine}-{checksums}-{link}.out"
        yield Command(on, _argv(engine, program, rules, f"{{artifacts}}/{capture}", folder, checksums), output, limit_s=limit_s)


def _argv(engine: str, program: str, rules: str | None, capture: str, folder: str, checksums: str) -> tuple[str, ...]:
    if engine == "suricata":
        check = "none" if checksums == IGNORED else "all"
        how = ("-c", str(SETTINGS), "-S", rules or str(RULES), "--runmode", "single", "-k", check)
        return (program, *how, "-l", folder, "-r", capture)
    # Zeek writes where it is started.
    ignoring = ("-C",) if checksums == IGNORED else ()
    return ("env", "-C", folder, program, *ignoring, "-r", capture, "LogAscii::use_json=T")


def written(engine: str, folder: Path, link: str) -> Iterator[Written]:
    """Yield an engine's outputs. Raises FileNotFoundError without one, ValueError for a file that ends within an event.

    The counts of such a file would be too small.
    """
    for checksums in (IGNORED, CHECKED):
        file = folder / f"{engine}-{checksums}-{link}" / WRITES[engine]
        if not file.exists():
            raise FileNotFoundError(f"{file.parent.name} has no {file.name}: {engine} did not read the capture")
        text = file.read_text(errors="replace")
        if engine == "zeek":
            yield Written(checksums, read_conn_log(text), None)
            continue
        events = eve.read(text)
        if events.unread:
            worst = events.unread[-1]
            raise ValueError(f"{file.parent.name}/{file.name}, line {worst.line}: {worst.text}")
        yield Written(checksums, events.connections, events.alerts)
