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

import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from twinbed.contracts import command
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, artifacts_named, concatenated
from twinbed.contracts.format import Format, FormatError, Measurement
from twinbed.contracts.params import Fault, Unfit, WorkloadParams
from twinbed.contracts.workload import Described, Evidence, Workload, WorkloadPlan
from twinbed.metrics.metric import Metric, Scale, Value
from twinbed.metrics.own import NAME, UNITS, Declaration, base_unit, unit_meant
from twinbed.model import role_texts
from twinbed.model.amount import amount
from twinbed.model.declaration import NumbersToo, TextAlone
from twinbed.model.error import TwinbedError
from twinbed.model.event import MATCHED, Event
from twinbed.model.image import Added
from twinbed.model.near import nearest
from twinbed.model.run import Level
from twinbed.model.services import Service
from twinbed.model.template import TemplateError, filled, given
from twinbed.model.topology import MOST_HOSTS, Topology
from twinbed.model.units import Duration, Size
from twinbed.readers import container_image
from twinbed.readers.clients import total
from twinbed.readers.declared import Reading, Spot, decoded, groups, matcher, number_of
from twinbed.readers.single_requests import requests
from twinbed.tree import NotPlain, Tree

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 64 * 2**20
"""The most bytes of all own files together, and of a text that metrics are read from."""
PROGRAM_MEMORY = 64 * 2**20
ADDRESSES = {"server": "the server's address", "client": "the client's address"}
PLACES = ("server", "client", "pair", "artifacts")
"""Names in braces that are no settings."""
_ANY_PLACE = dict.fromkeys(PLACES, "")
_SYSTEM = ("/proc", "/sys", "/dev")


_TEXT = re.compile(r"([a-z][a-z0-9]*)\.(stdout|stderr|file:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99})")


def _argument(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f'{str(value).lower()} is no text; write "{str(value).lower()}" with its quotes')
    return str(value) if isinstance(value, int | float) else value


def _list(value: object) -> object:
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError:
            words = value.split()
        written = ", ".join(word if word.isalnum() else f'"{word}"' for word in words)
        raise ValueError(f"{value!r} is a shell string, and a command is a list of arguments; write [{written}]")
    return value


Argument = Annotated[str, BeforeValidator(_argument), NumbersToo()]
Arguments = Annotated[tuple[Argument, ...], BeforeValidator(_list), Field(min_length=1, max_length=1000)]
PackageName = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9+.-]+$", max_length=100)]
"""A name as Debian's policy allows it (5.6.7)."""
_FROZEN = ConfigDict(frozen=True, extra="forbid")


class OwnFile(BaseModel):
    """A file of the user."""

    model_config = _FROZEN

    to: str = Field(pattern=r"^/[^{}]*[^/{}]$", examples=["/opt/client.py"], description="its path on every host")
    sha256: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", examples=["0" * 64], description="SHA-256; null: of the file as it is now"
    )
    executable: bool | None = Field(None, description="whether it is a program; null: as the file is now")

    @field_validator("to")
    @classmethod
    def _is_free(cls, to: str) -> str:
        parts = to.split("/")[1:]
        if not {"", ".", ".."}.isdisjoint(parts) or f"/{parts[0]}" in _SYSTEM:
            raise ValueError(f"{to} cannot be written; give a path such as /opt/{PurePosixPath(to).name or 'client.py'}")
        return to


class ReadyWhen(BaseModel):
    """The sign that a server is ready: one of listening, output, after."""

    model_config = _FROZEN

    listening: int | None = Field(None, ge=1, le=65535, examples=[6379], description="port that it listens on")
    protocol: Literal["tcp", "udp"] = Field("tcp", description="protocol of the port")
    output: str | None = Field(None, max_length=500, examples=["ready to accept"], description="pattern in its output")
    after: Duration | None = Field(
        None, gt=0, le=600, examples=["2s"], description="time since its start, if nothing else shows it"
    )

    @field_validator("output")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            groups(pattern)
        return pattern

    @model_validator(mode="after")
    def _one(self) -> ReadyWhen:
        if [self.listening, self.output, self.after].count(None) != 2:
            raise ValueError("needs exactly one of listening: PORT, output: PATTERN, after: TIME")
        return self

    def sign(self) -> command.Ready:
        says = matcher(self.output) if self.output is not None else None
        return command.Ready(listening=self.listening, protocol=self.protocol, says=says, after_s=self.after)


