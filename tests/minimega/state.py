"""What the stand-in knows: namespaces, guests, commands; and what it shares between its parts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

NODE = "node1"


class GuestMaker(Protocol):
    """Makes what is inside a guest. ``run`` gives what a program said; a file is its bytes."""

    def boot(self, name: str, data: Mapping[str, Any], folder: Path) -> None: ...
    def run(self, name: str, argv: list[str]) -> tuple[bytes, bytes]: ...
    def tunnel(self, name: str, host: str, port: str, stream: socket.socket) -> None: ...
    def read(self, name: str, path: str) -> bytes: ...
    def write(self, name: str, path: str, content: bytes) -> None: ...
    def pid(self, folder: Path) -> int: ...
    def end(self, name: str) -> None: ...
    def capture(self, name: str, to: Path) -> None: ...
    def end_capture(self, name: str) -> None: ...


@dataclass
class Vm:
    row: dict[str, str]
    data: dict[str, Any]
    connected: bool = False

    @property
    def name(self) -> str:
        return str(self.data["Name"])


@dataclass
class Queued:
    number: int
    kind: str
    words: list[str]
    filter: str
    files: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass
class Namespace:
    name: str
    config: dict[str, list[str]] = field(default_factory=dict)
    vms: dict[str, Vm] = field(default_factory=dict)
    vlans: dict[str, int] = field(default_factory=dict)
    queue: list[Queued] = field(default_factory=list)
    filter: str = ""
    numbers: int = 0
    captures: dict[str, str] = field(default_factory=dict)
    bridges: dict[str, str] = field(default_factory=dict)
    tunnels: list[socket.socket] = field(default_factory=list)


class Refused(Exception):
    """What minimega says in place of an answer."""


class State:
    base: Path
    files: Path
    guests: GuestMaker | None
    spaces: dict[str, Namespace]
    active: str
    nodes: list[str]
    boots: bool
    netem: bool
    lag: Callable[[Queued], float]
    lock: threading.RLock
    _numbers: Iterator[int]
    _vlans: Iterator[int]
    _tickets: dict[str, list[threading.Event]]
