"""Suricata's eve.json and Zeek's conn.log as connections; the examples are those of their documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinbed.readers.monitor import engines, eve

ALERT = {  # eve-json-format of Suricata 7.0.10, first example
    "timestamp": "2017-04-07T22:24:37.251547+0100",
    "flow_id": 586497171462735,
    "pcap_cnt": 53381,
    "event_type": "alert",
    "src_ip": "192.168.2.14",
    "src_port": 50096,
    "dest_ip": "209.53.113.5",
    "dest_port": 80,
    "proto": "TCP",
    "metadata": {"flowbits": ["http.dottedquadhost"]},
    "tx_id": 4,
    "alert": {
        "action": "allowed",
        "gid": 1,
        "signature_id": 2018358,
        "rev": 10,
        "signature": "ET HUNTING GENERIC SUSPICIOUS POST to Dotted Quad with Fake Browser 1",
        "category": "Potentially Bad Traffic",
        "severity": 2,
    },
    "app_proto": "http",
}
GOLDEN = Path(__file__).parents[2] / "golden" / "formats" / "suricata-eve" / "offload" / "input.json"
ZEEK = (
    '{"ts":1591367999.430166,"uid":"C5bLoe2Mvxqhawzqqd","id.orig_h":"192.168.4.76","id.orig_p":46378,"id.resp_h":"31.3.245.133",\
"id.resp_p":80,"proto":"tcp","service":"http","duration":0.25411510467529297,"orig_bytes":77,"resp_bytes":295,"conn_state":"SF",\
"missed_bytes":0,"history":"ShADadFf","orig_pkts":6,"orig_ip_bytes":397,"resp_pkts":4,"resp_ip_bytes":511}'
)


def test_an_alert_is_counted_by_its_signature():
    found = eve.read(2 * (json.dumps(ALERT) + "\n"))
    ((signature, count),) = found.alerts.items()
    assert (signature.generator, signature.id, signature.severity, count) == (1, 2018358, 2, 2)
    assert signature.text.startswith("ET HUNTING") and signature.category == "Potentially Bad Traffic"
    assert found.began_s == 1491600277.251547  # date -d '2017-04-07T22:24:37.251547+0100' +%s.%N


def test_real_flow_records_are_connections():
    """jq counts 11 flow events in the file."""
    found = eve.read(GOLDEN.read_text())
    flows = [json.loads(line) for line in GOLDEN.read_text().splitlines() if '"event_type":"flow"' in line]
    assert len(found.connections) == len(flows) == 11
    for row, flow in zip(found.connections, flows, strict=True):
        assert row["packets"] == flow["flow"]["pkts_toserver"] + flow["flow"]["pkts_toclient"]
        assert row["originator_address"] == flow["src_ip"] and row["ip_protocol"] in (1, 6, 17, 58)
        assert row["state"] == ("S0" if flow["flow"]["state"] == "new" else "SF")


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "{}", "null", '{"event_type": 3}', '{"event_type": "alert"}', '{"event_type":"flow","flow":[]}', "[" * 9999],
)
def test_a_line_that_is_no_event_is_a_flaw_with_its_number(line: str) -> None:
    found = eve.read(f"{json.dumps(ALERT)}\n{line}\n")
    assert [flaw.line for flaw in found.unread] == [2] and sum(found.alerts.values()) == 1


def test_every_prefix_of_a_real_file_is_read_or_has_a_flaw():
    text = GOLDEN.read_text()
    for end in range(0, len(text), 997):
        found = eve.read(text[:end])
        whole = not text[:end] or text[end - 1] == "\n" or text[end : end + 1] == "\n"
        assert bool(found.unread) != whole


def test_what_suricata_wrote_and_was_cut_off_is_refused_with_the_line(tmp_path: Path) -> None:
    for checksums in ("ignored", "checked"):
        folder = tmp_path / f"suricata-{checksums}-client"
        folder.mkdir()
        (folder / "eve.json").write_text(json.dumps(ALERT) + "\n" + json.dumps(ALERT)[:100])
    with pytest.raises(ValueError, match=r"suricata-ignored-client/eve.json, line 2: .*'\{\"timestamp\": \"2017-04-07T22"):
        list(engines.written("suricata", tmp_path, "client"))


def test_an_engine_that_wrote_nothing_is_missed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="zeek-ignored-client has no conn"):
        list(engines.written("zeek", tmp_path, "client"))


def test_zeeks_objects_are_connections():
    """The example is that of docs.zeek.org, log-formats."""
    (row,) = engines.read_conn_log(ZEEK + "\n")
    assert (row["protocol"], row["ip_protocol"], row["responder_port"], row["state"], row["packets"]) == (
        "tcp",
        6,
        80,
        "SF",
        10,
    )
    with pytest.raises(ValueError, match=r"conn\.log, line 2"):
        engines.read_conn_log(ZEEK + "\n" + ZEEK[:200])
