"""The instrument ``fingerprint``: what it plans, what it reads of a real report of nmap's and of answers by hand."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from twinbed import _core
from twinbed.contracts.place import MACHINE, Target
from twinbed.instruments.fingerprint import FingerprintParams, fingerprint
from twinbed.model.caution import Kind
from twinbed.readers.fingerprint import answers, nmap
from twinbed.readers.fingerprint.feature import Feature, moments
from twinbed.readers.packets import fingerprints
from twinbed.registry import catalogue
from twinbed.study.loading import load

NMAP = (Path(__file__).parents[2] / "golden/fingerprint/nmap-nginx.xml").read_bytes()
CLIENT = Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"})
SERVER = Target("server", {"eth0": "server"}, clients={"client": "10.77.0.1"})
PORTS = {"server": [80, 81]}


def named(features: list[Feature]) -> dict[str, str | None]:
    assert len({each.name for each in features}) == len(features), "a row a feature"
    return {each.name: each.text for each in features}


def test_only_servers_of_the_lab_are_asked() -> None:
    commands = fingerprint.examine(FingerprintParams(), CLIENT, PORTS)
    assert fingerprint.plan(FingerprintParams(), CLIENT) == ()
    assert [command.argv[:3] for command in commands[:-1]] == [
        ("twinbed-probe", "fingerprint", what) for what in ("machine", "link", "http")
    ]
    assert [word for command in commands for word in command.argv if word.startswith("10.")] == ["10.77.0.2"] * 3
    argv = commands[-1].argv
    assert argv[argv.index("-p") + 1] == "80,1"
    assert {"nmap", "-n", "-O", "-sV"} <= set(argv)
    assert all(command.ready is None and command.host == "client" for command in commands)


def test_servers_look_at_their_machine_alone_and_the_lab_s_machine_at_nothing() -> None:
    (command,) = fingerprint.examine(FingerprintParams(), SERVER, PORTS)
    assert command.argv == ("twinbed-probe", "fingerprint", "machine", "--out", "{artifacts}/machine.json")
    assert fingerprint.examine(FingerprintParams(), Target(MACHINE, {}, captures=True), PORTS) == ()


def test_a_closed_port_is_one_on_which_nothing_listens() -> None:
    argv = fingerprint.examine(FingerprintParams(), CLIENT, {"server": [1, 2]})[-1].argv
    assert argv[argv.index("-p") + 1] == "1,3"
    # No port is known: nobody is asked for HTTP.
    commands = fingerprint.examine(FingerprintParams(nmap=False), CLIENT, {})
    assert [command.argv[2] for command in commands] == ["machine", "link"]


def test_nmap_s_report() -> None:
    """Expected values were read in the report."""
    features = nmap.read("server", NMAP)
    found = named(features)
    assert found["nmap_os"] == "Linux 5.3 - 5.4"
    assert next(each.value for each in features if each.name == "nmap_os") == 96
    assert found["nmap_service"] == "http nginx 1.22.1"
    assert found["nmap_ops"] == "O1=M5B4ST11NWA%O2=M5B4ST11NWA%O3=M5B4NNT11NWA%O4=M5B4ST11NWA%O5=M5B4ST11NWA%O6=M5B4ST11"
    assert found["nmap_win"] == "W1=FE88%W2=FE88%W3=FE88%W4=FE88%W5=FE88%W6=FE88"
    assert found["nmap_t2"] == "R=N"
    assert found["nmap_ie"] == "R=Y%DFI=N%T=40%CD=S"
    assert (found["nmap_seq_ti"], found["nmap_seq_ii"], found["nmap_seq_sp"]) == ("Z", "I", str(0x103))
    assert (found["nmap_ipidsequence"], found["nmap_hops"]) == ("All zeros", "1")
    whole = " ".join(text for text in found.values() if text)
    for told in ("10.77", "1A4064", "39186", "6B065EB2", "2026"):
        assert told not in whole, "no address, no port, no time"


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (b"", "no XML"),
        (NMAP[:3000], "no XML"),
        (b"<a/>", "no report"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "entities"),
        (NMAP.replace(b'exit="success"', b'exit="error" errormsg="no rights"'), "no rights"),
        (NMAP.replace(b"<host starttime", b'<host timedout="true" starttime'), "time was up"),
    ],
)
def test_what_is_no_report_says_so(report: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        nmap.read("server", report)


def answered(answer: str | None, end: str = "closed") -> dict[str, str | None]:
    content = {"answers": [{"request": "get", "answer": answer, "end": end}], "times_s": [1.0, 2.0, 3.0, 10.0]}
    return named(answers.http("server", json.dumps(content).encode()))


def test_http_answers() -> None:
    found = answered("HTTP/1.1 404 Not Found\r\nServer: thing/1\r\ndate: now\r\n\r\nbody \xff")
    assert found["http_get_status"] == "HTTP/1.1 404 Not Found"
    assert found["http_get_header_order"] == "Server,date", "in order, in their case"
    assert found["http_get_server"] == "thing/1"
    assert found["http_get_body"] == hashlib.sha256(b"body \xff").hexdigest()[:16]
    assert float(found["http_time_mean_s"] or "") == 4


def test_http_answers_without_a_head_and_none_at_all() -> None:
    bare = answered("<html>old</html>")
    assert bare["http_get_status"] is None
    assert bare["http_get_body"] == hashlib.sha256(b"<html>old</html>").hexdigest()[:16]
    assert set(answered(None, "refused").values()) >= {None}
    assert answered(None)["http_get_body"] is None
    assert answered("", "silent")["http_get_end"] == "silent"


def test_moments_by_hand() -> None:
    """Of 1, 2, 3, 10 with mean 4: sums of powers of -3, -2, -1, 6 are 50, 180, 1394."""
    found = {each.name: each.value for each in moments("active", "server", "x", "_s", [1, 2, 3, 10])}
    assert found == pytest.approx(
        {"x_mean_s": 4, "x_sd_s": (50 / 3) ** 0.5, "x_skewness": 2 * 180 / 50**1.5, "x_kurtosis": 4 * 1394 / 2500}
    )
    assert {each.value for each in moments("active", "server", "x", "_s", [])} == {None}
    assert {each.value for each in moments("active", "server", "x", "_s", [2, 2])} == {2, 0, None}


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([0, 0, 0], "zero"),
        ([65_530, 65_535, 4], "increasing"),
        ([7, 7, 7], "same"),
        ([1, 30_000, 9, 42_000], "random"),
        ([1, 2, 3, 30_000], "mixed"),
        ([5], None),
    ],
)
def test_identifications(ids: list[float], kind: str | None) -> None:
    assert answers.identifications(ids) == kind


def test_icmp_and_arp() -> None:
    echo = {"delay_s": 1e-3, "ttl": 64, "ip_id": 5, "dont_fragment": False, "type_of_service": 4, "code": 9}
    content = {"echoes": [echo, echo], "timestamp_answered": True, "arp": [{"delay_s": 1e-4, "bytes": 60}], "refused": []}
    found = named(answers.link("server", json.dumps(content).encode()))
    assert (found["icmp_ttl"], found["icmp_df"], found["icmp_timestamp"], found["arp_reply_bytes"]) == ("64", "0", "1", "60")
    # Raw sockets are refused: what was not asked is not there, and why is a caution.
    nothing = {"echoes": None, "timestamp_answered": None, "arp": None, "refused": ["ICMP: Operation not permitted"]}
    assert named(answers.link("server", json.dumps(nothing).encode())) == {"icmp_timestamp": None}


MACHINE_FACTS = {
    "cpuid_hypervisor": True,
    "cpuid_hypervisor_vendor": "TCGTCGTCGTCG",
    "cpu_vendor": "GenuineIntel",
    "cpu_model": None,
    "cpu_flags": ["fpu", "hypervisor"],
    "dmi": [["sys_vendor", "QEMU"], ["board_vendor", None]],
    "pci_ids": None,
    "clock_source": "tsc",
    "net_devices": [
        {"name": "eth0", "driver": "e1000", "mac_vendor": "52:54:00"},
        {"name": "lo", "driver": None, "mac_vendor": None},
    ],
    "block_devices": ["vda"],
    "timer_cost_s": 1e-7,
    "rdtsc_cost_s": 1e-8,
    "cpuid_cost_s": 2e-6,
}


def test_the_machine() -> None:
    found = named(answers.machine("client", json.dumps(MACHINE_FACTS).encode()))
    assert (found["cpuid_hypervisor"], found["cpuid_hypervisor_vendor"], found["cpu_model"]) == ("1", "TCGTCGTCGTCG", None)
    assert (found["dmi_sys_vendor"], found["dmi_board_vendor"], found["pci_ids"]) == ("QEMU", None, None)
    assert (found["net_devices"], found["net_drivers"], found["net_mac_vendors"]) == ("eth0", "e1000", "52:54:00")
    assert found["cpuid_cost_s"] == "2e-06"


def test_a_broken_file_costs_its_own_features(tmp_path: Path) -> None:
    home = tmp_path / "client"
    home.mkdir()
    (home / "machine.json").write_text(json.dumps(MACHINE_FACTS))
    (home / "nmap-server.xml").write_bytes(NMAP[:100])
    (home / "link-server.json").write_text("{}")
    (home / "http-server.json").write_text('{"answers": [3]}')
    found = fingerprint.extract(FingerprintParams(), tmp_path)
    assert {value.metric: value.value for value in found.values} == {
        "timer_cost": 1e-7,
        "rdtsc_cost": 1e-8,
        "cpuid_cost": 2e-6,
    }
    assert {row["host"] for row in found.tables["fingerprints"].to_pylist()} == {"client", "server"}
    said = [caution.detail for caution in found.cautions]
    assert {caution.kind for caution in found.cautions} == {Kind.UNREADABLE}
    assert any("client/nmap-server.xml: no XML" in each for each in said)
    assert any("client/http-server.json" in each for each in said)


MANUAL = (Path(__file__).parents[3] / "docs/fingerprint.md").read_text()
CAPTURE = Path(__file__).parents[2] / "golden/captures/http-short.pcap"
TLS = Path(__file__).parents[2] / "golden/tls/curl.pcap"


def test_the_manual_s_studies_are_some_and_its_list_of_passive_features_is_whole() -> None:
    texts = re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL)
    assert [load(text, "manual.yaml", catalogue()).name for text in texts] == ["fingerprint", "hellos"]
    names: set[str] = set()
    for capture in (CAPTURE, TLS):
        tables, _ = _core.capture_tables(capture, ["observer"])
        names |= set(tables["fingerprints"]["feature"].to_pylist())
    assert {"ja3", "ja3s", "ja4"} < names
    passive = MANUAL.partition("### Passive")[2].partition("### Active")[0]
    listed = set(re.findall(r"`([a-z0-9_]+)`", passive))
    assert {name for name in names if not name.startswith("syn_ack_delay_")} <= listed


def test_a_capture_s_rows_are_of_its_own_host() -> None:
    tables, _ = _core.capture_tables(CAPTURE, ["observer"])
    client = fingerprints.of_link("client2", tables["fingerprints"]).to_pylist()
    server = fingerprints.of_link("server", tables["fingerprints"]).to_pylist()
    assert {(row["observer"], row["host"]) for row in client} == {("passive", "client2")}
    # tshark: -T fields -e ip.id of SYNs: the server's are 0.
    assert next(row["text"] for row in server if row["feature"] == "tcp_quirks") == "df"
    assert next(row["text"] for row in client if row["feature"] == "tcp_quirks") == "df,id+"
    both = fingerprints.of_both_ends(tables["fingerprints"])
    assert set(both["host"].to_pylist()) == {"client", "server"}
    # A capture without SYNs says nothing of hosts.
    assert fingerprints.of_link("client", tables["fingerprints"].slice(0, 0)).num_rows == 0
