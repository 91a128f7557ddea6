"""Captures cut to headers: by editcap's own cut, and by what is read of them."""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path

import pytest

from twinbed import _core
from twinbed.results.keep import headers

CAPTURES = Path(__file__).parents[3] / "golden" / "captures"
WHOLE = CAPTURES / "zeek-get.pcap"
EDITCAPS = "d1d4f4c403b8985d89a44bd7cc8a04e90b85afaef2a443c19dff53269df2bfba"
"""The SHA-256 of what `editcap -F pcap -s 144 zeek-get.pcap` (Wireshark 4.0.17) writes after its file's header."""


def cut(file: Path, to: Path) -> Path:
    with to.open("wb") as sink:
        headers.cut(file.open("rb"), sink)
    return to


def test_packets_are_those_of_editcap(tmp_path: Path) -> None:
    import pyarrow as pa

    small = cut(WHOLE, tmp_path / "small.pcap.zst")
    with pa.CompressedInputStream(pa.OSFile(str(small)), "zstd") as stream:
        plain = stream.read()
    head = WHOLE.read_bytes()[:24]
    assert plain[:24] == head[:16] + struct.pack("<I", headers.BYTES) + head[20:]
    assert hashlib.sha256(plain[24:]).hexdigest() == EDITCAPS
    assert headers.can_be_cut(WHOLE.open("rb"))


def test_flows_of_the_cut_capture_are_those_of_the_whole_one(tmp_path: Path) -> None:
    whole, _ = _core.flows([str(WHOLE)])
    small, _ = _core.flows([str(cut(WHOLE, tmp_path / "small.pcap.zst"))])
    differ = {name for name in whole.column_names if not small[name].equals(whole[name])}
    assert differ == {f"truncated_{what}_{way}" for what in ("data", "packets") for way in ("a2b", "b2a")}, "it was cut"


def test_a_large_capture_is_as_many_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = _core.flows([str(cut(WHOLE, tmp_path / "one.zst"))])
    monkeypatch.setattr(headers, "_FRAME_BYTES", 200)
    small = cut(WHOLE, tmp_path / "small.pcap.zst")
    assert small.read_bytes().count(b"\x28\xb5\x2f\xfd") > 3, "Zstandard's magic number"
    assert _core.flows([str(small)])[0].equals(whole)


def test_the_other_byte_order(tmp_path: Path) -> None:
    content = WHOLE.read_bytes()
    swapped = io.BytesIO()
    swapped.write(struct.pack(">IHHiIII", *struct.unpack("<IHHiIII", content[:24])))
    at = 24
    while at < len(content):
        record = struct.unpack_from("<IIII", content, at)
        swapped.write(struct.pack(">IIII", *record) + content[at + 16 : at + 16 + record[2]])
        at += 16 + record[2]
    (tmp_path / "big.pcap").write_bytes(swapped.getvalue())
    small, big = (cut(file, tmp_path / f"{at}.zst") for at, file in enumerate((WHOLE, tmp_path / "big.pcap")))
    assert _core.flows([str(big)])[0].equals(_core.flows([str(small)])[0])


@pytest.mark.parametrize("name", ["http-short.pcap", "http-short-nano.pcap"])
def test_what_holds_headers_alone_loses_nothing(tmp_path: Path, name: str) -> None:
    small = cut(CAPTURES / name, tmp_path / "small.pcap.zst")
    assert small.stat().st_size < (CAPTURES / name).stat().st_size / 2
    assert _core.flows([str(small)])[0].equals(_core.flows([str(CAPTURES / name)])[0])


@pytest.mark.parametrize("name", ["merged.pcapng", "README.md"])
def test_what_is_no_plain_pcap_stays(name: str) -> None:
    assert not headers.can_be_cut((CAPTURES / name).open("rb"))


@pytest.mark.parametrize("end", [-1, -60, -1500, 30])
def test_what_is_cut_off_stays(tmp_path: Path, end: int) -> None:
    (tmp_path / "cut.pcap").write_bytes(WHOLE.read_bytes()[:end])
    assert not headers.can_be_cut((tmp_path / "cut.pcap").open("rb"))


def test_a_packet_longer_than_it_was_stays(tmp_path: Path) -> None:
    content = bytearray(WHOLE.read_bytes())
    struct.pack_into("<I", content, 24 + 12, 10)
    (tmp_path / "odd.pcap").write_bytes(content)
    assert not headers.can_be_cut((tmp_path / "odd.pcap").open("rb"))
