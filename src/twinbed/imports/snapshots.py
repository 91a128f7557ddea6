"""Counters before a run and after it, in two files or more: which belong together, and in which order.

A pattern or manifest says it with ``snapshot``.  What counters were before and after is read from both as if one stood below
the other in one file, which is how their formats read a file with several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from twinbed.imports.layout.names import natural, shown
from twinbed.imports.layout.run_key import FileKey, ImportRefused
from twinbed.imports.scan import ScannedFile, ScanRequest
from twinbed.model.json import Document

OPTIONS: Mapping[str, Document] = {
    "proc-snapshot": {},
    "tc-s": {"before_and_after": True},
    "ethtool-S": {"before_and_after": True},
    "nstat": {"counts": "totals"},
}
"""Format -> the options that say the same of one file."""
MOST = 200
"""Files of one run that are read as one: all are open at once."""


def together(
    file_key: Mapping[str, FileKey], scan: Callable[[Sequence[ScanRequest]], Sequence[ScannedFile]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, FileKey]]:
    """First file -> those after it; and what is to be said of the first ones.

    Raises ImportRefused where a run has more than ``MOST``.  ``scan`` tells kinds.  Two files of one snapshot, kind, host
    and run are left apart: which of them counts nobody knows.
    """
    paths = [path for path, each in file_key.items() if each.snapshot]
    kinds = {each.path: each.format for each in scan([ScanRequest(path, file_key[path].format, read=False) for path in paths])}
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for path in paths:
        each = file_key[path]
        if kinds[path] in OPTIONS:
            run = (each.testbed, tuple(sorted(each.levels.items(), key=repr)), each.replicate, each.host)
            groups[(kinds[path], *run)].append(path)
    after: dict[str, tuple[str, ...]] = {}
    changed: dict[str, FileKey] = {}
    for (kind, *_), members in groups.items():
        ordered = sorted(members, key=lambda path: _place(file_key[path].snapshot))
        if len(members) < 2 or len({file_key[path].snapshot for path in members}) < len(members):
            continue
        if len(members) > MOST:
            raise ImportRefused(
                f"{shown(ordered[0])} and {len(members) - 1:,} others are snapshots of one run, above {MOST}",
                advice="put them into one file, one below the other, or only the first and the last into the folder",
            )
        first = file_key[ordered[0]]
        after[ordered[0]] = tuple(ordered[1:])
        changed[ordered[0]] = replace(first, options={**OPTIONS[str(kind)], **first.options})
    return after, changed


def _place(snapshot: str) -> tuple[int, object]:
    return (0, natural(snapshot)) if snapshot.isdecimal() else (1, snapshot != "before")
