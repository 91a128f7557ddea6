"""The runs that files make: replicates numbered, copies dropped, conflicts found.

A run is a testbed, levels and a replicate.  Files of one run differ in format or host; several measurements in a file are
replicates of their own, unless the file names the replicate itself.  A question that only a guess could
answer is a conflict, and then nothing is imported.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from twinbed.contracts.format import Format
from twinbed.imports.layout.names import LevelKey, NaturalKey, level_key, natural
from twinbed.imports.runs import Candidate, Made, Outcome, Plan, State, whole
from twinbed.imports.scan import ScannedFile
from twinbed.model.json import Document
from twinbed.model.run import Level, level_text

MOST_REPLICATE = 10_000
"""Whole numbers below it are replicates' own numbers; others, such as dates, are sorted and counted."""
_REVERSE = {
    **dict.fromkeys(("send", "sent", "sending", "tx", "upload", "up", "forward", "fwd", "out"), False),
    **dict.fromkeys(("recv", "receive", "received", "receiving", "rx", "download", "down", "reverse", "rev", "in"), True),
}
"""Levels for the direction, seen from the client -> iperf3's option -R."""
_MEANT = dict.fromkeys(("parallel", "streams", "num_streams", "flows"), "streams") | {
    "protocol": "protocol",
    "proto": "protocol",
}
"""Names of factors -> the fact of a load generator's report that they mean."""


def plan(
    candidates: Sequence[Candidate],
    formats: Mapping[str, Format],
    *,
    number: bool = False,
    have: Mapping[str, int] | None = None,
) -> Plan:
    """Return the runs of ``candidates``. ``number``: several files of a run are replicates, in natural order of their paths.

    ``have`` maps runs that were imported before to their replicates, which they keep.
    """
    made = Plan()
    cells: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    readable = {candidate.file_key.testbed for candidate in candidates if candidate.pieces}
    for known in candidates:
        cells[known.file_key.testbed, _key(known.file_key.levels)].append(known)
    labels = [candidate.file_key.replicate for candidate in candidates if candidate.file_key.replicate is not None]
    first = 0 if "0" in labels else 1
    for (testbed, _), members in sorted(cells.items(), key=lambda item: _cell_order(item[0][0], item[1][0].file_key.levels)):
        distinct = list(_without_copies(members, formats, made))
        if testbed not in readable:
            made.outcomes += [
                Outcome(file.path, State.REFUSED, candidate.scanned.reason, candidate)
                for candidate in distinct
                for file in (candidate.scanned, *candidate.scanned.then)
            ]
            continue
        runs = list(_runs(testbed, distinct, number, made))
        _number(runs, first, have or {})
        made.runs += runs
    made.outcomes = _once([*_outcomes(made.runs), *made.outcomes])
    _add_cautions(made, formats)
    _check_levels(made, formats)
    _check_directions(made, formats)
    return made


def _check_levels(made: Plan, formats: Mapping[str, Format]) -> None:
    """Add cautions on levels that the file contradicts: either the name is wrong, or the option was forgotten."""
    for run in made.runs:
        for candidate, piece in run.files:
            if not _measures(candidate, formats):
                continue
            facts = candidate.scanned.pieces[piece].facts
            for name, level in run.levels.items():
                fact = facts.get(_MEANT.get(name.lower(), ""))
                if fact is None or isinstance(level, bool) or not isinstance(level, type(fact)):
                    continue
                if level != fact and not (
                    isinstance(level, str) and (level.lower() == fact or level.lower() not in ("tcp", "udp"))
                ):
                    text = f"{candidate.scanned.path}: its path says {name} {level}, the file itself {fact}"
                    made.cautions.append(text)
                    run.misnamed.append(text)


def _check_directions(made: Plan, formats: Mapping[str, Format]) -> None:
    """Add cautions on directions that vary in paths and not in files: an option was forgotten."""
    for testbed in made.testbeds():
        runs = [run for run in made.runs if run.testbed == testbed]
        for name in dict.fromkeys(name for run in runs for name in run.levels):
            words = {str(run.levels[name]).lower() for run in runs if name in run.levels}
            if len(words) < 2 or not words <= _REVERSE.keys() or len({_REVERSE[word] for word in words}) < 2:
                continue
            of_files = [
                (run, bool(fact))
                for run in runs
                for candidate, piece in run.files
                if _measures(candidate, formats)
                and (fact := candidate.scanned.pieces[piece].facts.get("reverse")) is not None
                and not candidate.scanned.pieces[piece].facts.get("bidirectional")
            ]
            if len({fact for _, fact in of_files}) != 1:
                continue
            fact = of_files[0][1]
            text = f"{testbed}: {name} varies in paths, reverse is {str(fact).lower()} in all {len(of_files)} files"
            made.cautions.append(text)
            for run in runs:
                if name in run.levels and _REVERSE[str(run.levels[name]).lower()] != fact:
                    run.misnamed.append(text)


