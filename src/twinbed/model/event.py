"""Events in a run: what is done to the program or the link of a host, when, and when it was in force."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from twinbed.model.json import Document, dataclass_of
from twinbed.model.units import Duration

Action = Literal["kill", "stop", "continue", "link_down", "link_up"]
ACTIONS: tuple[Action, ...] = get_args(Action)
MATCHED = "{matched}"
"""Stands for the host that the pattern's group names."""
UNDONE: dict[Action, Action] = {"stop": "continue", "link_down": "link_up"}
"""Action -> the action that undoes it."""
_HOST = "host, or {matched}: the host that the pattern's group names"


class Event(BaseModel):
    """An event: one action, and when. Time counts from the start of the programs that end, or from the line of output."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    kill: str | None = Field(None, examples=["node1"], description=f"end the program with SIGKILL: {_HOST}")
    stop: str | None = Field(None, examples=["node1"], description=f"stop the program with SIGSTOP: {_HOST}")
    continue_: str | None = Field(
        None, alias="continue", examples=["node1"], description=f"let a stopped program continue: {_HOST}"
    )
    link_down: str | None = Field(None, examples=["node1"], description=f"set the switch's end of the link down: {_HOST}")
    link_up: str | None = Field(None, examples=["node1"], description=f"set it up: {_HOST}")
    after: Duration | None = Field(None, ge=0, le=86400, examples=["5s"], description="time after the start, or after the line")
    output: str | None = Field(None, examples=["load"], description="host whose program's output is read, line by line")
    pattern: str = Field("", max_length=500, examples=["^put ok"], description="pattern of the lines that count; empty: all")
    nth: int = Field(1, ge=1, le=10**9, description="number of the line, from 1")

    @model_validator(mode="after")
    def _one(self) -> Event:
        if len(self._given) != 1:
            raise ValueError(f"needs exactly one of {', '.join(ACTIONS)}")
        if self.after is None and self.output is None:
            raise ValueError("does not say when: give after: TIME, or output: HOST with pattern and nth")
        if self.output is None and (self.pattern or self.nth > 1):
            raise ValueError("pattern and nth need output: HOST")
        return self

    @property
    def _given(self) -> dict[Action, str]:
        targets = (self.kill, self.stop, self.continue_, self.link_down, self.link_up)
        return {action: host for action, host in zip(ACTIONS, targets, strict=True) if host is not None}

    @property
    def action(self) -> Action:
        return next(iter(self._given))

    @property
    def host(self) -> str:
        return next(iter(self._given.values()))

    def __str__(self) -> str:
        line = f"line {self.nth} of {self.output}" + (f" with {self.pattern!r}" if self.pattern else "")
        when = " ".join([*([f"{self.after:g} s"] if self.after is not None else []), "after"])
        return f"{self.action} {self.host}, {when} {'the start' if self.output is None else line}"


@dataclass(frozen=True, slots=True)
class Happened:
    """An event that was carried out. Times are on this machine's clock, in seconds from the first start of a program that ends,
    as those of clients are."""

    action: str
    host: str
    event: str
    """The event as asked, for readers."""
    due_s: float
    """When it was due: the time asked, or when the line arrived."""
    begun_s: float
    in_force_s: float
    """When it was read back."""
    found: str
    """The state read back."""

    def to_json(self) -> Document:
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Document) -> Happened:
        """Read an event. Raises KeyError, TypeError or ValueError for other data."""
        return dataclass_of(cls, data)
