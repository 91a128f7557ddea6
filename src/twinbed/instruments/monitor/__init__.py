"""Instrument ``monitor``: the view of a security monitor on every link, and its errors on a virtual testbed.

Captures each link with tcpdump at the machine's side: whole packets, those of instruments too, as a monitor sees them.  Reads
the capture as Zeek would, with checksums ignored and checked.  With ``engine: suricata`` or ``zeek`` that program also reads
the kept capture, both ways, after the workload, so it takes no CPU time from it.

Tables: ``monitored_links`` (link, seconds, arp_frames, other_frames), ``monitored_connections`` (readers/monitor/rows), of
Suricata ``alerts``: link, checksums (``ignored``, ``checked``), generator, signature_id, signature, category, severity,
alerts.  Extraction, which knows the workload, derives ``extra_connections`` and ``extra_classes`` from the first two
(docs/observer.md).

Limits: checksums can be verified only in whole packets; with a smaller ``snaplen`` those of longer packets count as
unverifiable.  Engines run where the lab's machine captures; hosts that capture themselves (SSH) have none.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from twinbed.contracts.check import Trial
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, concatenated
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import MACHINE, Target
from twinbed.metrics.metric import Value
from twinbed.metrics.monitor import METRICS, value
from twinbed.model import named_file
from twinbed.model.error import TwinbedError
from twinbed.model.units import Duration, Size
from twinbed.readers import tcpdump
from twinbed.readers.monitor import engines, link
from twinbed.readers.monitor.rows import CHECKED, IGNORED, of_log, of_rows

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX, SUFFIX = "monitor-", ".cap"
"""Parts of the captures' names, which differ from those of the instrument ``packets``."""
CLIENT = "client"
PACKET_BYTES = 1000
"""A typical packet, with its header in the file."""
INSTALLED = ("/usr/", "/opt/")
"""Folders in which only root installs programs. A program elsewhere may have come with the study."""
_LARGEST_BYTES = 64 * 2**20
_RULE = re.compile(r"\s*(#|(alert|pass|drop|reject|rejectsrc|rejectdst|rejectboth|config)\s+\S)")
_OTHER_FILES = re.compile(r"\b(lua|luajit|dataset|datarep|filestore|iprep)\s*[:;]", re.IGNORECASE)


class MonitorParams(InstrumentParams):
    """Settings of how links are monitored, and by which programs."""

    snaplen: int = Field(65535, ge=64, le=65535, description="bytes kept of each packet; checksums need whole packets")
    buffer: Size = Field(64 * 2**20, ge=2**20, le=2**31 - 2**10, description="kernel buffer of each capture")
    engine: Literal["own", "suricata", "zeek"] = Field(
        "own",
        description="program that reads the captures in addition to twinbed: own: none; suricata: for alerts and flow records;"
        " zeek: for its conn.log",
    )
    program: str | None = Field(
        None,
        pattern="^/",
        examples=["/usr/local/bin/suricata"],
        description="path of the engine's program, below /usr or /opt; null: the installed one",
    )
    rules: str | None = Field(
        None,
        examples=["my.rules"],
        description="file of Suricata rules, relative to the current folder; null: a few on checksums and streams",
    )
    rules_sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        examples=["0000000000000000000000000000000000000000000000000000000000000000"],
        description="SHA-256 of the file of rules; null: of the current file",
    )
    limit: Duration = Field(120.0, gt=0, le=3600, description="longest time of an engine for one capture")

    @model_validator(mode="after")
    def _possible(self) -> MonitorParams:
        if self.engine != "suricata" and self.rules is not None:
            raise ValueError("rules need engine: suricata")
        if self.engine == "own" and self.program is not None:
            raise ValueError("program needs engine: suricata or zeek")
        if self.program is not None and not _is_installed(self.engine, self.program):
            places = " or ".join(place.rstrip("/") for place in INSTALLED)
            raise ValueError(f"program must be {self.engine} below {places}, installed by root: a study cannot bring a program")
        if self.rules is not None and self.rules_sha256 is None:
            object.__setattr__(self, "rules_sha256", _sha256(self.rules))
        return self

    def trials(self) -> Sequence[Trial]:
        if self.engine == "own":
            return ()
        self.hold_rules()
        program = self.program or self.engine
        return [Trial((program, engines.VERSION[self.engine]), engines.INSTALL[self.engine])]

    def hold_rules(self) -> None:
        """Raise TwinbedError where the file of rules has changed, or has no rules."""
        try:
            if self.rules is not None and _sha256(self.rules) != self.rules_sha256:
                raise ValueError(f"{self.rules} has changed: its SHA-256 should be {self.rules_sha256}")
        except ValueError as error:
            raise TwinbedError(f"monitor: {error}", advice="leave out rules_sha256, or name the file that has it") from None

    def estimate_seconds(self) -> float:
        return 0.2 if self.engine == "own" else 5.0

    def estimate_bytes(self, link_rate: int) -> float:
        """Estimate a capture of one link that is full both ways."""
        return 2 * link_rate / 8 * min(self.snaplen, PACKET_BYTES) / PACKET_BYTES


def _is_installed(engine: str, program: str) -> bool:
    return (
        program.startswith(INSTALLED)
        and os.path.normpath(program) == program
        and PurePosixPath(program).name.startswith(engine)
    )


