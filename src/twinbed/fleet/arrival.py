"""A run's files on their way from the machine that made it: asked for in batches, written, and compared with their digests.

Nothing that a machine sends is trusted: names lead only into the run's folder, and a run with any difference is refused.
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
"""The bytes fetched at once."""
_MOST_FILES = 100_000
_DEPTH = 20
_MOST_FACTS = 50
_MOST_TEXT = 1000


def checked_offer(offered: Offered, address: str) -> Offered:
    """Check a machine's report of itself, which must be short. Raises HostError."""
    plain_name(offered.machine, address)
    texts = [offered.image, *offered.facts, *(value for value in offered.facts.values() if isinstance(value, str))]
    if len(offered.facts) > _MOST_FACTS or any(len(text) > _MOST_TEXT for text in texts):
        raise HostError(f"{address}: it reports more than {_MOST_FACTS} facts of {_MOST_TEXT} characters about itself")
    return offered


def checked(made: Made, run: Run, folder: Path, machine: str) -> Made:
    """Check a machine's report of a run. Raises HostError.

    Names must be plain and of files alone, there must not be too many, and they must fit into half of the free space of
    ``folder``."""
    if made.run != run.id:
        raise HostError(f"{machine}: it was asked for run {run.id}, and made {made.run[:80]!r}")
    if len(made.files) > _MOST_FILES or any(file.bytes < 0 for file in made.files.values()):
        raise HostError(f"{machine}: run {run.id} has {len(made.files):,} files, or one with a negative size")
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
    """Yield each piece with its bytes. Raises HostError."""
    if len(content) != sum(piece.bytes for piece in pieces):
        raise HostError(f"{machine}: {pieces[0].path} and files after it changed their sizes since the run")
    at = 0
    for piece in pieces:
        yield piece, content[at : at + piece.bytes]
        at += piece.bytes


def link_check(made: Made, machine: str) -> LinkCheck | None:
    """Read the check of links of the run's cell. Raises HostError."""
    try:
        return None if made.link_check is None else LinkCheck.from_json(document(parsed(made.link_check)))
    except WRONG as error:
        raise HostError(f"{machine}: its check of links cannot be read: {why(error)[:300]}") from None


def batches(made: Made) -> Iterator[tuple[Piece, ...]]:
    """Yield the pieces to ask for at once, file after file."""
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
    """Write a piece below ``folder``, which only this process writes. The machine's names cannot lead elsewhere. Raises
    HostError."""
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
    """Compare the files that came with the machine's report of the run. Raises HostError."""
    for path, reported in made.files.items():
        with (folder / path).open("rb") as file:
            if hashlib.file_digest(file, "blake2b").hexdigest() != reported.digest:
                raise HostError(f"{machine}: {path} of run {run.id} differs from the file when the run was made")
    try:
        record = Record.from_json(document(parsed((folder / "run.json").read_bytes())))
        recorded = {artifact["path"]: artifact["bytes"] for artifact in record.artifacts}
    except (OSError, *WRONG) as error:
        raise HostError(f"{machine}: run {run.id} has no record: {why(error)[:300]}") from None
    sizes = {path: file.bytes for path, file in made.files.items() if path.startswith("artifacts/")}
    if (record.id, record.machine, record.status) != (run.id, machine, made.status) or recorded != sizes:
        raise HostError(f"{machine}: the files that it sent are not those of run {run.id}")
