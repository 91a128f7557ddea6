"""The TCP connections of captures, counted by several workers.

Each worker reads all packets and counts its share of the connections, chosen by a hash of their addresses and ports. The rows
are those of one pass, in the same order: limits on what is held are those of a hash's value, not of a worker
(``crates/core/src/readers/tcptrace/shards.rs``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydantic import ConfigDict
from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from twinbed import _core
from twinbed.executor.packed import packed, unpacked
from twinbed.executor.protocol import BadAnswer
from twinbed.readers.refusals import refusals

if TYPE_CHECKING:
    from twinbed._core import FlowsSummary
    from twinbed.executor import Executor

_SUMMARY = "summary.json"


class Asked(TypedDict):
    """Options that select packets and connections, as ``_core.flows`` takes them."""

    tunnels: bool
    port: int | None
    host: str | None
    from_ns: int | None
    until_ns: int | None


class _Cut(TypedDict):
    file: str
    byte: int
    reason: str


class _Summary(TypedDict):
    """``FlowsSummary`` of ``_core``, whose types are not there at run time."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    packets: int
    bytes: int
    captured_bytes: int
    first_s: float | None
    last_s: float | None
    first_ns: int | None
    last_ns: int | None
    protocols: dict[str, int]
    not_ip: dict[str, int]
    interfaces: int
    dropped_packets: int | None
    skipped: dict[str, int]
    notes: dict[str, int]
    rows: int
    truncated: list[_Cut]


@dataclass(frozen=True, slots=True)
class _Share:
    paths: Sequence[str]
    asked: Asked
    number: int
    of: int


@contextmanager
def counted(
    paths: Sequence[str], asked: Asked, executor: Executor, below: Path | None = None
) -> Iterator[tuple[list[Path], FlowsSummary]]:
    """Provide folders of shares for ``_core.flows_joined`` while the context lasts, and the summary of all.

    The workers must see the captures at the same paths. The folders are below ``below`` (None: the system's temporary files).
    Raises what ``_core.flows`` raises, and WorkerLost.
    """
    shares = min(executor.workers, _core.MOST_SHARES)
    tasks = [_Share(paths, asked, number, shares) for number in range(shares)]
    folders: list[Path] = []
    summaries: list[FlowsSummary] = []
    with TemporaryDirectory(prefix=".flows-", dir=below) as name:
        for number, answer in enumerate(executor.map(_count, tasks)):
            files = unpacked(answer)
            summaries.append(_summary(files.pop(_SUMMARY, b"")))
            (folder := Path(name) / str(number)).mkdir()
            for file, content in files.items():
                (folder / file).write_bytes(content)
            folders.append(folder)
        yield folders, _sum(summaries)


def _count(share: _Share) -> bytes:
    """Return the files of a share, and its summary."""
    with TemporaryDirectory(prefix="twinbed-flows-") as name, refusals():
        summary = _core.flows_share(share.paths, name, share.number, share.of, **share.asked)
        files = {file.name: file.read_bytes() for file in Path(name).iterdir()}
    return packed({**files, _SUMMARY: json.dumps(summary).encode()})


def _summary(content: bytes) -> FlowsSummary:
    """Return a checked summary. Raises BadAnswer for anything else."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(_Summary).validate_json(content, strict=True)
    except ValidationError as error:
        raise BadAnswer(f"a worker returned no summary of its share: {error.errors(include_url=False)[0]['msg']}") from None


def _sum(summaries: Sequence[FlowsSummary]) -> FlowsSummary:
    """Sum up all shares: each counts packets of its own, and has the same facts of the captures."""
    total = summaries[0].copy()
    for key in ("rows", "packets", "bytes", "captured_bytes"):
        total[key] = sum(summary[key] for summary in summaries)
    for reasons in ("protocols", "not_ip", "skipped", "notes"):
        counts = Counter[str]()
        for part in summaries:
            counts.update(part[reasons])
        total[reasons] = dict(sorted(counts.items()))
    timed = [summary for summary in summaries if summary["first_ns"] is not None]
    if timed:
        first, last = (
            min(timed, key=lambda summary: summary["first_ns"] or 0),
            max(timed, key=lambda summary: summary["last_ns"] or 0),
        )
        total |= {"first_s": first["first_s"], "first_ns": first["first_ns"]}
        total |= {"last_s": last["last_s"], "last_ns": last["last_ns"]}
    return total
