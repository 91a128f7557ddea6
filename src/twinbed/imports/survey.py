"""Everything that is found out before anything is written: the files of a folder, their kinds, and the runs they make.

Counters before a run and after it may be in two files or more: a pattern or manifest names them with ``snapshot``.  Such files
are read as if one stood below the other in one file, as their formats read a file with several.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from twinbed.contracts.format import Format
from twinbed.executor import Executor
from twinbed.imports.fact_levels import described, factors, with_levels
from twinbed.imports.layout.fences import Fence, fences_of, is_markdown
from twinbed.imports.layout.infer_pattern import propose
from twinbed.imports.layout.manifest import Listed
from twinbed.imports.layout.names import natural, shown
from twinbed.imports.layout.pattern import cpu_limit
from twinbed.imports.layout.run_key import Assigner, FileKey, ImportRefused, NotAssigned
from twinbed.imports.layout.walk import MOST_FILES, Entry, Left, walk
from twinbed.imports.plan import plan
from twinbed.imports.runs import Candidate, Outcome, Plan, State, parts
from twinbed.imports.scan import ScannedFile, ScanRequest, scan_files
from twinbed.imports.text.source import HEAD_BYTES
from twinbed.model.json import Document

OPTIONS: Mapping[str, Document] = {
    "proc-snapshot": {},
    "tc-s": {"before_and_after": True},
    "ethtool-S": {"before_and_after": True},
    "nstat": {"counts": "totals"},
}
"""Format -> the options with the same meaning for one file."""
MOST_SNAPSHOTS = 200
"""Files of one run that are read as one: all are open at once."""


def together(
    file_key: Mapping[str, FileKey], scan: Callable[[Sequence[ScanRequest]], Sequence[ScannedFile]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, FileKey]]:
    """Return first file -> those after it, and the keys of the first ones.

    ``scan`` returns kinds.  Two files of one snapshot, kind, host and run stay apart: nobody knows which of them counts.
    Raises ImportRefused where a run has more than ``MOST_SNAPSHOTS``.
    """
    paths = [path for path, key in file_key.items() if key.snapshot]
    kinds = {file.path: file.format for file in scan([ScanRequest(path, file_key[path].format, read=False) for path in paths])}
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for path in paths:
        assigned = file_key[path]
        if kinds[path] in OPTIONS:
            run = (assigned.testbed, tuple(sorted(assigned.levels.items(), key=repr)), assigned.replicate, assigned.host)
            groups[(kinds[path], *run)].append(path)
    after: dict[str, tuple[str, ...]] = {}
    changed: dict[str, FileKey] = {}
    for (kind, *_), members in groups.items():
        ordered = sorted(members, key=lambda path: _place(file_key[path].snapshot))
        if len(members) < 2 or len({file_key[path].snapshot for path in members}) < len(members):
            continue
        if len(members) > MOST_SNAPSHOTS:
            raise ImportRefused(
                f"{shown(ordered[0])} and {len(members) - 1:,} others are snapshots of one run, above {MOST_SNAPSHOTS}",
                advice="put them into one file, one below the other, or keep only the first and the last in the folder",
            )
        first = file_key[ordered[0]]
        after[ordered[0]] = tuple(ordered[1:])
        changed[ordered[0]] = replace(first, options={**OPTIONS[str(kind)], **first.options})
    return after, changed


def _place(snapshot: str) -> tuple[int, object]:
    return (0, natural(snapshot)) if snapshot.isdecimal() else (1, snapshot != "before")


@dataclass(frozen=True, slots=True)
class Request:
    """A folder to be surveyed, and how."""

    folder: Path
    assigner: Callable[[Sequence[str]], Assigner] | None
    """Called with the paths; None where the user gave no pattern or manifest."""
    limited: bool = False
    """True if it has regular expressions of the user."""
    number: bool = False
    most: int = MOST_FILES
    without: Collection[Path] = ()
    have: Mapping[str, int] = field(default_factory=dict)
    """Runs that were imported before, and their replicates."""
    factors: Sequence[str] = ()
    """Facts that files state and that are factors."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The result. ``left`` lists entries that are not read, such as links that lead out."""

    plan: Plan
    left: Sequence[Left]


def survey(
    request: Request,
    formats: Mapping[str, Format],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    executor: Executor | None = None,
) -> Survey:
    """Survey a folder. ``executor`` reads the files (None: this process). Raises ImportRefused where nothing can be read."""
    entries, left = walk(request.folder, request.most, request.without)
    if not entries:
        left_text = f"; {len(left)} entries are left out, such as {shown(left[0].path)}, which {left[0].reason}" if left else ""
        raise ImportRefused(f"{shown(str(request.folder))} holds no files{left_text}")
    paths = [entry.path for entry in entries]
    fences = _fences(request.folder, paths)
    if request.assigner is None:
        raise _how(_outputs(paths, fences, formats))
    assigner = request.assigner(paths)
    file_key, unknown = _file_keys(assigner, paths, request.limited)
    sizes = _sizes(entries)
    paths, unknown = _with_fences(paths, fences, file_key, unknown, assigner, request.limited)
    below, changed = together(file_key, lambda requests: scan_files(request.folder, requests, formats, sizes))
    file_key |= changed
    read_below = {path for paths in below.values() for path in paths}
    requests = [_scan_request(path, file_key.get(path), below.get(path, ())) for path in paths if path not in read_below]
    scanned = scan_files(request.folder, requests, formats, sizes, on_progress, executor)
    candidates = [Candidate(file_key[file.path], file) for file in scanned if file.path in file_key]
    passed = {
        candidate.scanned.path for candidate in candidates if candidate.file_key.optional and not candidate.scanned.format
    }
    read = [candidate for candidate in candidates if candidate.scanned.path not in passed]
    stated = factors(read, request.factors)
    planned = plan(
        [part for candidate in with_levels(read, stated) for part in parts(candidate)],
        formats,
        number=request.number,
        have=request.have,
    )
    planned.otherwise = _either(file_key)
    planned.stated = list(described(read, stated))
    planned.outcomes += [_ignored(file, unknown[file.path]) for file in scanned if file.path in unknown]
    planned.outcomes += [Outcome(file.path, State.IGNORED, file.reason) for file in scanned if file.path in passed]
    if isinstance(assigner, Listed):
        reasons = {file.path: file.reason for file in left}
        lacking = [path for path in assigner.rows if path not in file_key]
        planned.outcomes += [Outcome(path, State.REFUSED, reasons.get(path, "is missing")) for path in lacking]
    if not planned.runs and not planned.conflicts:
        raise _nothing(planned, paths)
    return Survey(planned, left)