class Program(BaseModel):
    """A program on each host of a role."""

    model_config = _FROZEN

    run: Arguments = Field(examples=[["my-program", "{server}"]], description="the program and its arguments")
    prepare: tuple[Arguments, ...] = Field(
        (), max_length=50, examples=[[["mkdir", "/run/data"]]], description="commands that run before it, one after another"
    )
    env: dict[str, Argument] = Field({}, examples=[{"LANG": "C"}], description="environment variables")
    memory: Size = Field(PROGRAM_MEMORY, ge=2**20, le=2**40, description="the most memory that it takes")
    limit: Duration = Field(30.0, gt=0, le=86400, description="time limit of each command")

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield every text with names in braces, and where it is."""
        yield from ((("run", at), text) for at, text in enumerate(self.run))
        for number, argv in enumerate(self.prepare):
            yield from ((("prepare", number, at), text) for at, text in enumerate(argv))
        yield from ((("env", name), text) for name, text in self.env.items())


class ServerProgram(Program):
    """The program on each server."""

    ready: ReadyWhen = Field(description="the sign that it is ready")
    limit: Duration = Field(30.0, gt=0, le=3600, description="time limit of each command, and to be ready")


class ClientProgram(Program):
    """The program on each client, which runs to its end."""

    warm_up: Arguments | None = Field(
        None, examples=[["my-program", "--once", "{server}"]], description="command that runs before instruments start"
    )
    limit: Duration = Field(120.0, gt=0, le=86400, examples=["120s"], description="time limit of each command")
    exit: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(
        (0,), min_length=1, examples=[[0, 1]], description="exit codes of a good end"
    )

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        yield from super().texts()
        yield from ((("warm_up", at), text) for at, text in enumerate(self.warm_up or ()))


class Role(Program):
    """The program on each host of a role."""

    hosts: int = Field(
        1, ge=1, le=MOST_HOSTS, examples=[3], description="number of hosts: one has the role's name, else node1, node2"
    )
    ready: ReadyWhen | None = Field(
        None, description="the sign that it is ready and stays; null: it runs to its end, as a client"
    )
    after: tuple[str, ...] = Field((), examples=[["node"]], description="roles that are ready before it starts")
    limit: Duration = Field(120.0, gt=0, le=86400, examples=["120s"], description="time within which it must be ready, or end")
    exit: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(
        (0,), min_length=1, examples=[[0, 1]], description="exit codes of a good end"
    )


class Measured(Declaration, Reading):
    """A metric: where its number is, and what it means. One of regex, csv, json, values, format says how it is found."""

    read: str = Field(
        "client.stdout",
        examples=["client.stdout"],
        description="text to read: client, server or a role, and stdout, stderr, or file:NAME for {artifacts}/NAME",
    )
    format: str | None = Field(None, examples=["wrk"], description="format that `twinbed import` knows")
    metric: str | None = Field(
        None, examples=["total_time_p99"], description="the format's metric; null: all of them, under their own names"
    )
    rate: bool = Field(False, description="whether it is the speed of the work, by which clients are compared")
    together: Literal["sum", "mean", "min", "max", "none"] | None = Field(
        None, description="the run's value of several clients'; null: the sum of what is extensive or a rate, else none"
    )
    unit: str | None = Field(  # type: ignore[assignment]
        None,
        examples=["ms"],
        description=f"unit of the number in the text, which is converted: {', '.join(UNITS)}, or a word of your own; null: 1",
    )

    @field_validator("read")
    @classmethod
    def _is_a_text(cls, read: str) -> str:
        if not _TEXT.fullmatch(read):
            raise ValueError(
                f"{read!r} is no text of a program; allowed: client.stdout, client.stderr, client.file:NAME, server.stdout ..."
            )
        return read

    @property
    def role(self) -> str:
        return self.read.partition(".")[0]

    @property
    def artifact(self) -> str:
        """Return the name of the file with its text."""
        what = self.read.partition(".")[2]
        return (
            what.removeprefix("file:")
            if what.startswith("file:")
            else _output(self.role) + (".err" if what == "stderr" else "")
        )

    def as_declared(self, name: str) -> Metric:
        about = self.description or f"{name.replace('_', ' ')}, as {self.read} has it"
        return self.declared(name, base_unit(self.unit or "1"), about)

    def joined(self, metric: Metric, rate: str) -> str:
        """Return how values of several clients become the run's."""
        return self.together or ("sum" if metric.extensive or metric.name == rate else "none")


