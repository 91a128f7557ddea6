"""A run's files on their way from the machine that made it: what is asked for, written, and held against its digests.

Nothing that a machine sends is believed: names lead nowhere but into the run's folder, and all of it is what was said, or none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from twinbed.fleet.words import Made, Piece
from twinbed.hosts.error import HostError
from twinbed.hosts.files import create, plain_name
from twinbed.model.record import Record
from twinbed.study.run import Run

_PIECES_BYTES = 8 * 2**20
"""Fetched at once."""


def batches(made: Made) -> Iterator[tuple[Piece, ...]]:
    """What is asked for at once, file after file."""
    batch: list[Piece] = []
    room = _PIECES_BYTES
    for path, file in made.files.items():
        start = 0
        while True:
            size = min(file.bytes - start, room)
            batch.append(Piece(path, start, size))
            start, room = start + size, room - size
            if not room:
                yield tuple(batch)
                batch, room = [], _PIECES_BYTES
            if start >= file.bytes:
                break
    if batch:
        yield tuple(batch)


def write(folder: Path, piece: Piece, content: bytes, machine: str) -> None:
    """``folder`` is written by this process alone. Names are the machine's: they lead nowhere else. Raises HostError."""
    path = folder.joinpath(*(plain_name(part, machine) for part in piece.path.split("/")))
    if len(content) != piece.bytes:
        raise HostError(f"{machine}: {piece.path} has other bytes than it had")
    path.parent.mkdir(parents=True, exist_ok=True)
    if piece.start:
        with path.open("r+b") as file:
            file.seek(piece.start)
            file.write(content)
    else:
        with create(path) as file:
            file.write(content)


def hold_to(folder: Path, made: Made, run: Run, machine: str) -> None:
    """Holds what came against what the machine said of it when the run was made. Raises HostError."""
    for path, said in made.files.items():
        with (folder / path).open("rb") as file:
            if hashlib.file_digest(file, "blake2b").hexdigest() != said.digest:
                raise HostError(f"{machine}: {path} of run {run.id} is not what it was there")
    try:
        record = Record.from_json(json.loads((folder / "run.json").read_bytes()))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise HostError(f"{machine}: run {run.id} has no record: {error!r}") from None
    told = {artifact["path"]: artifact["bytes"] for artifact in record.artifacts}
    have = {path: file.bytes for path, file in made.files.items() if path.startswith("artifacts/")}
    if (record.id, record.machine, record.status) != (run.id, machine, made.status) or told != have:
        raise HostError(f"{machine}: what it sent is not run {run.id}")
