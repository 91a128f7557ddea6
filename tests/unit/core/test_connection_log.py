"""The connection log from Python, and Zeek's two ways of writing it.

That the tab-separated log is one as Zeek's readers take it was tried with `zat` 0.4.9, a reader of Zeek's logs that is not
Zeek's own: `zat.log_to_dataframe.LogToDataFrame().create_dataframe("conn.log")` gave the rows, types and times that are
here.  The tests read it by the documented format alone: `#fields`, `#types`, `#separator` and `#unset_field` decide.
"""

import io
import json
from datetime import datetime
from pathlib import Path

import pytest

from twinbed import _core
from twinbed.exporting import zeek

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = GOLDEN / "captures"
NOW = datetime(2026, 2, 3, 4, 5, 6)

READ = {"time": float, "interval": float, "count": int, "port": int}


def tsv(capture: str, **options: bool) -> str:
    table, _ = _core.connection_log([CAPTURES / capture], **options)
    out = io.StringIO()
    zeek.write_tsv(table, out, lambda: NOW)
    return out.getvalue()


def rows(text: str) -> list[dict[str, object]]:
    """Reads a log by its own header."""
    header: dict[str, list[str]] = {}
    found = []
    for line in text.splitlines():
        if line.startswith("#separator "):
            separator = line.split(" ")[1].encode().decode("unicode_escape")
        elif line.startswith("#"):
            name, *values = line.split(separator)
            header[name] = values
        else:
            cells = zip(header["#fields"], header["#types"], line.split(separator), strict=True)
            unset = header["#unset_field"][0]
            found.append({name: None if cell == unset else READ.get(kind, str)(cell) for name, kind, cell in cells})
    return found


def test_header_and_footer():
    lines = tsv("zeek-get.pcap").splitlines()
    assert lines[:6] == [
        "#separator \\x09",
        "#set_separator\t,",
        "#empty_field\t(empty)",
        "#unset_field\t-",
        "#path\tconn",
        "#open\t2026-02-03-04-05-06",
    ]
    assert lines[-1] == "#close\t2026-02-03-04-05-06"
    assert len(lines) == 10


@pytest.mark.parametrize(
    ("capture", "log", "ignore_checksums"),
    [
        ("zeek-missing-syn.pcap", "missing-syn", True),
        ("zeek-retransmit-fast009.pcap", "retransmit-fast009", True),
        ("zeek-get.pcap", "get", False),
        ("zeek-retransmit-timeout.pcapng", "retransmit-timeout", True),
    ],
)
def test_cells_are_zeeks(capture, log, ignore_checksums):
    fields, *theirs = (line.split("\t") for line in (GOLDEN / "zeek" / f"{log}.log").read_text().splitlines())
    head, *lines = [line.split("\t") for line in tsv(capture, ignore_checksums=ignore_checksums).splitlines()[6:-1]]
    ours = [dict(zip(head[1:], line, strict=True)) for line in lines[1:]]
    assert len(ours) == len(theirs)
    for own, their in zip(ours, theirs, strict=True):
        for field, cell in zip(fields[1:], their, strict=True):
            assert cell.startswith("XXXX") or own[field] == cell, field


def test_json_has_the_same_rows():
    table, _ = _core.connection_log([CAPTURES / "zeek-retransmit-timeout.pcapng"])
    out = io.StringIO()
    zeek.write_json(table, out)
    objects = [json.loads(line) for line in out.getvalue().splitlines()]
    expected = [
        {name: value for name, value in row.items() if value is not None} for row in rows(tsv("zeek-retransmit-timeout.pcapng"))
    ]
    assert objects == expected
    assert objects[0]["duration"] == 0.00001 and "duration" not in objects[1]
    assert list(objects[0])[:3] == ["ts", "uid", "id.orig_h"]


def test_times_finer_than_zeeks_are_cut(tmp_path):
    micro, nano = (rows(tsv(name)) for name in ("http-short.pcap", "http-short-nano.pcap"))
    assert micro == nano and len(micro) == 12


def test_identifiers_are_stable_and_different():
    first, second = (_core.connection_log([CAPTURES / "http-short.pcap"])[0] for _ in range(2))
    assert first.equals(second)
    assert len(set(first["uid"].to_pylist())) == first.num_rows


def test_offloaded_checksums_are_not_bad():
    table, summary = _core.connection_log([GOLDEN / "checksums" / "veth-offload-on.pcap"])
    tcp = summary["checksums"]["tcp"]
    assert tcp["partial"] == 40 and tcp["bad"] == tcp["good"] == tcp["not_checked"] == 0
    assert summary["ignored_packets"] == 0
    by = {(row["protocol"], row["originator_address"], row["originator_port"]): row for row in table.to_pylist()}
    connection = next(row for key, row in by.items() if key[0] == "tcp" and key[1] == "10.9.0.1")
    # As sent by the script that made the traffic.
    assert (connection["originator_bytes"], connection["responder_bytes"]) == (30001, 20001)
    assert (connection["state"], connection["missed_bytes"]) == ("SF", 0)
    datagrams = next(row for key, row in by.items() if key[0] == "udp" and key[1] == "fd09::1")
    assert (datagrams["originator_bytes"], datagrams["responder_bytes"]) == (5100, 5100)
    assert (datagrams["originator_packets"], datagrams["history"]) == (4, "Dd")
    echo = by["icmp", "10.9.0.1", 8]
    assert (echo["responder_port"], echo["originator_bytes"], echo["responder_bytes"]) == (0, 114, 114)
    assert (echo["state"], echo["history"], echo["ip_protocol"]) == ("OTH", None, 1)
    echo = by["icmp", "fd09::1", 128]
    assert (echo["responder_port"], echo["originator_packets"], echo["ip_protocol"]) == (129, 2, 58)


def test_offload_changes_no_connection():
    def seen(which: str) -> list[tuple[object, ...]]:
        table, _ = _core.connection_log([GOLDEN / "checksums" / f"veth-offload-{which}.pcap"])
        columns = ("protocol", "originator_address", "responder_address", "originator_bytes", "responder_bytes", "state")
        found = [tuple(row[name] for name in columns) for row in table.to_pylist() if row["protocol"] != "icmp"]
        return sorted(found, key=str)

    assert seen("on") == seen("off")


def test_nothing_in_it(tmp_path):
    empty = tmp_path / "empty.pcap"
    empty.write_bytes((CAPTURES / "zeek-get.pcap").read_bytes()[:24])
    table, summary = _core.connection_log([empty])
    assert table.num_rows == summary["connections"] == 0
    out = io.StringIO()
    zeek.write_tsv(table, out, lambda: NOW)
    assert rows(out.getvalue()) == []


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="max_connections is 0"):
        _core.connection_log([CAPTURES / "zeek-get.pcap"], max_connections=0)
    with pytest.raises(FileNotFoundError):
        _core.connection_log([tmp_path / "none.pcap"])
