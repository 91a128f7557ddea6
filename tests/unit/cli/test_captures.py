"""The commands that read captures: what they print and write, how they refuse. Counts are tcptrace's, tshark's or Zeek's."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from twinbed.cli.captures import chosen_style
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.model.error import TwinbedError
from twinbed.show.quantities import quantity

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = GOLDEN / "captures"
SHORT = CAPTURES / "http-short.pcap"
"""20 connections of 12 packets by `tshark -z conv,tcp`."""


def lines(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture
def shown(capfdbinary):
    """Runs a command line: exit code, standard output, standard error."""

    def command(*arguments: str | Path) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return command


def tcptrace(capture: Path) -> list[dict[str, str]]:
    """The rows of tcptrace's own output, as stored in golden/flows."""
    text = (capture.parents[1] / "flows" / f"{capture.name}.tcptrace.csv").read_text()
    rows = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [{name.strip(): value.strip() for name, value in row.items() if name} for row in csv.DictReader(rows)]


def test_flows_are_a_row_a_connection_in_every_format(shown, tmp_path):
    expected = [int(row["total_packets_a2b"]) for row in tcptrace(SHORT)]
    code, text, said = shown("flows", SHORT)
    assert (code, len(text.splitlines())) == (codes.DONE, 1 + len(expected))
    assert f"{len(expected)} TCP connections in " in said
    header, *rows = lines(shown("flows", "--format", "csv", SHORT)[1])
    assert [int(row[header.index("total_packets_a2b")]) for row in rows] == expected
    decoded = json.loads(shown("flows", "--format", "json", SHORT)[1])
    assert [row["total_packets_a2b"] for row in decoded] == expected
    assert shown("flows", SHORT, "-o", tmp_path / "flows.parquet")[:2] == (codes.DONE, "")
    assert pq.read_table(tmp_path / "flows.parquet")["total_packets_a2b"].to_pylist() == expected


def test_long_text_has_every_column_of_a_row(shown):
    row = json.loads(shown("flows", "--format", "json", SHORT)[1])[0]
    first = shown("flows", "--long", SHORT)[1].split("\n\n")[0]
    for name in row:
        if name.endswith("_a2b"):
            assert f"  {name.removesuffix('_a2b').replace('_', ' ')} " in first


def test_missing_is_empty_and_null_and_never_0(shown):
    """Handshakes without data have no segment sizes; tcptrace prints NA or 0 for them."""
    capture = CAPTURES / "zeek-syn-then-rst.pcap"
    header, *rows = lines(shown("flows", "--format", "csv", capture)[1])
    assert rows[0][header.index("min_segm_size_a2b")] == ""
    assert json.loads(shown("flows", "--format", "json", capture)[1])[0]["min_segm_size_a2b"] is None


def test_ports_hosts_and_times_choose(shown):
    everything = json.loads(shown("flows", "--format", "json", SHORT)[1])
    third = everything[2]
    port = json.loads(shown("flows", "--format", "json", "--port", str(third["port_a"]), SHORT)[1])
    assert [row["port_a"] for row in port] == [third["port_a"]]
    assert len(json.loads(shown("flows", "--format", "json", "--host", third["host_b"], SHORT)[1])) == len(everything)
    assert json.loads(shown("flows", "--format", "json", "--host", "192.0.2.1", SHORT)[1]) == []
    moment = f"{third['first_packet_ns'] // 10**9}.{third['first_packet_ns'] % 10**9:09}"
    begun = sum(row["first_packet_ns"] < third["first_packet_ns"] for row in everything)
    assert len(json.loads(shown("flows", "--format", "json", "--until", moment, SHORT)[1])) == begun > 0
    assert len(json.loads(shown("connections", "--format", "json", "--until", moment, SHORT)[1])) == begun
    packets = sum(row["total_packets"] for row in everything)
    parts = [json.loads(shown("flows", "--format", "json", side, moment, SHORT)[1]) for side in ("--until", "--from")]
    assert sum(row["total_packets"] for part in parts for row in part) == packets


@pytest.mark.parametrize(("option", "value"), [("--host", "localhost"), ("--from", "yesterday"), ("--port", "65536")])
def test_what_is_no_host_time_or_port_is_refused_by_name(shown, option, value):
    code, out, said = shown("flows", option, value, SHORT)
    assert (code, out) == (codes.USAGE, "") and value in said


def test_the_order_of_files_changes_nothing(shown):
    files = [SHORT, CAPTURES / "http-keepalive.pcap"]
    for command in ("flows", "connections"):
        one = shown(command, "--format", "csv", *files)
        assert one == shown(command, "--format", "csv", *reversed(files)) and one[0] == codes.DONE