class Work(BaseModel):
    """The work of each client, by which effects are divided."""

    model_config = _FROZEN

    name: str = Field(pattern=NAME, examples=["requests"], description="its name, in the plural; without value: a metric")
    value: Argument | None = Field(None, examples=["{requests}"], description="how much of it each client does")


def _named(work: object) -> object:
    return {"name": work} if isinstance(work, str) else work


def _placed(file: object) -> object:
    return {"to": file} if isinstance(file, str) else file


class CommandParams(WorkloadParams):
    """Settings of the user's programs."""

    has_own_settings = True
    typical: ClassVar = {
        "settings": {"blocks": 1000},
        "server": {"run": ["iperf3", "--server"], "ready": {"listening": 5201}},
        "client": {"run": ["iperf3", "--client", "{server}", "--blockcount", "{blocks}", "--json"]},
        "metrics": {"goodput": {"json": "end.sum_received.bits_per_second", "unit": "bit/s", "rate": True}},
        "work": {"name": "blocks", "value": "{blocks}"},
    }

    client: ClientProgram | None = Field(None, description="the program on each client, which runs to its end; null: roles")
    server: ServerProgram | None = Field(None, description="the program on each server; null: none")
    roles: dict[Annotated[str, Field(pattern=role_texts.NAME_PATTERN)], Role] = Field(
        {},
        max_length=MOST_HOSTS,
        exclude_if=lambda roles: not roles,
        examples=[
            {"node": {"hosts": 3, "run": ["my-node"], "ready": {"listening": 7000}}, "load": {"run": ["my-load", "{node1}"]}}
        ],
        description="programs on more hosts than pairs, by role, in place of client and server",
    )
    events: tuple[Event, ...] = Field(
        (),
        max_length=100,
        exclude_if=lambda events: not events,
        examples=[[{"kill": "node1", "after": "5s"}]],
        description="with roles: what is done to programs and links during the run",
    )
    metrics: dict[Annotated[str, Field(pattern=NAME)], Measured] = Field(
        min_length=1, max_length=200, description="metrics, by name: where each is read, and what it means"
    )
    settings: dict[Annotated[str, Field(pattern=NAME)], Level] = Field(
        {}, max_length=100, examples=[{"payload": "64B"}], description="values for {name} in commands; each may be a factor"
    )
    work: Annotated[Work | None, BeforeValidator(_named), TextAlone("name")] = Field(
        None, description="the work of each client, such as {name: requests, value: '{requests}'}, or the name of a metric"
    )
    files: dict[str, Annotated[OwnFile, BeforeValidator(_placed), TextAlone("to")]] = Field(
        {},
        max_length=100,
        examples=[{"client.py": "/opt/client.py"}],
        description="own files, below the study's folder, and their paths on hosts",
    )
    packages: tuple[PackageName, ...] = Field(
        (),
        max_length=50,
        examples=[["redis-server", "redis-tools"]],
        description="Debian packages to add to the image of all testbeds",
    )
    image: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        examples=["oci-archive:./app.tar"],
        description="container image whose programs run: oci-archive:FILE, docker-archive:FILE, or a folder; null: twinbed's",
    )
    image_digest: str | None = Field(
        None,
        pattern="^sha(256|512):[0-9a-f]{64,128}$",
        examples=[f"sha256:{'0' * 64}"],
        description="digest of the image's content, which ties a run to it; null: of the image as it is now",
    )
    _contents: dict[str, bytes] = PrivateAttr(default_factory=dict)
    """Path on hosts -> content, of a study; records have the hashes alone."""
    _source: str | None = PrivateAttr(None)
    """The image with its whole path, of a study."""

    @model_validator(mode="after")
    def _with_files(self, info: ValidationInfo[Mapping[str, str] | None]) -> CommandParams:
        """Read the files of a study, whose folder is the context; the hashes tie a run to their content."""
        folder = (info.context or {}).get("folder")
        if folder is not None and self.files:
            known = {name: _own_file(folder, name, each) for name, each in self.files.items()}
            size = sum(len(content) for _, content in known.values())
            if size > FILE_BYTES:
                raise ValueError(f"files have {size:,} bytes together; at most {FILE_BYTES:,} are copied to hosts")
            object.__setattr__(self, "files", {name: each for name, (each, _) in known.items()})
            self._contents.update({each.to: content for each, content in known.values()})
        return self

    @model_validator(mode="after")
    def _with_image(self, info: ValidationInfo[Mapping[str, str] | None]) -> CommandParams:
        """Read the digest of a study's image."""
        folder = (info.context or {}).get("folder")
        if folder is not None and self.image is not None:
            self._source = container_image.located(self.image, Path(folder))
            digest = container_image.digest(self._source)
            if self.image_digest not in (None, digest):
                raise ValueError(f"image: {self.image} has changed: its digest is {digest}")
            object.__setattr__(self, "image_digest", digest)
        return self

    def added(self) -> Added:
        return Added(self.packages, self._source or self.image, self.image_digest)

    @classmethod
    def own_settings(cls, data: Mapping[str, object]) -> Sequence[tuple[str, ...]]:
        """Return the settings that this study declares, and names in braces that a factor may give."""
        settings = data.get("settings")
        declared = list(settings) if isinstance(settings, Mapping) else []
        return [("settings", name) for name in dict.fromkeys([*declared, *_names_in(data)])]

    def faults(self) -> Iterator[Fault]:
        yield from self._wrong_settings()
        if self.client is None or self.roles:
            yield from self._wrong_roles()
        known = {**_ANY_PLACE, **self.settings}
        for role, program in (("server", self.server), ("client", self.client)):
            for where, text in program.texts() if program else ():
                yield from _unfilled((role, *where), text, known)
        for name, metric in self.metrics.items():
            programs = [*self.roles] or ["client", *(["server"] if self.server else [])]
            yield from _wrong_metric(("metrics", name), name, metric, programs)
        rates = [name for name, metric in self.metrics.items() if metric.rate]
        for name in rates[1:]:
            yield Fault(("metrics", name, "rate"), f"{rates[0]} is the rate already", "one metric with rate: true")
        yield from self._wrong_work()

    def _wrong_settings(self) -> Iterator[Fault]:
        for name, value in self.settings.items():
            if name in PLACES:
                yield Fault(
                    ("settings", name), f"{{{name}}} has a meaning of its own", f"a name other than {', '.join(PLACES)}"
                )
            elif value is None:
                yield Fault(("settings", name), "has no value", "a number, a text, on or off, or a quantity such as 64B")
        targets = [each.to for each in self.files.values()]
        for path, each in self.files.items():
            if targets.count(each.to) > 1:
                yield Fault(("files", path), f"{each.to} is given twice", "a path of its own for each file")

    def hosts(self) -> dict[str, Sequence[str]]:
        """Return role -> its hosts; roles that run to their end come first."""
        ends_first = sorted(self.roles.items(), key=lambda item: item[1].ready is not None)
        return {name: role_texts.hosts_of(name, role.hosts) for name, role in ends_first}

    def unfit(self, topology: Topology) -> Unfit | None:
        try:
            self.hosts_on(topology)
        except ValueError as error:
            return Unfit("roles", str(error), "topology: with link, switch, vlan and bystanders at most")
        return None

    def hosts_on(self, topology: Topology) -> Topology:
        return topology.of_roles([host for each in self.hosts().values() for host in each]) if self.roles else topology

    def _wrong_roles(self) -> Iterator[Fault]:
        if not self.roles or self.client is not None or self.server is not None:
            return (
                yield Fault((), "needs either client, perhaps with server, or roles", "client: {run: [...]}, or roles: {...}")
            )
        hosts = self.hosts()
        count = sum(map(len, hosts.values()))
        if not 2 <= count <= MOST_HOSTS:
            yield Fault(("roles",), f"has {amount(count, 'host')}", f"from 2 to {MOST_HOSTS} hosts together")
        if all(role.ready for role in self.roles.values()):
            yield Fault(("roles",), "no program ends, so the run would not", "a role without ready, which runs to its end")
        places = {**dict.fromkeys(role_texts.OWN, ""), **role_texts.places(hosts), "artifacts": ""}
        for name in self.settings.keys() & places.keys():
            yield Fault(("settings", name), f"{{{name}}} has a meaning of its own", f"a name other than {', '.join(places)}")
        for name, role in self.roles.items():
            if role_texts.is_reserved(name):
                yield Fault(("roles", name), "is a name that twinbed uses itself", "another name")
            for other in role.after:
                if other not in self.roles:
                    yield Fault(
                        ("roles", name, "after"), f"{other} is no role", ", ".join(self.roles), nearest(other, self.roles)
                    )
                elif self.roles[other].ready is None:
                    yield Fault(
                        ("roles", name, "after"), f"{other} is never ready: it runs to its end", f"ready: ... for {other}"
                    )
            for where, text in role.texts():
                try:
                    [*role_texts.texts(text, {**places, **self.settings}, hosts)]
                except TemplateError as error:
                    yield Fault(("roles", name, *where), error.message, error.allowed, error.near)
        if all(other in self.roles for role in self.roles.values() for other in role.after):
            try:
                self.rounds()
            except ValueError as error:
                yield Fault(("roles",), str(error), "an order of start without a circle")
        names = [host for each in hosts.values() for host in each]
        for at, event in enumerate(self.events):
            yield from _wrong_event(("events", at), event, names)

    def rounds(self) -> dict[str, int]:
        """Return role -> its place in the order of start. Raises ValueError for roles that wait for each other."""
        try:
            order = TopologicalSorter({name: role.after for name, role in self.roles.items()}).static_order()
            rounds: dict[str, int] = {}
            for name in order:
                rounds[name] = max((rounds[other] + 1 for other in self.roles[name].after), default=0)
        except CycleError as error:
            raise ValueError(f"wait for each other: {', '.join(error.args[1])}") from None
        return rounds

    def _wrong_work(self) -> Iterator[Fault]:
        if self.work is None:
            return
        if self.work.value is None and self.work.name not in self.metrics and not any(m.format for m in self.metrics.values()):
            allowed = f"a metric ({', '.join(self.metrics)}), or {{name: {self.work.name}, value: '{{SETTING}}'}}"
            yield Fault(("work",), f"{self.work.name} is no metric", allowed, nearest(self.work.name, self.metrics))
        elif self.work.value is not None:
            if self.work.name in self.metrics:
                yield Fault(
                    ("work", "name"), f"{self.work.name} is a metric too", "a value, or a metric of this name, not both"
                )
            known = self.settings
            wrong = list(_unfilled(("work", "value"), self.work.value, known))
            yield from wrong
            if not wrong:
                try:
                    number_of(Spot(filled(self.work.value, known)), "1")
                except ValueError:
                    text = filled(self.work.value, known)
                    yield Fault(("work", "value"), f"{text!r} is no number", "a number, or a setting that is one")

    def own_files(self) -> Mapping[str, bytes]:
        return {name: self._contents[file.to] for name, file in self.files.items() if file.to in self._contents}

    def formats(self) -> Sequence[tuple[tuple[str, ...], str, str | None]]:
        return [(("metrics", name), each.format, each.metric) for name, each in self.metrics.items() if each.format]

    def estimate_seconds(self) -> float:
        """Return the time that a setting ``duration`` has; without one, 10 s or the limit."""
        own = given(self.settings.get("duration", ""))
        seconds = float(own.forms["seconds"]) if own.kind == "duration" else 10.0
        limit = (
            self.client.limit if self.client else max((each.limit for each in self.roles.values() if not each.ready), default=0)
        )
        return min(seconds, limit) + (self.server.ready.after or 1.0 if self.server else 0.0)


