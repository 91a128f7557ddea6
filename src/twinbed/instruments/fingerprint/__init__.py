"""Instrument ``fingerprint``: features that reveal a host to nmap, to a web client, to a neighbour, and to a program on it.

It runs after the workload and all other instruments, while the servers still run.  Each client runs ``nmap -O -sV`` and
``twinbed-probe fingerprint http`` and ``link`` against its own servers' addresses. Each host runs ``twinbed-probe fingerprint
machine``.  nmap asks the port of the workload's server and a closed one, and resolves no names.  So only hosts of the testbed
are asked, and the workload is not disturbed.

Gives the table ``fingerprints`` (observer, host, feature, text, value, seen), and metrics of each host for features that are
quantities.  The instrument ``packets`` adds features from captures to the table.  docs/fingerprint.md lists the features.

Limits: nmap takes 5 to 20 s for a server, one after another.  To a port with TLS the requests are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import Target
from twinbed.metrics.fingerprint import METRICS, OF_FEATURES, value
from twinbed.model.caution import Caution, Kind
from twinbed.model.units import Duration, Switch
from twinbed.readers.fingerprint import answers, nmap
from twinbed.readers.fingerprint.feature import Feature, table

MACHINE_FILE = "machine.json"
NMAP_BYTES = 64 * 2**20
"""Memory of nmap with its tables of systems and services."""
PROBE_LIMIT_S = 60.0
Reader: TypeAlias = Callable[[str, bytes], list[Feature]]
_READERS: Mapping[str, Reader] = {"link-*.json": answers.link, "http-*.json": answers.http, "nmap-*.xml": nmap.read}
"""Artifacts about servers, and their readers."""
_GRACE_S = 30.0
"""Time that nmap may take beyond its own limit to report it."""
_LOWEST = range(1, 10)
"""TCP ports of services that nobody runs; those without the workload's server are closed."""


class FingerprintParams(InstrumentParams):
    """Settings of how hosts are examined."""

    nmap: Switch = Field(True, description="run nmap, which takes most of the time")
    limit: Duration = Field(90.0, ge=5, le=3600, description="longest time of nmap for a server, such as 90s")

    def programs(self) -> Sequence[str]:
        return ("nmap",) if self.nmap else ()

    def estimate_seconds(self) -> float:
        return 20.0 if self.nmap else 0.5

    def estimate_bytes(self, link_rate: int) -> float:
        return 0.0


class Fingerprint(Instrument[FingerprintParams]):
    """The instrument."""

    name = "fingerprint"
    params = FingerprintParams
    summary = "features that reveal hosts: nmap, HTTP answers, ICMP, ARP, CPUID, DMI, PCI, timer costs; after the workload"
    also = ("nmap", "p0f", "cpuid", "detect")
    files = ("machine.json*", "link-*.json*", "http-*.json*", "nmap-*")
    raw = "nmap's whole answers"
    metrics = METRICS

    def plan(self, params: FingerprintParams, target: Target) -> Sequence[Command]:
        return ()

    def examine(self, params: FingerprintParams, target: Target, ports: Mapping[str, Sequence[int]]) -> Sequence[Command]:
        if not target.servers and not target.clients:
            return ()
        commands = [_probe(target.name, MACHINE_FILE, "machine")]
        for server, address in sorted(target.servers.items()):
            listening = ports.get(server, ())
            commands.append(_probe(target.name, f"link-{server}.json", "link", "--address", address))
            if listening:
                asked = ("--address", address, "--port", str(listening[0]))
                commands.append(_probe(target.name, f"http-{server}.json", "http", *asked))
            if params.nmap:
                commands.append(_nmap(target.name, server, address, listening, params.limit))
        return commands

    def extract(self, params: FingerprintParams, artifacts: Path) -> Extracted:
        files: list[tuple[Path, str, Reader]] = [
            (file, file.parent.name, answers.machine) for file in sorted(artifacts.glob(f"*/{MACHINE_FILE}"))
        ]
        if not files:
            raise FileNotFoundError(f"no {MACHINE_FILE} in the folders of {artifacts}")
        for pattern, read in _READERS.items():
            files += [(file, file.stem.partition("-")[2], read) for file in sorted(artifacts.glob(f"*/{pattern}"))]
        features: list[Feature] = []
        cautions: list[Caution] = []
        for file, host, read in files:
            try:
                features += read(host, file.read_bytes())
            except ValueError as error:
                cautions.append(Caution(Kind.UNREADABLE, f"{file.parent.name}/{file.name}: {error}"))
        for file in sorted(artifacts.glob("*/link-*.json")):
            cautions += _refused(file)
        values = [value(feature.name, feature.value, feature.host) for feature in features if feature.name in OF_FEATURES]
        return Extracted(values, {"fingerprints": table(features)}, cautions)


def _refused(file: Path) -> Iterator[Caution]:
    try:
        every = answers.refused(file.read_bytes())
    except ValueError:
        return  # The file has a caution already.
    for refusal in every:
        yield Caution(Kind.UNREADABLE, f"{file.parent.name}/{file.name}: {refusal}")


def _probe(host: str, artifact: str, *what: str) -> Command:
    argv = ("twinbed-probe", "fingerprint", *what, "--out", f"{{artifacts}}/{artifact}")
    return Command(host, argv, stdout=f"{artifact}.out", limit_s=PROBE_LIMIT_S)


def _nmap(client: str, server: str, address: str, listening: Sequence[int], limit_s: float) -> Command:
    closed = next(port for port in _LOWEST if port not in listening)
    argv = (
        *("nmap", "-n", "-Pn", "-p", ",".join(map(str, [*listening[:1], closed]))),
        *("-O", "--osscan-guess", "--max-os-tries", "1", "-sV", "--version-light"),
        # With -v twice nmap prints the fingerprint even if it knows the system.
        *("-vv", "--host-timeout", f"{limit_s:g}s", "-oX", f"{{artifacts}}/nmap-{server}.xml", address),
    )
    return Command(client, argv, stdout=f"nmap-{server}.out", limit_s=limit_s + _GRACE_S, memory_bytes=NMAP_BYTES)


fingerprint = Fingerprint()

__all__ = ["Fingerprint", "FingerprintParams", "fingerprint"]
