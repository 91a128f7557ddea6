"""A run's files on their way from the machine that made it: what is asked for, written, and held against its digests.

Nothing that a machine sends is believed: names lead nowhere but into the run's folder, and all of it is what was said, or none.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from twinbed.fleet.words import Made, Offered, Piece
from twinbed.hosts.error import HostError
from twinbed.hosts.files import create, plain_name
from twinbed.model.json import WRONG, document, parsed, why
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.study.run import Run

_PIECES_BYTES = 8 * 2**20
"""Fetched at once."""
_MOST_FILES = 100_000
_DEPTH = 20
_MOST_FACTS = 50
_MOST_TEXT = 1000


def checked_offer(offered: Offered, address: str) -> Offered:
    """What a machine says of itself is short. Raises HostError."""
    plain_name(offered.machine, address)
    texts = [offered.image, *offered.facts, *(each for each in offered.facts.values() if isinstance(each, str))]
    if len(offered.facts) > _MOST_FACTS or any(len(text) > _MOST_TEXT for text in texts):
        raise HostError(f"{address}: it says more of itself than {_MOST_FACTS} facts of {_MOST_TEXT} characters")
    return offered


def checked(made: Made, run: Run, folder: Path, machine: str) -> Made:
    """What a machine says of the run that it was asked for: names are plain, and of files alone; there are not too many, and
    half of what is free in ``folder`` has room for them. Raises HostError."""
    if made.run != run.id:
        raise HostError(f"{machine}: it was asked for run {run.id}, and made {made.run[:80]!r}")
    if len(made.files) > _MOST_FILES or any(file.bytes < 0 for file in made.files.values()):
        raise HostError(f"{machine}: run {run.id} has {len(made.files):,} files, or one of less than nothing")
    folders = {str(parent) for path in made.files for parent in PurePosixPath(path).parents}
    for path in made.files:
        for part in path.split("/"):
            plain_name(part, machine)
        if path in folders or path.count("/") > _DEPTH:
            raise HostError(f"{machine}: {path[:80]} of run {run.id} is a file and a folder, or too deep")
    size, free = sum(file.bytes for file in made.files.values()), shutil.disk_usage(folder).free
    if size > free // 2:
        raise HostError(f"{machine}: run {run.id} has {size:,} bytes, and {free:,} are free here")
    return made


def pieces_of(content: bytes, pieces: Sequence[Piece], machine: str) -> Iterator[tuple[Piece, bytes]]:
    """Each with its bytes, of those that came. Raises HostError."""
    if len(content) != sum(piece.bytes for piece in pieces):
        raise HostError(f"{machine}: {pieces[0].path} and what comes after it have other bytes than they had")
    at = 0
    for piece in pieces:
        yield piece, content[at : at + piece.bytes]
        at += piece.bytes


def link_check(made: Made, machine: str) -> LinkCheck | None:
    """Of the run's cell. Raises HostError."""
    try:
        return None if made.link_check is None else LinkCheck.from_json(document(parsed(made.link_check)))
    except WRONG as error:
        raise HostError(f"{machine}: its check of links is none: {why(error)[:300]}") from None


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
        record = Record.from_json(document(parsed((folder / "run.json").read_bytes())))
        told = {artifact["path"]: artifact["bytes"] for artifact in record.artifacts}
    except (OSError, *WRONG) as error:
        raise HostError(f"{machine}: run {run.id} has no record: {why(error)[:300]}") from None
    have = {path: file.bytes for path, file in made.files.items() if path.startswith("artifacts/")}
    if (record.id, record.machine, record.status) != (run.id, machine, made.status) or told != have:
        raise HostError(f"{machine}: what it sent is not run {run.id}")