def _names_in(data: object) -> Iterator[str]:
    """Yield names in braces of a study's data that may be settings."""
    from twinbed.model.template import names

    if isinstance(data, str):
        try:
            yield from (
                each
                for name in names(role_texts.plain(data))
                if (each := name.partition(".")[0]).isidentifier() and each not in PLACES
            )
        except TemplateError:
            return  # reported when the text is checked
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from () if key in ("metrics", "settings", "files") else _names_in(value)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from _names_in(each)


def _unfilled(where: tuple[str | int, ...], text: str, known: Mapping[str, Level]) -> Iterator[Fault]:
    try:
        filled(text, known)
    except TemplateError as error:
        yield Fault(where, error.message, error.allowed, error.near)


def _wrong_event(where: tuple[str | int, ...], event: Event, hosts: Sequence[str]) -> Iterator[Fault]:
    matched = event.host == MATCHED
    for key, host in ((event.action, "" if matched else event.host), ("output", event.output)):
        if host and host not in hosts:
            yield Fault((*where, key), f"{host} is no host", ", ".join(hosts), nearest(host, hosts))
    try:
        count = groups(event.pattern)
    except ValueError as error:
        yield Fault((*where, "pattern"), str(error), "a regular expression")
    else:
        if matched and count != 1:
            yield Fault(
                (*where, "pattern"), "names no host: {matched} is the text of its one group", "a pattern such as 'leader (.*)'"
            )


