"""Captures whose TCP is in tunnels, or in frames that nobody reads: it is missing, not 0, unless tunnels are entered.

The counts of the plain capture are tcptrace's (tests/golden/flows). Outer headers by RFC 7348 and RFC 2784.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.cli.main import run
from twinbed.contracts.format import FormatError, Measurement
from twinbed.imports.text.source import File
from twinbed.instruments.packets import PacketsParams, packets
from twinbed.metrics.packets import COUNTED, MEASURED
from twinbed.model.caution import Kind
from twinbed.registry import PLUGINS
from twinbed.results.extract import extract

PLAIN = Path(__file__).parents[3] / "golden" / "captures" / "lossy-server.pcap"
"""77 segments sent again by the server, by tcptrace."""
TCP = sorted({*COUNTED, *MEASURED, "connections", "incomplete_connections"} - {"packets", "bytes"})
AGAIN = 77
ETHERNET = bytes(range(12)) + b"\x08\x00"
Outer = Callable[[bytes, int], bytes]


def ipv4(protocol: int, payload: bytes, payload_bytes: int) -> bytes:
    return ETHERNET + struct.pack("!BBHHHBBHII", 0x45, 0, 20 + payload_bytes, 0, 0, 64, protocol, 0, 1, 2) + payload


def vxlan(frame: bytes, original: int) -> bytes:
    udp = struct.pack("!HHHH", 40000, 4789, 16 + original, 0)
    return ipv4(17, udp + bytes.fromhex("0800000000002a00") + frame, 16 + original)


def gre(frame: bytes, original: int) -> bytes:
    return ipv4(47, b"\0\0\x08\0" + frame[14:], 4 + original - 14)


def in_tunnels(file: Path, outer: Outer, every: int = 1, link: int = 1) -> Path:
    """PLAIN with each packet, or each whose number every divides, inside another."""
    data = PLAIN.read_bytes()
    at, number, made = 24, 0, [data[:20] + struct.pack("<I", link)]
    while at < len(data):
        seconds, fraction, captured, original = struct.unpack_from("<4I", data, at)
        frame = data[at + 16 : at + 16 + captured]
        whole = outer(frame, original) if number % every == 0 else frame
        made.append(struct.pack("<4I", seconds, fraction, len(whole), original + len(whole) - len(frame)) + whole)
        at, number = at + 16 + captured, number + 1
    file.write_bytes(b"".join(made))
    return file


def read(file: Path, **options: object) -> Measurement:
    (found,) = PLUGINS.formats["capture"].read(File(file, file.name), options)  # type: ignore[arg-type]
    return found


def values(found: Measurement) -> dict[tuple[str, str], float | None]:
    return {(value.metric, value.direction): value.value for value in found.values}


@pytest.mark.parametrize(("outer", "kind"), [(vxlan, "VXLAN"), (gre, "GRE")])
def test_tcp_in_tunnels_is_missing_unless_they_are_entered(outer: Outer, kind: str, tmp_path: Path) -> None:
    plain = values(read(PLAIN))
    assert plain["retransmitted_segments", "server_to_client"] == AGAIN
    file = in_tunnels(tmp_path / "overlay.pcap", outer)
    found = read(file)
    closed = values(found)
    assert {metric for (metric, _), number in closed.items() if number is None} >= set(TCP)
    count = int(plain["captured_packets", ""] or 0)
    (text,) = [str(each) for each in found.diagnostics if "tunnel" in str(each)]
    assert text.startswith(f"{count} of {count} packets in a tunnel ({kind})") and "`tunnels: true`" in text
    entered = read(file, tunnels=True)
    assert values(entered) == plain
    assert not [each for each in entered.diagnostics if "tunnel" in str(each)]
    assert entered.facts["tunnels"] is True


def test_what_is_in_some_packets_is_missing_too(tmp_path: Path) -> None:
    """A count of the others alone would be taken for all."""
    found = values(read(in_tunnels(tmp_path / "some.pcap", vxlan, every=5)))
    assert found["data_segments", ""] is None and found["retransmission_rate", "client_to_server"] is None
    assert found["packets", ""]


def test_what_nobody_can_read_is_missing(tmp_path: Path) -> None:
    """Of a link type that is not read: Bluetooth's."""
    found = read(in_tunnels(tmp_path / "odd.pcap", lambda frame, _: frame, link=201))
    numbers = values(found)
    assert numbers["captured_packets", ""]
    assert {metric for (metric, _), number in numbers.items() if number is not None} == {"captured_packets"}
    assert any("link type" in str(each) for each in found.diagnostics)


