"""Packs results into one file: the same results make the same file, byte for byte."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.results.archive.crate import Authorship, Member, citation, crate
from twinbed.results.archive.layout import CHECKSUMS, CITATION, METADATA, REPORT, members, most_bytes
from twinbed.results.store import FROZEN, Store
from twinbed.terminal import visible
from twinbed.tree import Tree

FORMAT = 1
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The date of every member: zip has no earlier one."""
_PART_BYTES = 2**20


def pack(
    store: Store,
    facts: Mapping[tuple[str, str], Sequence[str]],
    report: str,
    file: Path,
    *,
    raw: bool,
    authorship: Authorship,
    version: str,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write the archive under a temporary name, and rename it; return the number of its files. ``store`` has tables that are up
    to date; ``report`` is the page of its results."""
    texts = {REPORT: report, CITATION: citation(store, authorship, version)}
    if store.frozen:
        texts[FROZEN] = store.tree.read(FROZEN).decode(errors="replace")
    elif not raw:
        texts[FROZEN] = json.dumps({"format": FORMAT, "twinbed": version}) + "\n"
    files = list(members(store.tree, raw=raw))
    parent, partial = Tree(file.parent), f".{file.name}.partial"
    try:
        with (
            parent.create(partial) as sink,
            zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
        ):
            packed = [_add(archive, name, (visible(text).encode(),)) for name, text in sorted(texts.items())]
            for number, name in enumerate(files, start=1):
                packed.append(_add(archive, name, _parts(store.tree, name)))
                if on_progress is not None:
                    on_progress(number, len(files))
            packed.sort(key=lambda member: member.name)
            packed.append(_add(archive, METADATA, (visible(crate(store, facts, packed, authorship, version)).encode(),)))
            sums = "".join(f"{member.sha256}  {member.name}\n" for member in packed)
            _add(archive, CHECKSUMS, (sums.encode(),))
        size, most = sum(member.bytes for member in packed), most_bytes((file.parent / partial).stat().st_size)
        if size > most:
            raise TwinbedError(
                f"{file} would hold {size:,} bytes, but at most {most:,} are unpacked: the results compress too well",
                advice="look for large files of zeros among the artifacts, or archive with --no-raw",
            )
        parent.rename(partial, file.name)
    finally:
        parent.remove(partial)
    return len(packed) + 1


def _parts(results: Tree, name: str) -> Iterable[bytes]:
    with results.open(name) as stream:
        while part := stream.read(_PART_BYTES):
            yield part


def _add(archive: zipfile.ZipFile, name: str, parts: Iterable[bytes]) -> Member:
    entry = zipfile.ZipInfo(name, _MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o100644 << 16
    digest, size = hashlib.sha256(), 0
    with archive.open(entry, "w", force_zip64=True) as stream:
        for part in parts:
            stream.write(part)
            digest.update(part)
            size += len(part)
    return Member(name, size, digest.hexdigest())