def _wrong_metric(where: tuple[str, ...], name: str, metric: Measured, programs: Sequence[str]) -> Iterator[Fault]:
    ways = [*metric.ways, *(["format"] if metric.format else [])]
    if len(ways) != 1:
        found = f"has {' and '.join(ways)}" if ways else "does not say how its number is found"
        yield Fault(where, found, "one of regex, csv, json, values, format")
    if metric.role not in programs:
        texts = ", ".join(f"{each}.stdout, {each}.stderr, {each}.file:NAME" for each in programs)
        yield Fault((*where, "read"), f"there is no {metric.role}", texts, nearest(metric.role, programs))
    if metric.metric and not metric.format:
        yield Fault((*where, "metric"), "is for a format", "format: NAME with it")
    if metric.format and metric.take is not None:
        yield Fault((*where, "take"), "is not for a format", "nothing")
    if metric.unit and (meant := unit_meant(metric.unit)):
        yield Fault((*where, "unit"), f"{metric.unit!r} is not known", ", ".join(UNITS), (meant,))
    if metric.scale is not Scale.RATIO and metric.extensive:
        yield Fault((*where, "extensive"), "needs a ratio scale", "scale: ratio")
    if metric.margin is not None and metric.scale is not Scale.INTERVAL:
        yield Fault((*where, "margin"), "is for an interval scale", "scale: interval with it")


