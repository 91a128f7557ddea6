"""A text is known, and says the same, with other line ends, marks and encodings, and with a terminal's colours."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from format_cases import Case, cases
from twinbed.imports.text.source import File
from twinbed.registry import PLUGINS

NAMES = (
    *("ab-text/plain", "ab-text/pasted", "h2load/http-1", "hey/plain", "owping/both-ways", "ping/iputils", "ping/languages"),
    *("siege/text-verbose", "tcptrace-text/retransmitted", "vmstat/plain", "wrk/plain", "wrk2/both-latencies"),
    "zeek-conn-tsv/baselines",
)
BY_PATH = ("perf-script/printed", "strace/follow-times", "strace/summary-below", "sysdig/by-hand", "trace-cmd/report")
"""Traces, which are read by their path."""
OTHERWISE: dict[str, Callable[[str], bytes]] = {
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16, as PowerShell writes": lambda text: text.encode("utf-16"),
    "colours": lambda text: "\n".join(f"\x1b[0m{line}\x1b[K" for line in text.split("\n")).encode(),
}
COMPRESSED: dict[str, Callable[[str], bytes]] = {
    "UTF-16, compressed": lambda text: gzip.compress(text.encode("utf-16"), mtime=0),
}
ALL = [case for case in cases() if str(case) in (*NAMES, *BY_PATH, "irtt-json/lost-there")]


def written(case: Case) -> Mapping[str, Callable[[str], bytes]]:
    """How a case's text may be written otherwise; colours come from terminals, on which nobody has traces or documents."""
    return OTHERWISE if str(case) in NAMES else {how: OTHERWISE[how] for how in OTHERWISE if how != "colours"} | COMPRESSED


@pytest.mark.parametrize(("case", "how"), [(case, how) for case in ALL for how in written(case)], ids=str)
def test_a_text_written_otherwise_says_the_same(case: Case, how: str, tmp_path: Path) -> None:
    of, each = case.input, PLUGINS.formats[case.format]
    text = of.read_text()
    file = File(tmp_path / of.name, of.name)
    file.path.write_bytes(written(case)[how](text))
    assert [name for name, other in PLUGINS.formats.items() if other.recognises(file.head())] == [each.name]
    found, expected = each.read(file, {}), each.read(File(of, of.name), {})
    assert [measurement.values for measurement in found] == [measurement.values for measurement in expected]
    assert [measurement.diagnostics for measurement in found] == [measurement.diagnostics for measurement in expected]
