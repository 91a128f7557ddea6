"""Every column of every connection of the captured kinds of TCP, against what tcptrace printed of them (tests/golden/tcp)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.traffic.documented import DOCUMENTED, UNREADABLE
from tests.traffic.peers import differences, stored_rows

from twinbed import _core

GOLDEN = Path(__file__).parents[2] / "golden" / "tcp"
CAPTURES = sorted(GOLDEN.glob("*.pcap"))


def rows(capture: Path) -> list[dict[str, object]]:
    table, _ = _core.flows([capture])
    found: list[dict[str, object]] = table.to_pylist()
    return found


@pytest.mark.parametrize("capture", [path for path in CAPTURES if path.stem not in UNREADABLE], ids=lambda path: path.stem)
def test_every_column_is_tcptraces(capture: Path) -> None:
    expected = stored_rows(capture)
    assert expected
    assert differences(rows(capture), expected, DOCUMENTED) == []


def test_what_is_documented_is_all_that_differs() -> None:
    """A column that comes to agree everywhere is to leave the list."""
    differing = set()
    for capture in CAPTURES:
        if capture.stem not in UNREADABLE:
            said = differences(rows(capture), stored_rows(capture), {})
            differing |= {line.split(": ")[1].split(" is ")[0].rsplit("_", 1)[0] for line in said}
    assert differing == DOCUMENTED.keys() - {"min_non_zero_owin"}


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_tcptrace_cannot_read_is_as_tshark_sums_it(name: str) -> None:
    assert stored_rows(GOLDEN / f"{name}.pcap") == []
    with (GOLDEN / f"{name}.pcap.tshark.tsv").open() as table:
        expected = {
            (row["source"], int(row["source_port"])): (int(row["packets"]), int(row["payload_bytes"]))
            for row in csv.DictReader(table, delimiter="\t")
        }
    (row,) = rows(GOLDEN / f"{name}.pcap")
    sides = (("a", "a2b"), ("b", "b2a"))
    ours = {
        (row[f"host_{side}"], row[f"port_{side}"]): (row[f"total_packets_{way}"], row[f"actual_data_bytes_{way}"])
        for side, way in sides
    }
    assert ours == expected