def _own_file(folder: str, name: str, each: OwnFile) -> tuple[OwnFile, bytes]:
    """Return a file with its hash, and its content. Raises ValueError if it is not below the study's folder as it should be."""
    tree = Tree(Path(folder))
    try:
        about = tree.status(name)
        content = tree.read(name, FILE_BYTES)
    except (OSError, TwinbedError) as error:
        reason = f"{error.strerror or error}" if isinstance(error, OSError | NotPlain) else str(error)
        raise ValueError(f"files: {name}: {reason}; files are below the study's folder, {folder}") from None
    digest = hashlib.sha256(content).hexdigest()
    if each.sha256 not in (None, digest):
        raise ValueError(f"files: {name} has changed: its SHA-256 is {digest}")
    executable = bool(about and about.st_mode & 0o111) if each.executable is None else each.executable
    return each.model_copy(update={"sha256": digest, "executable": executable}), content


def _output(role: str, step: str = "") -> str:
    """Return the artifact with a program's output. The names of roles are a study's own, so theirs say what they are."""
    return f"{'' if role in ADDRESSES else 'role-'}{role}{step}.txt"


def workload_plan(params: CommandParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
    """Plan the programs of all pairs. Raises ValueError for params of a record, which lack the files' contents."""
    if len(params._contents) < len(params.files):
        raise ValueError("the contents of its files are not known here; run the study file")
    if params.roles:
        return _roles_plan(params)
    servers, clients, prepare, warm_up = list[Command](), list[Command](), list[Command](), list[Command]()
    for number, (client, server, address) in enumerate(pairs, start=1):
        places: dict[str, Level] = {
            "server": address,
            "client": f"{{address:{client}}}",
            "pair": number,
            "artifacts": "{artifacts}",
        }
        known = {**params.settings, **places}
        programs = [(server, "server", params.server), (client, "client", params.client)]
        for host, role, program in programs:
            if program is None:
                continue
            one = _command(host, role, program, known)
            steps = enumerate(program.prepare, start=1)
            prepared = replace(one, limit_s=program.limit)
            prepare += [replace(prepared, argv=_fill(argv, known), stdout=f"{role}-prepare-{step}.txt") for step, argv in steps]
            if isinstance(program, ServerProgram):
                servers.append(replace(one, ready=program.ready.sign(), limit_s=program.limit))
            elif isinstance(program, ClientProgram):
                clients.append(replace(one, limit_s=program.limit, exits=program.exit))
                if program.warm_up is not None:
                    warm_up.append(
                        replace(one, argv=_fill(program.warm_up, known), stdout="client-warm-up.txt", limit_s=program.limit)
                    )
    hosts = [host for client, server, _ in pairs for host in (client, server)]
    return WorkloadPlan(
        files=[(host, to, content) for host in hosts for to, content in params._contents.items()],
        executable=frozenset(each.to for each in params.files.values() if each.executable),
        prepare=prepare,
        servers=servers,
        warm_up=warm_up,
        clients=clients,
    )


def _roles_plan(params: CommandParams) -> WorkloadPlan:
    servers, clients, prepare = list[Command](), list[Command](), list[Command]()
    hosts, rounds = params.hosts(), params.rounds()
    for name, of_role in hosts.items():
        role = params.roles[name]
        for number, host in enumerate(of_role, start=1):
            own = role_texts.of_host(host, number)
            known = {**params.settings, **role_texts.places(hosts), **own, "artifacts": "{artifacts}"}

            def argv(texts: Sequence[str], known: Mapping[str, Level] = known) -> tuple[str, ...]:
                return tuple(made for text in texts for made in role_texts.texts(text, known, hosts))

            env = {key: role_texts.filled_in(text, known, hosts) for key, text in role.env.items()}
            one = Command(
                host, argv(role.run), _output(name), env=env, memory_bytes=role.memory, limit_s=role.limit, exits=role.exit
            )
            steps = enumerate(role.prepare, start=1)
            prepare += [replace(one, argv=argv(words), stdout=_output(name, f"-prepare-{step}")) for step, words in steps]
            if role.ready is None:
                clients.append(one)
            else:
                servers.append(replace(one, ready=role.ready.sign(), round=rounds[name]))
    return WorkloadPlan(
        files=[(host, to, content) for each in hosts.values() for host in each for to, content in params._contents.items()],
        executable=frozenset(each.to for each in params.files.values() if each.executable),
        prepare=prepare,
        servers=servers,
        clients=clients,
        events=params.events,
    )


def _fill(argv: Sequence[str], known: Mapping[str, Level]) -> tuple[str, ...]:
    return tuple(filled(text, known) for text in argv)


def _command(host: str, role: str, program: Program, known: Mapping[str, Level]) -> Command:
    env = {name: filled(text, known) for name, text in program.env.items()}
    return Command(host, _fill(program.run, known), _output(role), env=env, memory_bytes=program.memory)


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
        rate = next((name for name, each in params.metrics.items() if each.rate), "")
        work = params.work.name if params.work else ""
        for each in params.metrics.values():
            kind = self.known_formats().get(each.format or "")
            if kind is not None and each.metric is None:
                rate, work = (
                    rate or (kind.rate if kind.rate in known else ""),
                    work or (kind.work if kind.work in known else ""),
                )
        if params.work and params.work.value is not None:
            about = f"{work.replace('_', ' ')} of all clients, as the study says"
            known[work] = Declaration(extensive=True, headline=False).declared(work, "1", about)
        return Described(tuple(known.values()), work, rate)

    def _declared(self, params: CommandParams) -> Iterator[tuple[str, Metric]]:
        for name, each in params.metrics.items():
            if each.format is None:
                yield name, each.as_declared(name)
                continue
            of_format = {metric.name: metric for metric in getattr(self.known_formats().get(each.format), "metrics", ())}
            if each.metric is None:
                yield from of_format.items()
            elif each.metric in of_format:
                yield name, replace(of_format[each.metric], name=name)

    def plan(self, params: CommandParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: CommandParams) -> Sequence[Service]:
        staying = [params.server, *params.roles.values()]
        signs = [each.ready for each in staying if each is not None and each.ready is not None]
        turns = not params.roles and params.work is not None and params.work.value is not None
        return [Service(ready.protocol, ready.listening, turns) for ready in signs if ready.listening]

    def unreadable(self, params: CommandParams, artifacts: Path) -> str:
        try:
            self._pairs(params, artifacts)
        except (OSError, ValueError, TwinbedError) as error:
            return str(error)
        return ""

    def evidence(self, params: CommandParams, artifacts: Path) -> Sequence[Evidence]:
        return [each for pair in self._read(params, artifacts) for each in pair.evidence]

    def parse(self, params: CommandParams, artifacts: Path) -> Extracted:
        pairs = self._pairs(params, artifacts)
        about = self.described(params)
        metrics = {metric.name: metric for metric in about.metrics}
        tables: dict[str, list[pa.Table]] = {}
        for name, table in (each for pair in pairs for each in pair.tables):
            tables.setdefault(name, []).append(table)
        return Extracted(
            list(_values(params, pairs, metrics, about.rate)),
            {name: concatenated(parts) for name, parts in tables.items()},
            [caution for pair in pairs for caution in pair.rest.cautions],
        )

    def _pairs(self, params: CommandParams, artifacts: Path) -> list[_Pair]:
        """Read all pairs. Raises ValueError that names every metric that cannot be read."""
        pairs = self._read(params, artifacts)
        if wrong := [each for pair in pairs for each in pair.wrong]:
            raise ValueError("; ".join(wrong))
        return pairs

    def _read(self, params: CommandParams, artifacts: Path) -> list[_Pair]:
        if params.roles:
            tree = Tree(artifacts)
            return [self._pair(params, tree, host, role) for role, each in params.hosts().items() for host in each]
        clients = [file.parent.name for file in artifacts_named(artifacts, _output("client"))]
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
        for name, each in params.metrics.items():
            if role not in (None, each.role):
                continue
            host = client if each.role in ("client", role) else _server_of(client)
            file = f"{host}/{each.artifact}"
            try:
                content = _content(tree, file, each)
                if each.format is not None:
                    found = self.read_format(each.format, tree.path / file, file)
                    own = _of_format(found, name, each, metrics)
                    numbers.update(own)
                    evidence += [
                        Evidence(host, key, number, metrics[key].unit, file, each.format)
                        for key, number in own.items()
                        if number is not None
                    ]
                    if each.metric is None:
                        tables += [(key, table) for key, table in found.tables.items()]
                        rest = replace(rest, cautions=[*rest.cautions, *found.cautions])
                    continue
                one = each.find(_text(content), each.unit or "1")
            except (ValueError, FormatError) as error:
                wrong.append(f"{name}: {file}: {error}")
                unit = metrics[name].unit if name in metrics else ""
                evidence.append(Evidence(host, name, None, unit, file, str(error)))
                continue
            numbers[name] = one.value
            evidence.append(Evidence(host, name, one.value, metrics[name].unit, file, str(one.spot)))
            if each.values and metrics[name].unit == "s" and file not in of_requests:
                of_requests.add(file)  # several metrics may read it
                tables += requests(one.numbers, host).items()
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
        there = ", ".join(name for name, kind in tree.entries(file.partition("/")[0]).items() if kind == "file")
        raise ValueError(f"{metric.role} wrote no such file into {{artifacts}}; there are: {there}") from None
    except NotPlain as error:
        raise ValueError(error.strerror) from None


def _text(content: bytes) -> str:
    """Return the text. Raises ValueError for what is none."""
    at = content.find(b"\0")
    if at >= 0:
        raise ValueError(f"is no text: byte {at + 1:,} of {len(content):,} is NUL")
    return decoded(content)


def _of_format(found: Measurement, name: str, each: Measured, metrics: Mapping[str, Metric]) -> dict[str, float | None]:
    numbers = {value.metric: value.value for value in found.values if not value.direction}
    if each.metric is None:
        return {key: number for key, number in numbers.items() if key in metrics}
    if numbers.get(each.metric) is None:
        raise ValueError(f"has no {each.metric}; {each.format} finds {', '.join(numbers) or 'nothing'}")
    return {name: numbers[each.metric]}


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
        numbers = {each.client: each.numbers[name] for each in hosts if name in each.numbers}
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
