"""Programs of the workload ``command``, its files and metrics, as a study declares them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from twinbed.contracts import command
from twinbed.metrics.metric import Metric
from twinbed.metrics.own import NAME, UNITS, Declaration, base_unit
from twinbed.model.declaration import NumbersToo
from twinbed.model.topology import MOST_HOSTS
from twinbed.model.units import Duration, Size
from twinbed.readers.declared import Reading, groups, matcher

if TYPE_CHECKING:
    pass

FILE_BYTES = 64 * 2**20
"""The most bytes of all own files together, and of a text that metrics are read from."""
PROGRAM_MEMORY = 64 * 2**20
PAIR = ("server", "client")
PLACES = (*PAIR, "pair", "artifacts")
"""Names in braces that are no settings."""
ANY_PLACE = dict.fromkeys(PLACES, "")
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
            else output_name(self.role) + (".err" if what == "stderr" else "")
        )

    def as_declared(self, name: str) -> Metric:
        description = self.description or f"{name.replace('_', ' ')}, as {self.read} has it"
        return self.declared(name, base_unit(self.unit or "1"), description)

    def joined(self, metric: Metric, rate: str) -> str:
        """Return how values of several clients become the run's."""
        return self.together or ("sum" if metric.extensive or metric.name == rate else "none")


class Work(BaseModel):
    """The work of each client, by which effects are divided."""

    model_config = _FROZEN

    name: str = Field(pattern=NAME, examples=["requests"], description="its name, in the plural; without value: a metric")
    value: Argument | None = Field(None, examples=["{requests}"], description="how much of it each client does")


def output_name(role: str, step: str = "") -> str:
    """Return the artifact with a program's output. The names of roles are a study's own, so theirs say what they are."""
    return f"{'' if role in PAIR else 'role-'}{role}{step}.txt"
