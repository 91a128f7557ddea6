"""Settings of the workload ``command``, and what is wrong with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from twinbed.contracts.params import Fault, Unfit, WorkloadParams
from twinbed.metrics.metric import Scale
from twinbed.metrics.own import NAME, UNITS, unit_meant
from twinbed.model import role_texts
from twinbed.model.amount import amount
from twinbed.model.declaration import TextAlone
from twinbed.model.error import TwinbedError
from twinbed.model.event import MATCHED, Event
from twinbed.model.image import Added
from twinbed.model.near import nearest
from twinbed.model.run import Level
from twinbed.model.template import TemplateError, filled, given
from twinbed.model.topology import MOST_HOSTS, Topology
from twinbed.readers import container_image
from twinbed.readers.declared import Spot, groups, number_of
from twinbed.tree import NotPlain, Tree

if TYPE_CHECKING:
    pass

from twinbed.workloads.command.programs import (
    ANY_PLACE,
    FILE_BYTES,
    PLACES,
    ClientProgram,
    Measured,
    OwnFile,
    PackageName,
    Role,
    ServerProgram,
    Work,
)


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

    @property
    def contents(self) -> Mapping[str, bytes]:
        """Return path on hosts -> content of the files, as far as they are known."""
        return self._contents

    @model_validator(mode="after")
    def _with_files(self, info: ValidationInfo[Mapping[str, str] | None]) -> CommandParams:
        """Read the files of a study, whose folder is the context; the hashes tie a run to their content."""
        folder = (info.context or {}).get("folder")
        if folder is not None and self.files:
            known = {name: _own_file(folder, name, file) for name, file in self.files.items()}
            size = sum(len(content) for _, content in known.values())
            if size > FILE_BYTES:
                raise ValueError(f"files have {size:,} bytes together; at most {FILE_BYTES:,} are copied to hosts")
            object.__setattr__(self, "files", {name: file for name, (file, _) in known.items()})
            self._contents.update({file.to: content for file, content in known.values()})
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
        known = {**ANY_PLACE, **self.settings}
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
        targets = [file.to for file in self.files.values()]
        for path, own_file in self.files.items():
            if targets.count(own_file.to) > 1:
                yield Fault(("files", path), f"{own_file.to} is given twice", "a path of its own for each file")

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
        return topology.of_roles([host for names in self.hosts().values() for host in names]) if self.roles else topology

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
        names = [host for names in hosts.values() for host in names]
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
        return [(("metrics", name), metric.format, metric.metric) for name, metric in self.metrics.items() if metric.format]

    def estimate_seconds(self) -> float:
        """Return the time that a setting ``duration`` has; without one, 10 s or the limit."""
        own = given(self.settings.get("duration", ""))
        seconds = float(own.forms["seconds"]) if own.kind == "duration" else 10.0
        limit = (
            self.client.limit if self.client else max((role.limit for role in self.roles.values() if not role.ready), default=0)
        )
        return min(seconds, limit) + (self.server.ready.after or 1.0 if self.server else 0.0)


def _names_in(data: object) -> Iterator[str]:
    """Yield names in braces of a study's data that may be settings."""
    from twinbed.model.template import names

    if isinstance(data, str):
        try:
            yield from (
                setting
                for name in names(role_texts.plain(data))
                if (setting := name.partition(".")[0]).isidentifier() and setting not in PLACES
            )
        except TemplateError:
            return  # reported when the text is checked
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from () if key in ("metrics", "settings", "files") else _names_in(value)
    elif isinstance(data, list | tuple):
        for setting in data:
            yield from _names_in(setting)


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
        problem = f"has {' and '.join(ways)}" if ways else "does not say how its number is found"
        yield Fault(where, problem, "one of regex, csv, json, values, format")
    if metric.role not in programs:
        texts = ", ".join(f"{program}.stdout, {program}.stderr, {program}.file:NAME" for program in programs)
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


def _own_file(folder: str, name: str, file: OwnFile) -> tuple[OwnFile, bytes]:
    """Return a file with its hash, and its content. Raises ValueError if it is not below the study's folder as it should be."""
    tree = Tree(Path(folder))
    try:
        status = tree.status(name)
        content = tree.read(name, FILE_BYTES)
    except (OSError, TwinbedError) as error:
        reason = f"{error.strerror or error}" if isinstance(error, OSError | NotPlain) else str(error)
        raise ValueError(f"files: {name}: {reason}; files are below the study's folder, {folder}") from None
    digest = hashlib.sha256(content).hexdigest()
    if file.sha256 not in (None, digest):
        raise ValueError(f"files: {name} has changed: its SHA-256 is {digest}")
    executable = bool(status and status.st_mode & 0o111) if file.executable is None else file.executable
    return file.model_copy(update={"sha256": digest, "executable": executable}), content
