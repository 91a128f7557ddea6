"""The owner of an artifact: the workload, an instrument, a background load, or none."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from twinbed.contracts.plugins import AnyWorkload
from twinbed.model.json import text
from twinbed.model.keep import REST
from twinbed.model.record import Record
from twinbed.results.extract.rows import Measuring, Readers

_OF_THE_LINK_CHECK = "link-check.*"
"""Names of artifacts of the lab's own check of links (linkcheck)."""


def plugins_of(record: Record, readers: Readers) -> Iterator[AnyWorkload | Measuring]:
    """Yield the known workload, instruments and background loads of a run."""
    kind = text(record.settings["workload"]["kind"])
    if kind in readers.workloads:
        yield readers.workloads[kind]
    for each in (record.settings["instruments"], record.settings.get("background", {})):
        kinds = (text(settings["kind"]) for settings in each.values())
        yield from (readers.accompanying[kind] for kind in kinds if kind in readers.accompanying)


def owner(path: str, record: Record, readers: Readers) -> str:
    """Return the name of the plugin that owns the artifact ``path``: the longest matching pattern decides."""
    name = path.split("/")[2] if path.count("/") > 1 else path
    if fnmatchcase(name, _OF_THE_LINK_CHECK):
        return REST
    found = {pattern: each.name for each in plugins_of(record, readers) for pattern in each.files if fnmatchcase(name, pattern)}
    return found[max(found, key=len)] if found else REST
