"""``_core.capture_tables``: one pass over a capture gives what each reader gives by itself."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from twinbed import _core

GOLDEN = Path(__file__).parents[3] / "tests" / "golden"
CAPTURES = sorted(file for pattern in ("*.pcap", "*.pcapng", "*.pcap.gz") for file in GOLDEN.rglob(pattern))


def alone(path: Path) -> tuple[dict[str, Any], Any]:
    """The same by one call for each reader."""
    log, summary = _core.connection_log([path], ignore_checksums=True)
    flows, of_flows = _core.flows([path])
    # The log itself does not look at the order of times.
    summary["notes"] |= {note: count for note, count in of_flows["notes"].items() if note.startswith("dated_")}
    directions, sizes, _ = _core.packetisation(path)
    exchanges, _ = _core.requests(path)
    streams, _ = _core.udp_streams(path)
    steps, _ = _core.capture_tables(path, ["steps", "stalls"])
    observed, _ = _core.capture_tables(path, ["observer"])
    tables = {"connections": log, "flows": flows, "packetisation": directions, "segment_sizes": sizes, "exchanges": exchanges}
    of_steps = {name: steps[name] for name in ("steps", "step_waits", "step_packets", "stalls")}
    return {**tables, "streams": streams, **of_steps, **observed}, summary


def outcome(read: Any, path: Path) -> Any:
    try:
        tables, summary = read(path)
    except (ValueError, OSError) as error:
        return type(error), str(error)
    return {name: table.combine_chunks() for name, table in tables.items()}, summary


def together(path: Path) -> Any:
    return _core.capture_tables(path, ignore_checksums=True)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_one_pass_gives_what_each_reader_gives(path: Path) -> None:
    assert outcome(together, path) == outcome(alone, path)


@pytest.mark.parametrize("kept", [0, 3, 24, 30, 41, 200, 1001, -1])
def test_captures_that_are_cut_or_damaged(tmp_path: Path, kept: int) -> None:
    whole = max(CAPTURES, key=lambda path: path.stat().st_size if path.suffix == ".pcap" else 0).read_bytes()[:4000]
    cut, damaged, packed = (tmp_path / name for name in ("cut.pcap", "damaged.pcap", "cut.pcap.gz"))
    cut.write_bytes(whole[:kept])
    damaged.write_bytes(whole[:kept] + bytes([255]) * 40 + whole[kept:])
    packed.write_bytes(gzip.compress(whole)[:kept])
    for path in (cut, damaged, packed):
        assert outcome(together, path) == outcome(alone, path), path.name


def test_only_what_is_wanted_is_made() -> None:
    tables, summary = _core.capture_tables(CAPTURES[0], ["flows", "packetisation"])
    assert tables.keys() == {"flows", "packetisation", "segment_sizes"}
    assert summary is None, "it is the log's"
    with pytest.raises(ValueError, match="no table of a capture"):
        _core.capture_tables(CAPTURES[0], ["flow"])