@pytest.mark.parametrize("command", ["flows", "connections"])
def test_a_cut_off_capture_gives_its_rows_says_where_it_stopped_and_exits_1(shown, tmp_path, command):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(SHORT.read_bytes()[:-5])
    code, text, said = shown(command, "--format", "csv", cut)
    assert code == codes.INPUT_CUT == 1
    assert len(lines(text)) > 2
    offset = len(SHORT.read_bytes())
    (stop,) = [line for line in said.splitlines() if "stopped at byte" in line]
    at = int(stop.split("byte ")[1].split(":")[0].replace(",", ""))
    assert offset - 200 < at < offset, "where the last record begins"
    assert str(cut) in stop


@pytest.mark.parametrize("command", ["flows", "connections"])
@pytest.mark.parametrize(("content", "what"), [(b"PK\x03\x04" * 9, "ZIP"), (b"hello, world\n" * 9, "text"), (b"", "")])
def test_what_is_no_capture_is_refused_by_name_with_what_it_looks_like(shown, tmp_path, command, content, what):
    file = tmp_path / "capture.pcap"
    file.write_bytes(content)
    code, out, said = shown(command, file)
    assert (code, out) == (codes.USAGE, "")
    assert str(file) in said and what in said


def test_a_file_that_is_not_there_is_named(shown, tmp_path):
    code, _, said = shown("flows", tmp_path / "none.pcap")
    assert code == codes.USAGE and "none.pcap" in said and "No such file" in said


def test_standard_input_is_read(tmp_path):
    command = [sys.executable, "-m", "twinbed.cli.main", "flows", "--format", "csv", "-"]
    with SHORT.open("rb") as capture:
        done = subprocess.run(command, stdin=capture, capture_output=True, check=True)
    assert len(lines(done.stdout.decode())) == 1 + len(tcptrace(SHORT))


def test_zeeks_format_has_zeeks_fields_and_what_zeek_published(shown, tmp_path):
    """Zeek's own log of this trace: see tests/golden/zeek."""
    log = tmp_path / "conn.log"
    assert shown("connections", "--format", "zeek", CAPTURES / "zeek-get.pcap", "-o", log)[0] == codes.DONE
    text = log.read_text().splitlines()
    fields = next(line for line in text if line.startswith("#fields")).split("\t")[1:]
    (row,) = [dict(zip(fields, line.split("\t"), strict=True)) for line in text if not line.startswith("#")]
    assert (row["conn_state"], row["history"], row["orig_bytes"], row["resp_bytes"]) == ("SF", "ShADadFf", "136", "5007")
    assert json.loads(shown("connections", "--format", "zeek-json", CAPTURES / "zeek-get.pcap")[1])["conn_state"] == "SF"


def test_bad_checksums_are_a_caution_and_their_packets_count_only_when_asked(shown):
    bad = CAPTURES / "zeek-ip4-tcp-bad-chksum.pcap"
    _, text, said = shown("connections", "--format", "json", bad)
    assert "bad checksums: 1 tcp" in said and json.loads(text)[0]["originator_packets"] == 0
    asked = json.loads(shown("connections", "--format", "json", "--ignore-checksums", bad)[1])
    assert asked[0]["originator_packets"] == 1


def test_unfinished_checksums_are_told_from_bad_ones(shown):
    """Linux leaves them to the NIC: 180 by tshark's count of wrong ones, none of them damaged."""
    _, _, said = shown("connections", GOLDEN / "packets/small/machine/client.pcap")
    assert "180 checksums are unfinished" in said and "bad checksums" not in said


def test_matching_says_what_was_lost_on_the_way(shown):
    """The relay's log: five of iperf3's datagrams dropped, two sent twice."""
    folder = GOLDEN / "pairs/relay-udp"
    sent, arrived = sorted(folder.glob("*.pcap"), key=lambda file: ("a.pcap" not in file.name, file.name))
    code, text, said = shown("match", "--format", "json", sent, arrived)
    rows = json.loads(text)
    assert code == codes.DONE and "packets found in both" in said
    assert sum(row["lost_packets"] for row in rows) == 5 and sum(row["duplicated_packets"] for row in rows) == 2


STRANGERS = GOLDEN / "udp/tbf.pcap", GOLDEN / "pairs/relay-tcp/b.pcap"
"""Other hosts at other times."""


def test_captures_without_a_packet_in_common_say_so_and_know_of_no_loss(shown, tmp_path):
    code, text, _ = shown("match", *STRANGERS)
    assert code == codes.NOTHING_SHARED == 1 and "No packet in common: " in text
    code, text, said = shown("match", "--format", "json", *STRANGERS)
    rows = json.loads(text)
    assert code == 1 and "No packet in common: " in said
    assert sum(row["sent_packets"] for row in rows) == 158, "tcpdump's packets of tbf.pcap"
    unknown = {name for name in rows[0] if rows[0][name] is None}
    assert {"lost_packets", "lost_payload_bytes", "reordered_packets", "duplicated_packets", "appeared_packets"} <= unknown
    assert all({name for name in row if row[name] is None} == unknown for row in rows)
    code, text, _ = shown("match", *STRANGERS, "-o", tmp_path / "rows.parquet")
    assert code == 1 and text.startswith("No packet in common: ")
    assert pq.read_table(tmp_path / "rows.parquet")["lost_packets"].null_count == len(rows)