def test_what_is_never_ip_hides_nothing(tmp_path: Path) -> None:
    numbers = values(read(in_tunnels(tmp_path / "arp.pcap", lambda frame, _: frame[:12] + b"\x08\x06" + bytes(28))))
    assert numbers["packets", ""] == 0 == numbers["retransmitted_segments", ""]


def test_another_setting_is_refused() -> None:
    with pytest.raises(FormatError, match="expected true or false"):
        read(PLAIN, tunnels="yes")


def test_a_manifest_says_it_and_runs_keep_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for testbed in ("plain", "overlay"):
        (tmp_path / "in" / testbed).mkdir(parents=True)
    (tmp_path / "in" / "plain" / "1.pcap").write_bytes(PLAIN.read_bytes())
    in_tunnels(tmp_path / "in" / "overlay" / "1.pcap", vxlan)
    arguments = ["import", str(tmp_path / "in"), "--reference", "plain"]
    assert run([*arguments, "-o", str(tmp_path / "closed"), "--pattern", "{testbed}/{replicate:int}.pcap"]) == 1
    assert "packets in a tunnel (VXLAN)" in capsys.readouterr().out
    manifest = {"files": [{"pattern": "{testbed}/{replicate:int}.pcap", "options": {"tunnels": True}}]}
    (tmp_path / "m.yaml").write_text(json.dumps(manifest))
    assert run([*arguments, "-o", str(tmp_path / "entered"), "--manifest", str(tmp_path / "m.yaml")]) == 0
    for name, expected in (("closed", [AGAIN]), ("entered", [AGAIN, AGAIN])):
        rows = extract(tmp_path / name, registry.PLUGINS.read, {}).table("metrics").to_pylist()
        again = [row["value"] for row in rows if row["metric"] == "retransmitted_segments" and not row["direction"]]
        assert [number for number in again if number is not None] == expected, name


def test_the_instrument_has_the_setting(tmp_path: Path) -> None:
    (tmp_path / "run" / "machine").mkdir(parents=True)
    file = in_tunnels(tmp_path / "run" / "machine" / "client.pcap", vxlan)
    file.with_name("client.tcpdump.err").write_text("")
    closed, entered = (
        packets.extract(PacketsParams(snaplen=192, tunnels=tunnels), tmp_path / "run") for tunnels in (False, True)
    )
    for found, expected in ((closed, None), (entered, AGAIN)):
        (again,) = [
            value.value
            for value in found.values
            if (value.metric, value.host, value.direction) == ("retransmitted_segments", "", "server_to_client")
        ]
        assert again == expected
    assert any(each.kind is Kind.UNREADABLE and "tunnel (VXLAN)" in each.detail for each in closed.cautions)
    with pytest.raises(ValueError, match="snaplen"):
        PacketsParams(tunnels=True)
    assert "tunnels" not in PacketsParams().model_dump(), "runs that there are keep their identity"


def test_a_clock_that_is_set_back_is_named(tmp_path: Path) -> None:
    """The last packet of the capture a second before the others of its connection, by hand."""
    data = bytearray(PLAIN.read_bytes())
    at = last = 24
    while at < len(data):
        last, at = at, at + 16 + struct.unpack_from("<I", data, at + 8)[0]
    struct.pack_into("<I", data, last, struct.unpack_from("<I", data, last)[0] - 1)
    (tmp_path / "back.pcap").write_bytes(data)
    assert not [each for each in read(PLAIN).diagnostics if "dated" in str(each)]
    (text,) = [str(each) for each in read(tmp_path / "back.pcap").diagnostics if "dated" in str(each)]
    assert text.startswith("1 packet dated 1 ms or more before the one ahead")
