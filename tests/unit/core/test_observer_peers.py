"""What SYNs tell, held against p0f 3.09b and tshark 4.0 on the same captures."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
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
        said = subprocess.run(["p0f", "-r", capture], capture_output=True, text=True, check=False, timeout=300).stdout
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
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300).stdout
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


# --- TLS: tests/golden/tls/tls.sh made the captures, and fields.tsv from them with tshark 4.0.17.

TLS = GOLDEN / "tls"
CLIENT_HELLO, SERVER_HELLO = "1", "2"
_VERSIONS = {"0x0304": "13", "0x0303": "12", "0x0302": "11", "0x0301": "10"}


def hellos() -> Iterator[tuple[str, dict[str, str]]]:
    """File, and the first hello of each direction of a connection."""
    hashes = ("source", "destination", "type", "ja3", "ja3s")
    names = (*hashes, "version", "ciphers", "extensions", "versions", "algorithms", "alpn")
    seen = set()
    for line in (TLS / "fields.tsv").read_text().splitlines():
        file, *values = line.split("\t")
        fields = dict(zip(names, values, strict=True))
        if (file, fields["source"], fields["destination"]) not in seen:
            seen.add((file, fields["source"], fields["destination"]))
            yield file, fields


def hash_of(parts: Sequence[str]) -> str:
    return sha256("_".join(part for part in parts if part).encode()).hexdigest()[:12] if parts[0] else "0" * 12


def ja4(fields: dict[str, str]) -> str:
    """As FoxIO's technical details say, of what tshark read; these clients send no GREASE."""
    ciphers = [code.removeprefix("0x") for code in fields["ciphers"].split(",")]
    kinds = [f"{int(kind):04x}" for kind in fields["extensions"].split(",")]
    versions = fields["versions"].split(",") if fields["versions"] else [fields["version"]]
    first = fields["alpn"].split(",")[0].encode().decode("unicode_escape") if fields["alpn"] else ""
    alpn = "00" if not first else first[0] + first[-1]
    if not alpn.isalnum():
        digits = first.encode("latin-1").hex()
        alpn = digits[0] + digits[-1]
    algorithms = ",".join(code.removeprefix("0x") for code in fields["algorithms"].split(",") if code)
    offered = ",".join(sorted(kind for kind in kinds if kind not in ("0000", "0010")))
    name = "d" if "0000" in kinds else "i"
    shown = f"t{_VERSIONS[max(versions)]}{name}{len(ciphers):02}{len(kinds):02}{alpn}"
    return f"{shown}_{hash_of([','.join(sorted(ciphers))])}_{hash_of([offered, algorithms])}"


def test_hashes_of_hellos_are_tshark_s() -> None:
    """Clients of OpenSSL, curl, ab and wrk; with and without a name, TLS 1.2 and 1.3, a hello of three segments, a retry."""
    expected: dict[tuple[str, str, str], set[str]] = {}
    for file, fields in hellos():
        of = {"ja3": fields["ja3"], "ja4": ja4(fields)} if fields["type"] == CLIENT_HELLO else {"ja3s": fields["ja3s"]}
        for feature, text in of.items():
            role = "responder" if feature == "ja3s" else "originator"
            expected.setdefault((file, role, feature), set()).add(text)
    found = {
        (capture.stem, role, feature): {text}
        for capture in sorted(TLS.glob("*.pcap"))
        for feature in ("ja3", "ja4", "ja3s")
        for (role, _), text in ours(capture, feature).items()
    }
    assert found == expected
    assert len({min(texts) for (_, _, feature), texts in expected.items() if feature == "ja4"}) > 6


@pytest.mark.skipif(not shutil.which("editcap"), reason="needs editcap (./setup.sh test)")
def test_hashes_are_missing_where_packets_are_cut(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    subprocess.run(["editcap", "-s", "96", TLS / "curl.pcap", cut], check=True, timeout=300, capture_output=True)
    assert set(ours(cut, "ja3").values()) == set(ours(cut, "ja4").values()) == {None}
    assert set(ours(cut, "ja3s").values()) == {None}
    # A client that speaks no TLS has no such rows.
    assert ours(GOLDEN / "captures/http-short.pcap", "ja3") == {}
