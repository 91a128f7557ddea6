"""The engines that read a capture once it is kept: how each is run, with checksums checked and ignored, and what it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.command import Command
from twinbed.readers.monitor import conn_log, eve
from twinbed.readers.monitor.rows import CHECKED, IGNORED, Connection

SETTINGS = Path(__file__).with_name("suricata.yaml")
RULES = Path(__file__).with_name("suricata.rules")
"""Suricata's, where a study names none."""
WRITES = {"suricata": "eve.json", "zeek": "conn.log"}
VERSION = {"suricata": "-V", "zeek": "--version"}
INSTALL = {
    "suricata": "Debian 12 has it in backports: add the suite bookworm-backports to apt's sources, then"
    " apt-get install --no-install-recommends -t bookworm-backports suricata",
    "zeek": "Debian 12 has no package; https://zeek.org/get-zeek has one, which installs to /opt/zeek/bin (setting: program)",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What an engine wrote of one link."""

    checksums: str
    connections: Sequence[Connection]
    alerts: Mapping[eve.Signature, int] | None
    """None of an engine that has none."""


def commands(
    engine: str, program: str, rules: str | None, on: str, link: str, capture: str, limit_s: float
) -> Iterator[Command]:
    """Reads one capture twice, each into a folder of its own."""
    for checksums in (IGNORED, CHECKED):
        folder = f"{{artifacts}}/{engine}-{checksums}-{link}"
        yield Command(on, ("mkdir", "-p", folder), f"mkdir-{engine}-{checksums}-{link}.out")
        said = f"{engine}-{checksums}-{link}.out"
        yield Command(on, _argv(engine, program, rules, f"{{artifacts}}/{capture}", folder, checksums), said, limit_s=limit_s)


def _argv(engine: str, program: str, rules: str | None, capture: str, folder: str, checksums: str) -> tuple[str, ...]:
    if engine == "suricata":
        check = "none" if checksums == IGNORED else "all"
        how = ("-c", str(SETTINGS), "-S", rules or str(RULES), "--runmode", "single", "-k", check)
        return (program, *how, "-l", folder, "-r", capture)
    # Zeek writes where it is started.
    ignoring = ("-C",) if checksums == IGNORED else ()
    return ("env", "-C", folder, program, *ignoring, "-r", capture, "LogAscii::use_json=T")


def written(engine: str, folder: Path, link: str) -> Iterator[Written]:
    """Raises FileNotFoundError where the engine wrote nothing, ValueError where a file ends in the middle of an event: its
    counts
    would be too small."""
    for checksums in (IGNORED, CHECKED):
        file = folder / f"{engine}-{checksums}-{link}" / WRITES[engine]
        if not file.exists():
            raise FileNotFoundError(f"{file.parent.name} has no {file.name}: {engine} did not read the capture")
        text = file.read_text(errors="replace")
        if engine == "zeek":
            yield Written(checksums, conn_log.read(text), None)
            continue
        events = eve.read(text)
        if events.flaws:
            worst = events.flaws[-1]
            raise ValueError(f"{file.parent.name}/{file.name}, line {worst.line}: {worst.text}")
        yield Written(checksums, events.connections, events.alerts)
