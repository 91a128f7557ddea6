"""Requests of other protocols than HTTP: where connections' ends take turns, on ports that the workload declares."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.instruments.packets import packets
from twinbed.model.services import Service
from twinbed.workloads.command.params import CommandParams

GOLDEN = Path(__file__).parents[2] / "golden" / "packetisation"
PORT, ETHERNET_AND_IP = 6379, 34


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """The golden capture of 40 requests without their payload, on a port that is not HTTP's."""
    content = bytearray((GOLDEN / "keep-bare.pcap").read_bytes())
    at = 24
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at + 8)
        for place in (at + 16 + ETHERNET_AND_IP, at + 16 + ETHERNET_AND_IP + 2):
            if struct.unpack_from(">H", content, place) == (80,):
                struct.pack_into(">H", content, place, PORT)
        at += 16 + length
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine/client.pcap").write_bytes(content)
    return tmp_path


def test_a_declared_port_has_as_many_exchanges_as_ab_made(artifacts: Path) -> None:
    assert "Complete requests:      40\n" in (GOLDEN / "keep-bare.ab.txt").read_text()
    found = packets.extract_of(packets.params(), artifacts, [Service("tcp", PORT, turns=True)])
    assert found.tables["exchanges"].num_rows == found.tables["steps"].num_rows == 40
    (mean,) = [value.value for value in found.values if (value.metric, value.host) == ("wire_exchange_time_mean", "")]
    assert mean is not None and mean > 0


@pytest.mark.parametrize(
    "services", [[], [Service("tcp", PORT)], [Service("udp", PORT, turns=True)], [Service("tcp", 1, True)]]
)
def test_no_other_connection_has_any(artifacts: Path, services: list[Service]) -> None:
    assert packets.extract_of(packets.params(), artifacts, services).tables["exchanges"].num_rows == 0
    assert packets.extract(packets.params(), artifacts).tables["exchanges"].num_rows == 0


def test_own_programs_take_turns_where_their_work_is_counted() -> None:
    workload = registry.PLUGINS.workloads["command"]
    given = {
        "server": {"run": ["serve"], "ready": {"listening": PORT}},
        "client": {"run": ["ask", "{server}"]},
        "metrics": {"speed": {"regex": "(.*)"}},
    }

    def services(**more: object) -> list[Service]:
        return list(workload.services(CommandParams.model_validate({**given, **more})))

    assert services() == [Service("tcp", PORT)]
    assert services(work="speed") == [Service("tcp", PORT)]
    assert services(work={"name": "requests", "value": "10"}) == [Service("tcp", PORT, turns=True)]