def _sha256(file: str) -> str:
    """Return the hash of a file of rules. Raises ValueError for other files, and for rules that name further files."""
    content = named_file.content(file, _LARGEST_BYTES)
    for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
        if line.strip() and not _RULE.match(line):
            raise ValueError(f"{file}, line {number}: not a Suricata rule on its own line (alert tcp ...)")
        if _OTHER_FILES.search(line) and not line.lstrip().startswith("#"):
            raise ValueError(f"{file}, line {number}: rules must not run Lua, or read or write a file")
    return hashlib.sha256(content).hexdigest()


class Monitor(Instrument[MonitorParams]):
    """The instrument."""

    name = "monitor"
    params = MonitorParams
    summary = "a security monitor's view of every link: connections with checksums checked and ignored, alerts (Suricata, Zeek)"
    also = ("zeek", "suricata", "ids", "snort")
    files = ("monitor-*.cap", "monitor-*.tcpdump", "monitor-*.tcpdump.err", "suricata-*", "zeek-*", "mkdir-*")
    raw = "single packets, and the results of other engines or rules on the captures"
    metrics = METRICS

    def plan(self, params: MonitorParams, target: Target) -> Sequence[Command]:
        if not target.captures:
            return ()
        return [
            tcpdump.command(
                interface,
                f"{PREFIX}{host}{SUFFIX}",
                snaplen=params.snaplen,
                buffer_bytes=params.buffer,
                on=target.name,
            )
            for interface, host in sorted(target.interfaces.items())
        ]

    def after(self, params: MonitorParams, target: Target) -> Sequence[Command]:
        if params.engine == "own" or not target.captures or not target.name.startswith(MACHINE):
            return ()
        program = params.program or params.engine
        rules = None if params.rules is None else str(Path(params.rules).absolute())
        params.hold_rules()
        return [
            command
            for host in sorted(target.interfaces.values())
            for command in engines.commands(
                params.engine, program, rules, target.name, host, f"{PREFIX}{host}{SUFFIX}", params.limit
            )
        ]

    def extract(self, params: MonitorParams, artifacts: Path) -> Extracted:
        files = sorted(artifacts.glob(f"*/{PREFIX}*{SUFFIX}"), key=lambda file: file.name)
        if not files:
            raise FileNotFoundError(f"no {PREFIX}*{SUFFIX} in the folders of {artifacts}")
        monitored = {file: link.read(file, file.stem.removeprefix(PREFIX)) for file in files}
        clients = [watched for watched in monitored.values() if watched.link.startswith(CLIENT)]
        values = list(link.values(clients, "")) if clients else []
        for on_link in monitored.values():
            values += link.values([on_link], on_link.link)
        rows = [
            of_log(watched.link, checksums, log)
            for watched in monitored.values()
            for checksums, log in ((IGNORED, watched.ignoring), (CHECKED, watched.strict))
        ]
        tables = {"monitored_links": _links(list(monitored.values()))}
        if params.engine != "own":
            written = {
                watched.link: list(engines.written(params.engine, file.parent, watched.link))
                for file, watched in monitored.items()
            }
            rows += [
                of_rows(name, params.engine, output.checksums, output.connections)
                for name, both in written.items()
                for output in both
            ]
            tables |= {"alerts": alerts} if (alerts := _alerts(written)).num_rows else {}
            values += _of_engine(written)
        return Extracted(values, {**tables, "monitored_connections": concatenated(rows)})


Written = Mapping[str, Sequence[engines.Written]]
"""Link -> the output of an engine for it."""


def _of_engine(written: Written) -> Iterator[Value]:
    """Yield the values of each link, and of all clients' links together."""
    by_checksums = {name: {output.checksums: output for output in both} for name, both in written.items()}
    clients = [name for name in by_checksums if name.startswith(CLIENT)]
    for host, links in (*((("", clients),) if clients else ()), *((name, [name]) for name in by_checksums)):
        for checksums, prefix in ((IGNORED, ""), (CHECKED, "strict_")):
            outputs = [by_checksums[name][checksums] for name in links]
            yield value(f"{prefix}flow_records", sum(len(output.connections) for output in outputs), host)
            alerts = [sum(output.alerts.values()) for output in outputs if output.alerts is not None]
            yield value(f"{prefix}alerts", sum(alerts) if len(alerts) == len(outputs) else None, host)


def _links(monitored: Sequence[link.Monitored]) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "link": pa.array([watched.link for watched in monitored], pa.string()),
            "seconds": pa.array([watched.seconds for watched in monitored], pa.float64()),
            "arp_frames": pa.array([watched.arp_frames for watched in monitored], pa.int64()),
            "other_frames": pa.array([watched.other_frames for watched in monitored], pa.int64()),
        }
    )


def _alerts(written: Written) -> pa.Table:
    import pyarrow as pa

    rows = [
        {
            "link": name,
            "checksums": output.checksums,
            "generator": signature.generator,
            "signature_id": signature.id,
            "signature": signature.text,
            "category": signature.category,
            "severity": signature.severity,
            "alerts": count,
        }
        for name, both in written.items()
        for output in both
        for signature, count in sorted((output.alerts or {}).items(), key=lambda item: (item[0].generator, item[0].id))
    ]
    texts = ("link", "checksums", "signature", "category")
    names = ("link", "checksums", "generator", "signature_id", "signature", "category", "severity", "alerts")
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in names]))


monitor = Monitor()
