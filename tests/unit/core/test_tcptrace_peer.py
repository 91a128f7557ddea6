"""The reading of tcptrace's output, held against tshark's sums, and the comparison with planted differences."""

from __future__ import annotations

import csv
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from tests.traffic.peers import Printed, differences, tcptrace_rows

GOLDEN = Path(__file__).parents[2] / "golden"
# Of fragments tcptrace counts the first one's payload only, tshark the packet's put together; 802.1ad it does not read at all.
OTHERWISE = {"fragmentation-a", "stacked-vlan-trunk"}
CAPTURES = [path for path in sorted((GOLDEN / "tcp").glob("*.pcap")) if path.stem not in OTHERWISE]
# Columns that tshark sums: ours -> tshark.tsv's.
SUMS = {"total_packets": "packets", "actual_data_bytes": "payload_bytes", "syn_pkts_sent": "syn", "fin_pkts_sent": "fin"}
SUMS["resets_sent"] = "rst"

pytestmark = pytest.mark.skipif(not shutil.which("tcptrace"), reason="needs tcptrace (./setup.sh test)")


def plain(row: dict[str, object]) -> dict[str, object]:
    """A row as twinbed would give it, were every number exactly the one printed."""
    return {name: float(cell.value) if isinstance(cell, Printed) else cell for name, cell in row.items()}


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_sums_are_those_of_tshark(capture: Path) -> None:
    with Path(f"{capture}.tshark.tsv").open() as table:
        sums: dict[tuple[str, int, str, int], dict[str, int]] = {}
        for row in csv.DictReader(table, delimiter="\t"):
            key = (row["source"], int(row["source_port"]), row["destination"], int(row["destination_port"]))
            total = sums.setdefault(key, dict.fromkeys(SUMS.values(), 0))
            for name in total:
                total[name] += int(row[name])
    ours: dict[tuple[object, ...], dict[str, int]] = {}
    for row in tcptrace_rows(capture):
        for ending, source, destination in (("a2b", "a", "b"), ("b2a", "b", "a")):
            key = tuple(row[f"{what}_{side}"] for side in (source, destination) for what in ("host", "port"))
            total = ours.setdefault(key, dict.fromkeys(SUMS.values(), 0))
            for own, name in SUMS.items():
                total[name] += row[f"{own}_{ending}"]  # type: ignore[operator]
    assert {key: total for key, total in ours.items() if total["packets"]} == sums


def test_units_and_missing_values() -> None:
    row = tcptrace_rows(GOLDEN / "captures" / "zeek-get.pcap")[0]
    assert len(row) == 153 and all(name.isidentifier() and name == name.lower() for name in row)
    # As `tcptrace -n -l -r` prints them: 69.0 ms, 0.000 secs, 23659 Bps, 1/1, Y/Y, 0:00:00.211628, 1362692527.80972.
    assert row["rtt_min_a2b"] == Printed(Decimal("0.069"), Decimal("0.0001"))
    assert row["data_xmit_time_b2a"] == Printed(Decimal(0), Decimal("0.001"))
    assert row["throughput_b2a"] == Printed(Decimal(23659), Decimal(1))
    assert (row["syn_pkts_sent_a2b"], row["req_1323_ts_b2a"], row["complete_conn"]) == (1, True, "yes")
    assert row["elapsed_time"] == Printed(Decimal("0.211628"), Decimal("0.000001"))
    assert row["last_packet_ns"] == Printed(Decimal(1362692527_080972_000), Decimal(1000))
    # ttl stream length 300, unique bytes 601; tcptrace prints 18446744073709551315.
    assert tcptrace_rows(GOLDEN / "tcp" / "port-reuse-a.pcap")[3]["missed_data_a2b"] == -301
    half_open = tcptrace_rows(GOLDEN / "tcp" / "half-open-a.pcap")[0]
    assert (half_open["ttl_stream_length_a2b"], half_open["idletime_max_b2a"], half_open["syns"]) == (None, None, 1)


def test_pcapng_is_read_too(tmp_path: Path) -> None:
    for name in ("ipv6-a", "port-reuse-b"):
        pcap, pcapng = GOLDEN / "tcp" / f"{name}.pcap", tmp_path / f"{name}.pcapng"
        subprocess.run(["editcap", "-F", "pcapng", pcap, pcapng], check=True)
        assert tcptrace_rows(pcapng) == tcptrace_rows(pcap)


@pytest.mark.parametrize("name", ["loss-a", "half-open-a", "port-reuse-b", "ipv6-a", "duplication-a"])
def test_every_planted_difference_is_found(name: str) -> None:
    for row in tcptrace_rows(GOLDEN / "tcp" / f"{name}.pcap")[:2]:
        assert differences([plain(row)], [row], {}) == []
        for column, cell in row.items():
            changed = different(cell)
            said = differences([{**plain(row), column: changed}], [row], {})
            assert len(said) == 1 and f" {column} is {changed}" in said[0], said
            base = column.removesuffix("_a2b").removesuffix("_b2a")
            assert differences([{**plain(row), column: changed}], [row], {base: lambda *_: True}) == []
            without = {name: value for name, value in plain(row).items() if name != column}
            assert differences([without], [row], {}) == [f"connection 1: no column {column}"]


def different(cell: object) -> object:
    if isinstance(cell, Printed):
        return float(cell.value + 2 * cell.step)
    if isinstance(cell, bool):
        return not cell
    return cell + 1 if isinstance(cell, int) else f"not {cell}"


def test_printed_precision_and_nothing_measured() -> None:
    row = {"rtt_min_a2b": Printed(Decimal("0.0690"), Decimal("0.0001")), "rtt_samples_a2b": 3}
    for number, agrees in ((0.06895, True), (0.06904999, True), (0.069051, False), (None, False), (0.06894, False)):
        assert (differences([{**row, "rtt_min_a2b": number}], [row], {}) == []) is agrees, number
    zero = {"rtt_min_a2b": Printed(Decimal(0), Decimal("0.0001")), "duplicate_acks_a2b": 0}
    for samples, agrees in ((0, True), (3, False)):
        ours = {"rtt_min_a2b": None, "duplicate_acks_a2b": 0, "rtt_samples_a2b": samples}
        assert (differences([ours], [{**zero, "rtt_samples_a2b": samples}], {}) == []) is agrees
    assert differences([{"duplicate_acks_a2b": None}], [{"duplicate_acks_a2b": 0}], {}) != []
    assert differences([], [row], {}) == ["0 connections where tcptrace has 1"]
