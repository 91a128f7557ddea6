"""A text is known, and says the same, with other line ends, marks and encodings, and with a terminal's colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from formats.cases import Case, cases
from twinbed.reading.source import File
from twinbed.registry import PLUGINS

NAMES = (
    *("ab-text/plain", "ab-text/pasted", "h2load/http-1", "hey/plain", "owping/both-ways", "ping/iputils", "ping/languages"),
    *("siege/text-verbose", "tcptrace-text/retransmitted", "vmstat/plain", "wrk/plain", "wrk2/both-latencies"),
    "zeek-conn-tsv/baselines",
)
OTHERWISE: dict[str, Callable[[str], bytes]] = {
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16, as PowerShell writes": lambda text: text.encode("utf-16"),
    "colours": lambda text: "\n".join(f"\x1b[0m{line}\x1b[K" for line in text.split("\n")).encode(),
}


@pytest.mark.parametrize("written", OTHERWISE)
@pytest.mark.parametrize("case", [case for case in cases() if str(case) in NAMES], ids=str)
def test_a_text_written_otherwise_says_the_same(case: Case, written: str, tmp_path: Path) -> None:
    of, each = case.input, PLUGINS.formats[case.format]
    text = of.read_text()
    file = File(tmp_path / of.name, of.name)
    file.path.write_bytes(OTHERWISE[written](text))
    assert [name for name, other in PLUGINS.formats.items() if other.recognises(file.head())] == [each.name]
    found, expected = each.read(file, {}), each.read(File(of, of.name), {})
    assert [reading.values for reading in found] == [reading.values for reading in expected]
    assert [reading.flaws for reading in found] == [reading.flaws for reading in expected]