def _add_cautions(made: Plan, formats: Mapping[str, Format]) -> None:
    """Add cautions on the same measurement in two cells: one of them is a copy under a wrong name."""
    first: dict[str, Made] = {}
    for run in made.runs:
        for candidate, _ in run.files:
            if not _measures(candidate, formats):
                continue
            other = first.setdefault(candidate.scanned.sha256, run)
            path = next(twin.scanned.path for twin, _ in other.files if twin.scanned.sha256 == candidate.scanned.sha256)
            if other.cell == run.cell or path == candidate.scanned.path:
                continue
            text = f"{candidate.scanned.path} has the same bytes as {path}, which belongs to another cell"
            if text not in made.cautions:
                made.cautions.append(text)
            run.cautions.append(text)
            other.cautions.append(text)


def _measures(candidate: Candidate, formats: Mapping[str, Format]) -> bool:
    """Return whether a file has measurements of a workload, not of circumstances alone."""
    kind = formats.get(candidate.scanned.format)
    return kind is not None and bool(kind.rate or kind.work)


def _key(levels: Mapping[str, Level]) -> str:
    return json.dumps(dict(levels), sort_keys=True)


def _cell_order(testbed: str, levels: Mapping[str, Level]) -> tuple[NaturalKey, Sequence[tuple[str, LevelKey]]]:
    return (natural(testbed), [(name, level_key(level)) for name, level in levels.items()])


def _without_copies(members: Sequence[Candidate], formats: Mapping[str, Format], made: Plan) -> Iterator[Candidate]:
    """Drop copies. Two measurements of a workload never have the same bytes; circumstances may, in other runs."""
    seen: dict[tuple[str, ...], Candidate] = {}
    for other in sorted(members, key=lambda member: (natural(member.file_key.replicate or ""), *_nearest(member.scanned.path))):
        place = () if _measures(other, formats) else (other.file_key.replicate or "",)
        key = (other.scanned.identity, *other.slot, *place)
        if other.scanned.sha256 and other.scanned.bytes and key in seen:
            made.outcomes.append(
                Outcome(other.scanned.path, State.COPY, f"the same bytes as {seen[key].scanned.path}", other),
            )
        else:
            seen[key] = other
            yield other


def _nearest(path: str) -> tuple[int, NaturalKey]:
    """Return a key by which a deeper file, as in ``backup/``, is the copy."""
    return (path.count("/"), natural(path))


def _runs(testbed: str, members: Sequence[Candidate], number: bool, made: Plan) -> Iterator[Made]:
    by_label: dict[str, list[Candidate]] = defaultdict(list)
    for member in members:
        by_label[member.file_key.replicate or ""].append(member)
    for label in sorted(by_label, key=natural):
        group = by_label[label]
        slots: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
        for member in group:
            if member.pieces:
                slots[member.slot].append(member)
        refused = [member for member in group if not member.pieces]
        crowded = [member for slot in slots.values() if len(slot) > 1 for member in slot]
        where = _where(testbed, members[0].file_key.levels)
        # Files of several hosts belong together, and nothing shows which.
        hosts = {host for _, host in slots}
        if not crowded and not (number and refused and len(group) > 1 and len(slots) <= 1):
            yield from _of_one(testbed, label, slots, refused, where, number, made)
        elif number and len(hosts) <= 1:
            yield from _each_alone(testbed, label, group, where, made)
        else:
            names = ", ".join(member.scanned.path for member in crowded[:3]) + (", ..." if len(crowded) > 3 else "")
            which = f"replicate {label}" if label else "the only replicate"
            of_hosts = f", and nothing shows which files of {len(hosts)} hosts belong together" if number else ""
            made.conflicts.append(f"{where}, {which}: {len(crowded)} files of one kind and host{of_hosts}: {names}")


