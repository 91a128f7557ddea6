"""Files that say themselves what each of their measurements is of, such as a table of all runs: a part for each run."""

from __future__ import annotations

from dataclasses import replace

from twinbed.contracts.format import RunKey
from twinbed.imports.runs import Candidate


def parts(file: Candidate) -> list[Candidate]:
    """The file, or what of it is of one testbed, levels and replicate, in the order in which they come first in it.

    A file that should say it and does not, or cannot be read, is of no testbed: nobody knows which runs are missing.
    """
    file_key, scanned = file.file_key, file.scanned
    if not file_key.within:
        return [file]
    known: dict[str, RunKey] = {}
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(scanned.pieces):
        if piece.run_key is not None and piece.run_key.known:
            known.setdefault(piece.run_key.key, piece.run_key)
            places.setdefault(piece.run_key.key, []).append(place)
    if not known:
        reason = scanned.reason or f"is {scanned.format}, which does not read {', '.join(file_key.within)} from a file"
        return [Candidate(replace(file_key, testbed=""), replace(scanned, pieces=(), reason=reason))]
    return [
        Candidate(
            replace(
                file_key,
                testbed=of.testbed or file_key.testbed,
                levels={**file_key.levels, **of.levels},
                replicate=of.replicate if "replicate" in file_key.within else file_key.replicate,
            ),
            scanned,
            tuple(places[key]),
        )
        for key, of in known.items()
    ]


def whole(members: list[Candidate]) -> Candidate:
    """The file of which they are parts: what is the same for all of them."""
    first = members[0]
    if first.only is None:
        return first
    file_keys = [each.file_key for each in members]
    same = {
        name: level
        for name, level in first.file_key.levels.items()
        if all(each.levels.get(name) == level for each in file_keys)
    }
    file_key = replace(
        first.file_key,
        testbed=first.file_key.testbed if len({each.testbed for each in file_keys}) == 1 else "",
        levels=same,
        replicate=first.file_key.replicate if len({each.replicate for each in file_keys}) == 1 else None,
    )
    return Candidate(file_key, first.scanned)
