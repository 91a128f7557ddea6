"""What SYNs tell, held against p0f 3.09b and tshark 4.0 on the same captures."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import pytest

from twinbed import _core

GOLDEN = Path(__file__).parents[2] / "golden"
# p0f reads no VLANs. Of what the snap length cut off it takes no notice: a SYN's data, of which headers tell.
OTHERWISE = {"vlan-trunk", "stacked-vlan-trunk", "data-with-syn-a", "data-with-syn-b"}
CAPTURES = [
    path
    for folder in ("captures", "tcp", "http", "packetisation")
    for path in sorted((GOLDEN / folder).glob("*.pcap"))
    if path.stem not in OTHERWISE
]
_SIGNATURE = re.compile(r"\.-\[ (\S+)/\d+ -> (\S+)/\d+ \((syn\+ack|syn)\) \]-.*?\| raw_sig  = (\S*)", re.DOTALL)
_FIELDS = {
    "window_scale": "tcp.options.wscale.shift",
    "mss": "tcp.options.mss_val",
    "syn_window": "tcp.window_size_value",
    "ttl": "ip.ttl",
    "df": "ip.flags.df",
}


def ours(capture: Path, feature: str) -> dict[tuple[str, str], object]:
    tables, _ = _core.capture_tables(capture, ["observer"])
    column = "value" if feature in _FIELDS else "text"
    rows = [row for row in tables["fingerprints"].to_pylist() if row["feature"] == feature]
    return {(row["role"], row["address"]): row[column] for row in rows}


def end(kind: str, client: str, server: str) -> tuple[str, str]:
    return ("originator", str(ip_address(client))) if kind == "syn" else ("responder", str(ip_address(server)))


@pytest.mark.skipif(not shutil.which("p0f"), reason="needs p0f (./setup.sh test)")
def test_signatures_are_p0f_s() -> None:
    """The most frequent one of each end, or one of those that are as frequent."""
    compared = Counter[str]()
    for capture in CAPTURES:
        said = subprocess.run(["p0f", "-r", capture], capture_output=True, text=True, check=False, timeout=60).stdout
        theirs: dict[tuple[str, str], Counter[str]] = {}
        for client, server, kind, signature in _SIGNATURE.findall(said):
            theirs.setdefault(end(kind, client, server), Counter())[signature] += 1
        found = ours(capture, "tcp_signature")
        for of, signatures in theirs.items():
            most = max(signatures.values())
            assert found.get(of) in {each for each, count in signatures.items() if count == most}, (capture.name, of)
            compared[of[0]] += 1
    assert compared["originator"] > 60
    assert compared["responder"] > 60


@pytest.mark.skipif(not shutil.which("tshark"), reason="needs tshark (./setup.sh test)")
@pytest.mark.parametrize("name", ["captures/http-short", "captures/lossy-server", "tcp/congestion-marks-a"])
def test_fields_are_tshark_s(name: str) -> None:
    capture = GOLDEN / f"{name}.pcap"
    fields = ["ip.src", "tcp.flags.ack", *_FIELDS.values()]
    argv = ["tshark", "-r", str(capture), "-Y", "tcp.flags.syn==1", "-T", "fields", *(w for f in fields for w in ("-e", f))]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    theirs: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for line in said.splitlines():
        source, ack, *values = line.split("\t")
        of = ("responder" if ack in ("1", "True") else "originator", source)
        theirs.setdefault(of, set()).add(tuple(values))
    assert len(theirs) == 2
    every = {feature: ours(capture, feature) for feature in _FIELDS}
    for of, rows in theirs.items():
        (row,) = rows
        for feature, text in zip(_FIELDS, row, strict=True):
            assert every[feature][of] == float({"True": "1", "False": "0"}.get(text, text)), (feature, of)