def _of_one(
    testbed: str,
    label: str,
    slots: Mapping[tuple[str, str], Sequence[Candidate]],
    refused: list[Candidate],
    where: str,
    number: bool,
    made: Plan,
) -> Iterator[Made]:
    """Yield a run, or as many as its files have measurements."""
    files = [slot[0] for slot in slots.values()]
    counts = {len(file.pieces) for file in files}
    if len(counts) > 1:
        counted = ", ".join(f"{file.scanned.path} has {len(file.pieces)}" for file in files[:4])
        made.conflicts.append(f"{where}: nothing shows which measurements belong together: {counted}")
        return
    count = next(iter(counts), 1)
    keyed = [file for file in files if file.only is not None]
    if count > 1 and label and not number and any("replicate" in file.file_key.within for file in keyed):
        made.conflicts.append(f"{where}, replicate {label}: {keyed[0].scanned.path} has {count} measurements of it")
        return
    if count > 1:
        of = f"{where}: " if keyed else ""
        made.numbered.append(f"{of}{files[0].scanned.path}: {count} measurements, one replicate each")
    for place in range(count):
        # A row that is the only one of its cell is numbered all the same: a table grows.
        own = label if count == 1 and (label or not keyed) else f"{label}#{place}"
        taken = [(file, file.pieces[place]) for file in files]
        yield _made(testbed, own, taken, refused if place == 0 else [])


def _each_alone(testbed: str, label: str, group: Sequence[Candidate], where: str, made: Plan) -> Iterator[Made]:
    """Yield every file as a replicate, named by its content, so that later files do not change it."""
    which = f"replicate {label}" if label else "no replicate in the paths"
    made.numbered.append(f"{where}: {len(group)} files with {which}, numbered in the order of their paths")
    for candidate in sorted(group, key=lambda member: natural(member.scanned.path)):
        for piece in candidate.pieces:
            yield _made(testbed, f"{label}={candidate.scanned.identity}#{piece}", [(candidate, piece)], [])
        if not candidate.pieces:
            yield _made(testbed, f"{label}={candidate.scanned.identity}", [], [candidate])


def _made(testbed: str, label: str, files: list[tuple[Candidate, int]], refused: list[Candidate]) -> Made:
    levels = (files[0][0] if files else refused[0]).file_key.levels
    cell: Document = {"testbed": testbed, "levels": dict(levels)}
    return Made(_hash({**cell, "label": label}), _hash(cell), testbed, levels, label, files, refused)


def _number(runs: Sequence[Made], first: int, have: Mapping[str, int]) -> None:
    """Number runs: by their own numbers where all have one, else after the runs that were there before."""
    own = [int(run.label) - first if run.label.isdecimal() else -1 for run in runs]
    if runs and all(0 <= number < MOST_REPLICATE for number in own):
        for run, number in zip(runs, own, strict=True):
            run.replicate = number
        return
    here = [have[run.id] for run in runs if run.id in have]
    after = max(here, default=-1) + 1
    for run in runs:
        if run.id in have:
            run.replicate = have[run.id]
        else:
            run.replicate, after = after, after + 1


def _outcomes(runs: Iterable[Made]) -> Iterator[Outcome]:
    into: dict[str, list[str]] = {}
    members: dict[str, list[Candidate]] = {}
    for run in runs:
        for candidate in run.candidates():
            into.setdefault(candidate.scanned.path, []).append(run.id)
            members.setdefault(candidate.scanned.path, []).append(candidate)
    for path, ids in into.items():
        file = whole(members[path])
        scanned = file.scanned
        if not scanned.pieces:
            state, reason = State.REFUSED, scanned.reason
        elif scanned.partly_read:
            state, reason = State.PARTLY, diagnostics(scanned)
        else:
            state, reason = State.READ, "; ".join(text for piece in scanned.pieces for text in piece.harmless)
        yield Outcome(path, state, reason, file, tuple(ids))
        for then in scanned.then:
            below = Candidate(file.file_key, replace(then, format=scanned.format))
            yield Outcome(then.path, state, f"read below {path}", below, tuple(ids))


def _once(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return one outcome of each file; of several for a file with parts, the one with runs."""
    by_path: dict[str, Outcome] = {}
    for outcome in outcomes:
        by_path.setdefault(outcome.path, outcome)
    return list(by_path.values())


def diagnostics(scanned: ScannedFile) -> str:
    """Return the first two problems of a file, and the number of others."""
    texts = [text for piece in scanned.pieces for text in (*piece.diagnostics, *piece.cautions)]
    count = sum(piece.diagnostic_count + len(piece.cautions) for piece in scanned.pieces)
    return "; ".join(texts[:2]) + (f"; and {count - 2} more" if count > 2 else "")


def _where(testbed: str, levels: Mapping[str, Level]) -> str:
    return ", ".join([testbed, *(f"{name} {level_text(level)}" for name, level in levels.items())])


def _hash(data: Document) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
