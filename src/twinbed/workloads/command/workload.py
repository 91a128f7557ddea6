"""Workload ``command``: programs of the user, declared in the study file alone.

A server runs on each server host, then a client on each client host, all at once.  Arguments are lists, never shell strings.
With ``roles`` there are as many hosts of each role as it says (``model/role_texts``), and ``events`` happen to them.
``{server}`` and ``{client}`` are addresses, ``{pair}`` is the pair's number from 1, ``{artifacts}`` the host's folder whose
files are kept, and every other name in braces a setting (``model/template``).  Programs without a path are looked up in PATH.

Metrics are read from output and files of the programs (``readers/declared``).  With one pair the values are the run's (host
empty); with several, each client's, and the run's for metrics that say how clients count ``together``.

Limits: a text has at most 64 MiB, as all output of a program.  ``{after: 2s}`` waits a fixed time, for servers that neither
listen nor say that they are ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.contracts.extracted import Extracted, artifacts_named, concatenated
from twinbed.contracts.format import Format, FormatError, Measurement
from twinbed.contracts.workload import Described, Evidence, Workload, WorkloadPlan
from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.own import Declaration
from twinbed.model.error import TwinbedError
from twinbed.model.services import Service
from twinbed.model.template import filled
from twinbed.readers.clients import total
from twinbed.readers.declared import Spot, decoded, number_of
from twinbed.readers.single_requests import requests
from twinbed.tree import NotPlain, Tree

if TYPE_CHECKING:
    import pyarrow as pa

from twinbed.workloads.command.params import CommandParams
from twinbed.workloads.command.plan import workload_plan
from twinbed.workloads.command.programs import FILE_BYTES, Measured, output_name


@dataclass(frozen=True, slots=True)
class _Pair:
    """The measurements of one pair: metric -> number, and where it was."""

    client: str
    numbers: Mapping[str, float | None]
    evidence: Sequence[Evidence]
    wrong: Sequence[str]
    tables: Sequence[tuple[str, pa.Table]]
    rest: Extracted


@dataclass(frozen=True)
class CommandWorkload(Workload[CommandParams]):
    """The workload, with the formats that there are, and how a file of one is read."""

    known_formats: Callable[[], Mapping[str, Format]]
    read_format: Callable[[str, Path, str], Measurement]
    name = "command"
    params = CommandParams
    summary = "your own programs, with the metrics that you declare"
    also = ("program", "custom", "own", "script", "exec", "cmd", "shell")
    files = ("client.txt*", "client-*.txt*", "server.txt*", "server-*.txt*", "role-*.txt*")
    raw = "output of the programs"
    metrics: Sequence[Metric] = field(default=(), init=False)
    work: str = field(default="", init=False)
    rate: str = field(default="", init=False)

    def described(self, params: CommandParams) -> Described:
        known = dict(self._declared(params))
        rate = next((name for name, metric in params.metrics.items() if metric.rate), "")
        work = params.work.name if params.work else ""
        for measured in params.metrics.values():
            kind = self.known_formats().get(measured.format or "")
            if kind is not None and measured.metric is None:
                rate, work = (
                    rate or (kind.rate if kind.rate in known else ""),
                    work or (kind.work if kind.work in known else ""),
                )
        if params.work and params.work.value is not None:
            description = f"{work.replace('_', ' ')} of all clients, as the study says"
            known[work] = Declaration(extensive=True, headline=False).declared(work, "1", description)
        return Described(tuple(known.values()), work, rate)

    def _declared(self, params: CommandParams) -> Iterator[tuple[str, Metric]]:
        for name, measured in params.metrics.items():
            if measured.format is None:
                yield name, measured.as_declared(name)
                continue
            of_format = {metric.name: metric for metric in getattr(self.known_formats().get(measured.format), "metrics", ())}
            if measured.metric is None:
                yield from of_format.items()
            elif measured.metric in of_format:
                yield name, replace(of_format[measured.metric], name=name)

    def plan(self, params: CommandParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: CommandParams) -> Sequence[Service]:
        staying = [params.server, *params.roles.values()]
        signs = [program.ready for program in staying if program is not None and program.ready is not None]
        turns = not params.roles and params.work is not None and params.work.value is not None
        return [Service(ready.protocol, ready.listening, turns) for ready in signs if ready.listening]

    def unreadable(self, params: CommandParams, artifacts: Path) -> str:
        try:
            self._pairs(params, artifacts)
        except (OSError, ValueError, TwinbedError) as error:
            return str(error)
        return ""

    def evidence(self, params: CommandParams, artifacts: Path) -> Sequence[Evidence]:
        return [read for pair in self._read(params, artifacts) for read in pair.evidence]

    def parse(self, params: CommandParams, artifacts: Path) -> Extracted:
        pairs = self._pairs(params, artifacts)
        described = self.described(params)
        metrics = {metric.name: metric for metric in described.metrics}
        tables: dict[str, list[pa.Table]] = {}
        for name, table in (table_named for pair in pairs for table_named in pair.tables):
            tables.setdefault(name, []).append(table)
        return Extracted(
            list(_values(params, pairs, metrics, described.rate)),
            {name: concatenated(parts) for name, parts in tables.items()},
            [caution for pair in pairs for caution in pair.rest.cautions],
        )

    def _pairs(self, params: CommandParams, artifacts: Path) -> list[_Pair]:
        """Read all pairs. Raises ValueError that names every metric that cannot be read."""
        pairs = self._read(params, artifacts)
        if wrong := [reason for pair in pairs for reason in pair.wrong]:
            raise ValueError("; ".join(wrong))
        return pairs

    def _read(self, params: CommandParams, artifacts: Path) -> list[_Pair]:
        if params.roles:
            tree = Tree(artifacts)
            return [self._pair(params, tree, host, role) for role, names in params.hosts().items() for host in names]
        clients = [file.parent.name for file in artifacts_named(artifacts, output_name("client"))]
        return [self._pair(params, Tree(artifacts), client) for client in clients]

    def _pair(self, params: CommandParams, tree: Tree, client: str, role: str | None = None) -> _Pair:
        """Read a pair, or one host of a role."""
        numbers: dict[str, float | None] = {}
        evidence: list[Evidence] = []
        wrong: list[str] = []
        tables: list[tuple[str, pa.Table]] = []
        of_requests = set[str]()
        rest = Extracted()
        metrics = {metric.name: metric for metric in self.described(params).metrics}
        for name, measured in params.metrics.items():
            if role not in (None, measured.role):
                continue
            host = client if measured.role in ("client", role) else _server_of(client)
            file = f"{host}/{measured.artifact}"
            try:
                content = _content(tree, file, measured)
                if measured.format is not None:
                    measurement = self.read_format(measured.format, tree.path / file, file)
                    own = _of_format(measurement, name, measured, metrics)
                    numbers.update(own)
                    evidence += [
                        Evidence(host, key, number, metrics[key].unit, file, measured.format)
                        for key, number in own.items()
                        if number is not None
                    ]
                    if measured.metric is None:
                        tables += [(key, table) for key, table in measurement.tables.items()]
                        rest = replace(rest, cautions=[*rest.cautions, *measurement.cautions])
                    continue
                found_number = measured.find(_text(content), measured.unit or "1")
            except (ValueError, FormatError) as error:
                wrong.append(f"{name}: {file}: {error}")
                unit = metrics[name].unit if name in metrics else ""
                evidence.append(Evidence(host, name, None, unit, file, str(error)))
                continue
            numbers[name] = found_number.value
            evidence.append(Evidence(host, name, found_number.value, metrics[name].unit, file, str(found_number.spot)))
            if measured.values and metrics[name].unit == "s" and file not in of_requests:
                of_requests.add(file)  # several metrics may read it
                tables += requests(found_number.numbers, host).items()
        if params.work and params.work.value is not None and (role is None or params.roles[role].ready is None):
            numbers[params.work.name] = number_of(Spot(filled(params.work.value, params.settings)), "1")
        return _Pair(client, numbers, evidence, wrong, tables, rest)


def _server_of(client: str) -> str:
    return client.replace("client", "server", 1)


def _content(tree: Tree, file: str, metric: Measured) -> bytes:
    """Return a text. A program that printed no error has no file for it."""
    try:
        return tree.read(file, FILE_BYTES)
    except FileNotFoundError:
        if metric.read.endswith((".stderr", ".stdout")):
            return b""
        files_kept = ", ".join(name for name, kind in tree.entries(file.partition("/")[0]).items() if kind == "file")
        raise ValueError(f"{metric.role} wrote no such file into {{artifacts}}; there are: {files_kept}") from None
    except NotPlain as error:
        raise ValueError(error.strerror) from None


def _text(content: bytes) -> str:
    """Return the text. Raises ValueError for what is none."""
    at = content.find(b"\0")
    if at >= 0:
        raise ValueError(f"is no text: byte {at + 1:,} of {len(content):,} is NUL")
    return decoded(content)


def _of_format(found: Measurement, name: str, metric: Measured, metrics: Mapping[str, Metric]) -> dict[str, float | None]:
    numbers = {value.metric: value.value for value in found.values if not value.direction}
    if metric.metric is None:
        return {key: number for key, number in numbers.items() if key in metrics}
    if numbers.get(metric.metric) is None:
        raise ValueError(f"has no {metric.metric}; {metric.format} finds {', '.join(numbers) or 'nothing'}")
    return {name: numbers[metric.metric]}


def _values(params: CommandParams, pairs: Sequence[_Pair], metrics: Mapping[str, Metric], rate: str) -> Iterator[Value]:
    if params.roles:
        yield from _values_of_roles(params, pairs, metrics, rate)
        return
    if len(pairs) == 1:
        yield from (Value(name, number, metrics[name].unit) for name, number in pairs[0].numbers.items())
        return
    for pair in pairs:
        for name, number in pair.numbers.items():
            is_client = name not in params.metrics or params.metrics[name].role == "client"
            yield Value(name, number, metrics[name].unit, pair.client if is_client else _server_of(pair.client))
    for name in pairs[0].numbers:
        how = _how(params, metrics[name], rate)
        if how != "none":
            yield Value(name, _joined(how, [pair.numbers.get(name) for pair in pairs]), metrics[name].unit)


def _values_of_roles(
    params: CommandParams, hosts: Sequence[_Pair], metrics: Mapping[str, Metric], rate: str
) -> Iterator[Value]:
    """Yield the run's value of what one host has; of what several have, each host's, and the run's."""
    for name, metric in metrics.items():
        numbers = {pair.client: pair.numbers[name] for pair in hosts if name in pair.numbers}
        how = "mean" if len(numbers) == 1 else _how(params, metric, rate)
        if len(numbers) > 1:
            yield from (Value(name, number, metric.unit, host) for host, number in numbers.items())
        if how != "none" and numbers:
            yield Value(name, _joined(how, [*numbers.values()]), metric.unit)


def _how(params: CommandParams, metric: Metric, rate: str) -> str:
    declared = params.metrics.get(metric.name) or next((m for m in params.metrics.values() if m.format and not m.metric), None)
    return declared.joined(metric, rate) if declared else "sum"


def _joined(how: str, numbers: Sequence[float | None]) -> float | None:
    present = [number for number in numbers if number is not None]
    if how == "sum" or len(present) < len(numbers):
        return total(numbers)
    return {"mean": sum(present) / len(present), "min": min(present), "max": max(present)}[how]
