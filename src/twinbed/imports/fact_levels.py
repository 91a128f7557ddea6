"""Facts that files state of their measurements, such as the protocol, as factors: other settings are other cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from twinbed.contracts.format import RunKey
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.runs import Candidate
from twinbed.imports.scan import Piece
from twinbed.model.run import Level

SETTINGS = (
    *("test", "protocol", "direction", "reverse", "bidirectional", "streams", "connections", "clients", "concurrency"),
    *("threads", "keep_alive", "target_rate_bit_s", "payload_bytes", "message_bytes", "probe_bytes", "congestion"),
)
"""Facts that whoever started the program chose; others, such as a version or a duration, may be measured."""


def factors(files: Sequence[Candidate], asked: Sequence[str]) -> tuple[str, ...]:
    """Return the facts that are factors: those asked for, and the settings in which the measurements of one file differ.

    A setting that follows from those before it, such as a protocol from a test's name, is none. Raises ImportRefused for one
    that no file states, or that paths give too.
    """
    pieces = [piece for file in files for piece in _own(file)]
    stated = list(dict.fromkeys(name for piece in pieces for name in piece.facts))
    named = {name for file in files for name in (*file.file_key.levels, *file.file_key.within)}
    for name in asked:
        if name in named:
            raise ImportRefused(f"--factor {name}: the pattern or manifest gives it too", advice="keep one of the two")
        if name not in stated:
            raise ImportRefused(f"--factor {name}: no file states it", advice=f"files state {', '.join(stated) or 'nothing'}")
    kept = list(dict.fromkeys(asked))
    for name in SETTINGS:
        if name in kept or name in named or not any(_differs(file, name) for file in files):
            continue
        if not _follows(name, kept, pieces):
            kept.append(name)
    return tuple(kept)


def with_levels(files: Sequence[Candidate], names: Sequence[str]) -> list[Candidate]:
    """Return the files, each with the levels that its measurements state of these facts.

    A file that states none, such as vmstat's, has the levels of the other files of its run. Raises ImportRefused where these
    state several.
    """
    if not names:
        return list(files)
    stating = {id(file): _stated(file, names) for file in files}
    of_run: dict[str, dict[str, dict[str, Level]]] = {}
    for file in files:
        for levels in stating[id(file)]:
            of_run.setdefault(_run(file), {})[json.dumps(levels)] = levels
    return [
        _keyed(file, names)
        if stating[id(file)] or not _own(file)
        else _with_levels_of_run(file, of_run.get(_run(file), {}), names)
        for file in files
    ]


def _own(file: Candidate) -> Sequence[Piece]:
    """Return the measurements of a file that does not name their run itself, as a table does."""
    return () if file.file_key.within else file.scanned.pieces


def _differs(file: Candidate, name: str) -> bool:
    return len({json.dumps(piece.facts[name]) for piece in _own(file) if name in piece.facts}) > 1


def _follows(name: str, kept: Sequence[str], pieces: Sequence[Piece]) -> bool:
    """Return whether the levels of ``kept`` determine the level of ``name`` in all measurements that state it."""
    levels: dict[str, set[str]] = {}
    for piece in pieces:
        if name in piece.facts:
            levels.setdefault(json.dumps([piece.facts.get(other) for other in kept]), set()).add(json.dumps(piece.facts[name]))
    return all(len(values) == 1 for values in levels.values())


def _run(file: Candidate) -> str:
    return json.dumps([file.file_key.testbed, dict(file.file_key.levels), file.file_key.replicate])


def _stated(file: Candidate, names: Sequence[str]) -> list[dict[str, Level]]:
    return [_levels(piece, names) for piece in _own(file) if any(name in piece.facts for name in names)]


def _levels(piece: Piece, names: Sequence[str]) -> dict[str, Level]:
    return {name: piece.facts.get(name) for name in names}


def _keyed(file: Candidate, names: Sequence[str]) -> Candidate:
    """Return the file with the levels of each measurement; those of one that cannot be read are unknown."""
    pieces = tuple(replace(piece, run_key=RunKey(levels=_levels(piece, names))) for piece in file.scanned.pieces)
    within = (*file.file_key.within, *names)
    return Candidate(replace(file.file_key, within=within), replace(file.scanned, pieces=pieces))


def _with_levels_of_run(file: Candidate, of_run: dict[str, dict[str, Level]], names: Sequence[str]) -> Candidate:
    if len(of_run) > 1:
        raise ImportRefused(
            f"{file.scanned.path} states no {' or '.join(names)}, but other files of its run have {len(of_run)} settings",
            advice="give it a run of its own, or use a pattern or manifest that leaves it out",
        )
    levels = next(iter(of_run.values()), dict.fromkeys(names))
    return Candidate(replace(file.file_key, levels={**file.file_key.levels, **levels}), file.scanned)


def described(files: Sequence[Candidate], names: Sequence[str]) -> Iterator[str]:
    """Yield the levels of each factor that files state, as text."""
    from twinbed.imports.layout.names import level_key
    from twinbed.model.run import level_text

    for name in names:
        levels = {
            json.dumps(piece.facts[name]): piece.facts[name] for file in files for piece in _own(file) if name in piece.facts
        }
        yield f"{name}: {', '.join(level_text(level) for level in sorted(levels.values(), key=level_key))}"
