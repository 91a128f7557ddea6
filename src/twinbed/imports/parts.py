"""Files that say themselves what each of their measurements is of, such as a table of all runs: a part for each run."""

from __future__ import annotations

from dataclasses import replace

from twinbed.contracts.format import Of
from twinbed.imports.runs import Candidate


def parts(file: Candidate) -> list[Candidate]:
    """The file, or what of it is of one testbed, levels and replicate, in the order in which they come first in it.

    A file that should say it and does not, or cannot be read, is of no testbed: nobody knows which runs are missing.
    """
    assigned, looked = file.assigned, file.looked
    if not assigned.within:
        return [file]
    known: dict[str, Of] = {}
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(looked.pieces):
        if piece.of is not None and piece.of.known:
            known.setdefault(piece.of.key, piece.of)
            places.setdefault(piece.of.key, []).append(place)
    if not known:
        reason = looked.reason or f"is {looked.format}, which does not read {', '.join(assigned.within)} from a file"
        return [Candidate(replace(assigned, testbed=""), replace(looked, pieces=(), reason=reason))]
    return [
        Candidate(
            replace(
                assigned,
                testbed=of.testbed or assigned.testbed,
                levels={**assigned.levels, **of.levels},
                replicate=of.replicate if "replicate" in assigned.within else assigned.replicate,
            ),
            looked,
            tuple(places[key]),
        )
        for key, of in known.items()
    ]


def whole(members: list[Candidate]) -> Candidate:
    """The file of which they are parts: what is the same for all of them."""
    first = members[0]
    if first.only is None:
        return first
    told = [each.assigned for each in members]
    same = {
        name: level for name, level in first.assigned.levels.items() if all(each.levels.get(name) == level for each in told)
    }
    assigned = replace(
        first.assigned,
        testbed=first.assigned.testbed if len({each.testbed for each in told}) == 1 else "",
        levels=same,
        replicate=first.assigned.replicate if len({each.replicate for each in told}) == 1 else None,
    )
    return Candidate(assigned, first.looked)