def _scan_request(path: str, file_key: FileKey | None, then: tuple[str, ...]) -> ScanRequest:
    if file_key is None:
        return ScanRequest(path, read=False)
    units = {metric.name: metric.unit for metric in file_key.metrics}
    return ScanRequest(path, file_key.format, file_key.options, then=then, units=units)


def _file_keys(assigner: Assigner, paths: Sequence[str], limited: bool) -> tuple[dict[str, FileKey], dict[str, str]]:
    keys: dict[str, FileKey] = {}
    unknown: dict[str, str] = {}
    with cpu_limit() if limited else contextlib.nullcontext():
        for path in paths:
            try:
                keys[path] = assigner.assign(path)
            except NotAssigned as error:
                unknown[path] = str(error)
    return keys, unknown


def _fences(folder: Path, paths: Sequence[str]) -> dict[str, tuple[Fence, ...]]:
    """Return the fences of each Markdown file that has any."""
    by_path = {path: fences_of(os.path.realpath(folder / path)) for path in paths if is_markdown(path)}
    return {path: fences for path, fences in by_path.items() if fences}


def _outputs(paths: Sequence[str], fences: Mapping[str, Sequence[Fence]], formats: Mapping[str, Format]) -> list[str]:
    """Return the paths, and instead of a Markdown file its fences with a program's output."""
    outputs: list[str] = []
    for path in paths:
        heads = {f"{path}/{fence.path}": fence.text.encode()[:HEAD_BYTES] for fence in fences.get(path, ())}
        below = [name for name, head in heads.items() if any(kind.recognises(head) for kind in formats.values())]
        outputs += below or [path]
    return outputs


def _with_fences(
    paths: Sequence[str],
    fences: Mapping[str, Sequence[Fence]],
    file_key: dict[str, FileKey],
    unknown: dict[str, str],
    assigner: Assigner,
    limited: bool,
) -> tuple[list[str], dict[str, str]]:
    """Replace Markdown files without a run by their fences with one; return paths, and reasons of those without a run.

    The keys of fences are added to ``file_key``. A Markdown file that has a run itself is one file.
    """
    every: list[str] = []
    reasons = dict(unknown)
    for path in paths:
        if path not in unknown or path not in fences:
            every.append(path)
            continue
        below = [f"{path}/{fence.path}" for fence in fences[path]]
        keys, others = _file_keys(assigner, below, limited)
        file_key |= keys
        if keys:
            del reasons[path]
            every += below
            reasons |= others
        else:
            every.append(path)
            reasons[path] += f"; nor do its {len(below)} fences, such as {below[0]}"
    return every, reasons


def _sizes(entries: Sequence[Entry]) -> dict[str, int]:
    return {entry.path: entry.bytes for entry in entries}


def _either(file_key: Mapping[str, FileKey]) -> list[str]:
    """Return both readings of a path, once for all paths that differ in nothing else."""
    paths: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for path, key in file_key.items():
        if key.otherwise:
            paths.setdefault(key.otherwise, []).append(path)
    return [
        ", ".join(f"{name} {here} (or {other})" for name, here, other in either)
        + f": {group[0]}"
        + (f" and {len(group) - 1} more" if len(group) > 1 else "")
        for either, group in paths.items()
    ]


def _ignored(scanned: ScannedFile, why: str) -> Outcome:
    kind = f"; its format is {scanned.format}" if scanned.format else ""
    return Outcome(scanned.path, State.IGNORED, f"{why}{kind}")


def _how(paths: Sequence[str]) -> ImportRefused:
    """Return the error that shows sample paths and proposes a pattern."""
    step = max(1, len(paths) // 5)
    sample = "\n".join(f"  {shown(path)}" for path in paths[::step][:5])
    proposal = propose(paths)
    advice = "name the parts of the paths: --pattern '{testbed}_{direction}_{replicate:int}.txt'"
    if proposal is not None:
        whose = "" if "{testbed}" in proposal.pattern else " --testbed NAME"
        advice = (
            f"{proposal.matches} of them look like\n    --pattern '{proposal.pattern}'{whose}\n"
            "  give the fields their real names, then check with --dry-run"
        )
    return ImportRefused(
        f"the testbed and replicate of {len(paths)} files are not known; an example path is\n{sample}", advice=advice
    )


def _nothing(planned: Plan, paths: Sequence[str]) -> ImportRefused:
    first = next((outcome for outcome in planned.outcomes if outcome.state is State.REFUSED), None)
    if first is not None:
        return ImportRefused(
            f"none of the {len(paths)} files can be imported: {shown(first.path)} {first.reason}",
            advice="docs/import.md lists the kinds of files that are read",
            exit_code=1,
        )
    return ImportRefused(f"none of the {len(paths)} paths matches: {planned.outcomes[0].reason}", advice=_how(paths).advice)