def test_delays_are_scaled_for_people_and_not_for_programs(shown):
    files = GOLDEN / "pairs/relay-tcp/a.pcap", GOLDEN / "pairs/relay-tcp/b.pcap"
    text = shown("match", *files)[1]
    rows = json.loads(shown("match", "--format", "json", *files)[1])
    for row, line in zip(rows, text.splitlines()[1:], strict=True):
        words = line.split()
        for column, number, unit in zip(("p50", "p95", "max"), words[-6::2], words[-5::2], strict=True):
            value = row[f"delay_variation_{column}_s"]
            assert float(number) / {"µs": 1e6, "ms": 1e3}[unit] == pytest.approx(value, rel=0.005)
            assert 1 <= float(number) < 1000


@pytest.mark.parametrize(
    "value, text",
    [
        (0.07, "70.0 ms"),
        (842e-6, "842 µs"),
        (0.9996, "1.00 s"),
        (0.0, "0 s"),
        (61.25, "61.2 s"),
        (8 * 86400.0, "192 h 0 min"),
        (None, "–"),
    ],
)
def test_a_time_is_written_to_three_digits(value: float | None, text: str):
    assert quantity(value, "s") == text


def test_a_full_place_to_write_is_named(shown, tmp_path):
    code, _, said = shown("flows", "--format", "csv", SHORT, "-o", tmp_path / "none" / "flows.csv")
    assert code == codes.USAGE and "flows.csv" in said


def test_parquet_is_not_written_over_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    with pytest.raises(TwinbedError, match="terminal"):
        chosen_style("parquet", None, ["text", "parquet"])
    assert chosen_style(None, Path("flows.parquet"), ["text", "parquet"]) == "parquet"


@pytest.mark.parametrize(
    "arguments",
    [["flows"], ["flows", "--long"], ["flows", "-o", "rows.parquet"], ["connections"], ["match", str(SHORT)]],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_small_capture_is_shown_without_the_libraries_of_large_tables(arguments: list[str], tmp_path: Path):
    program = "import sys; from twinbed.cli.main import run; print(run(sys.argv[1:]), *sorted(sys.modules))"
    command = [sys.executable, "-c", program, *arguments, str(SHORT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    code, *modules = done.stdout.splitlines()[-1].split()
    assert (code, "twinbed._core" in modules) == ("0", True)
    assert not {"pyarrow", "numpy", "pandas", "pydantic", "rich", "asyncio"} & set(modules)


def test_a_table_brings_no_pandas_along():
    program = "import sys; from twinbed import _core; table, _ = _core.flows(sys.argv[1:]); print(len(table), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, str(SHORT)], capture_output=True, text=True, check=True)
    rows, *modules = done.stdout.split()
    assert (int(rows), "pyarrow" in modules, "pandas" in modules) == (len(tcptrace(SHORT)), True, False)


def test_one_is_one_and_tunnels_are_hinted_at(shown):
    """tests/golden/encapsulations/how.md: three packets of one connection, inside VXLAN."""
    vxlan = GOLDEN / "encapsulations" / "vxlan.pcap"
    for command in ("flows", "connections"):
        said = shown(command, vxlan)[2]
        assert "  3 vxlan tunnel not entered; --tunnels reads them" in said
        said = shown(command, "--tunnels", vxlan)[2]
        assert said.startswith(f"1 {'TCP ' if command == 'flows' else ''}connection in 3 packets"), said
        assert "tunnel" not in said


@pytest.mark.parametrize("name", ["erf", "nettl", "k12text"])
def test_the_remedy_for_other_programs_captures_works(name, shown, tmp_path):
    """tests/golden/other-captures/how.md: the first four packets of zeek-get.pcap, a connection with 136 bytes sent."""
    file = GOLDEN / "other-captures" / f"get.{name}"
    code, _, said = shown("flows", file)
    remedy = "editcap -F pcap -T ether"
    assert code != codes.DONE and f"`{remedy}` converts it" in said
    subprocess.run([*remedy.split(), file, tmp_path / "got.pcap"], check=True, capture_output=True)
    code, out, said = shown("flows", "--format", "json", tmp_path / "got.pcap")
    (row,) = json.loads(out)
    assert (code, row["unique_bytes_sent_a2b"]) == (codes.DONE, 136) and "1 TCP connection in 4 packets" in said
