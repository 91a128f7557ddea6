"""Format ``bpftrace``: the counts that bpftrace prints when it ends, ``@[key]: 12`` and ``@name[key]: 12``.

All counts are the table ``bpftrace_counts`` (map, key, count).  Counts by system call, whose keys are tracepoints
(``tracepoint:syscalls:sys_enter_read``) or the kernel's functions (``sys_read``, ``__x64_sys_read``), are the instrument
``syscalls``'s metrics by kind.  The output does not name the calls that a program attached to, so a kind of which no call was
counted is null, and so are all calls together, except by the tracepoint ``raw_syscalls:sys_enter``.  A kind with a key that is
printed twice (cleared in between or not) is null too.  A manifest's ``keys`` names further metrics: ``keys: {'@[vfs_read]':
file_reads}``.  A key that is not printed is null, since bpftrace may have been asked for the largest only.

Numbers of calls (``@syscall[0]``) mean other calls on other processors and are in the table alone.  Histograms, stacks and text
that a program prints itself are not read.
Source: bpftrace(8) and bpftrace's tools/*_example.txt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count, head_text, table, unread
from twinbed.metrics.metric import Value
from twinbed.metrics.syscalls import METRICS, kind_of, unit
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

_COUNT = re.compile(r"@(\w*)(?:\[(.*)\])?: (\d{1,18})")
_KEYED = re.compile(r"^@\w*\[[^\]\n]+\]: \d+[ \t]*$", re.MULTILINE)
_ATTACHED = re.compile(r"^Attach(?:ing|ed) \d+ probes?", re.MULTILINE)
_ANY = re.compile(r"^@\w*: \d+[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"(?:tracepoint:syscalls:sys_enter_(\w+)|(?:(?:kprobe|kfunc|fentry):)?(?:__x64_|__ia32_|__arm64_|__s390x_|__se_)?[Ss]y[Ss]_(\w+))"
)
_ALL = "tracepoint:raw_syscalls:sys_enter"
_RENAMED = {"newstat": "stat", "newlstat": "lstat", "newfstat": "fstat", "newuname": "uname"}
"""Calls that the kernel's source names otherwise than its interface does."""
_LOST = re.compile(r"Lost (\d+) events")


def _recognises(head: bytes) -> bool:
    if b"@" not in head:
        return False
    text = head_text(head)
    return _KEYED.search(text) is not None or (_ATTACHED.search(text) is not None and _ANY.search(text) is not None)


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    named = _named(options)
    counts: dict[tuple[str, str], int] = {}
    twice: set[tuple[str, str]] = set()
    diagnostics: list[Diagnostic] = []
    for number, line in enumerate(source.text().split("\n"), start=1):
        match = _COUNT.fullmatch(line.rstrip())
        if match is None:
            if line.strip() == "..." or _LOST.search(line):
                diagnostics.append(unread(line, number, "counts are missing"))
            continue
        key = (match[1], match[2] or "")
        if key in counts:
            twice.add(key)
        counts[key] = count(match[3]) or 0
    if not counts:
        raise FormatError("has no counts of bpftrace")
    missing = bool(diagnostics)
    diagnostics += [
        Diagnostic(f"@{name}[{key}] occurs several times: nothing shows which of its counts is complete")
        for name, key in sorted(twice)
    ]
    values = [
        Value(f"{kind}_calls", None if missing else number, unit(f"{kind}_calls"))
        for kind, number in _kinds(counts, twice).items()
    ]
    values += [Value("system_calls", number, unit("system_calls")) for number in _all_calls(counts, twice)]
    printed = {_text(*key): key for key in reversed(counts)}
    for text, metric in named.items():
        known = text in printed and printed[text] not in twice
        values.append(Value(metric, counts[printed[text]] if known else None, "1"))
    return [Measurement(values, {"bpftrace_counts": _table(counts)}, (), diagnostics, {"tracer": "bpftrace"})]


def _named(options: Document) -> Mapping[str, str]:
    named = options.get("keys", {})
    if not isinstance(named, dict) or not all(isinstance(metric, str) for metric in named.values()):
        raise FormatError("the option keys maps the text before a number to a metric, such as {'@[vfs_read]': file_reads}")
    return {str(key): str(metric) for key, metric in named.items()}


def _text(name: str, key: str) -> str:
    return f"@{name}[{key}]" if key else f"@{name}"


def _call(key: str) -> str | None:
    """Return the system call that one of the parts of a key names."""
    for part in key.split(", "):
        if (match := _CALL.fullmatch(part)) is not None:
            name = match[1] or match[2]
            return _RENAMED.get(name, name)
    return None


def _kinds(counts: Mapping[tuple[str, str], int], twice: set[tuple[str, str]]) -> dict[str, int | None]:
    """Count the calls of each kind that has any; None where a count is not known. Each map counts all: two are not added."""
    by_map: dict[str, Counter[str]] = {}
    unknown: set[str] = set()
    for (name, key), number in counts.items():
        call = _call(key)
        if call is not None:
            by_map.setdefault(name, Counter())[kind_of(call)] += number
            if (name, key) in twice:
                unknown.add(kind_of(call))
    several = Counter(kind for kinds in by_map.values() for kind in kinds)
    return {
        kind: None if kind in unknown or several[kind] > 1 else number
        for kinds in by_map.values()
        for kind, number in kinds.items()
    }


def _all_calls(counts: Mapping[tuple[str, str], int], twice: set[tuple[str, str]]) -> list[int | None]:
    """Return the number of all calls together, where the tracepoint of all is a key."""
    whole = [key for key in counts if _ALL in key[1].split(", ")]
    if not whole:
        return []
    return [None if twice & set(whole) or len({name for name, _ in whole}) > 1 else sum(counts[key] for key in whole)]


def _table(counts: Mapping[tuple[str, str], int]) -> pa.Table:
    return table(
        {
            "map": ("string", [f"@{name}" for name, _ in counts]),
            "key": ("string", [key for _, key in counts]),
            "count": ("int64", counts.values()),
        }
    )


FORMATS = (
    Format(
        "bpftrace",
        "counts that bpftrace prints at its end",
        tuple(metric for metric in METRICS if metric.name.endswith("_calls") or metric.name == "system_calls"),
        _recognises,
        _read,
    ),
)
