"""The instrument ``packets``: its plan, and what it reads from real captures; expected counts are tshark's."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from pydantic import ValidationError

from twinbed.contracts.command import Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.place import MACHINE, Target
from twinbed.instruments.packets import PacketsParams, packets
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import EXCHANGES, LARGEST, MEASURED, PATHS, STREAMS, SUMS
from twinbed.model.caution import Caution, Kind
from twinbed.model.drawn import Drawn
from twinbed.readers.tcpdump import QUIET_ANSWERS, ended, has_drained

GOLDEN = Path(__file__).parents[2] / "golden" / "packets"
C2S, S2C = "client_to_server", "server_to_client"


def extracted(case: Path) -> Extracted:
    return packets.extract(PacketsParams(), case)


def numbers(found: Extracted, host: str, direction: str = "") -> dict[str, float | None]:
    return {value.metric: value.value for value in found.values if (value.host, value.direction) == (host, direction)}


def test_every_link_is_captured_at_the_machines_side():
    target = Target(MACHINE, {"lab-s": "server", "lab-c": "client"}, captures=True)
    first, second = packets.plan(PacketsParams(), target)
    assert first.argv == (
        *("tcpdump", "-i", "lab-c", "-w", "{artifacts}/client.pcap", "-s", "96", "-B", "65536", "-n", "-Z", "root"),
        "--time-stamp-precision=nano",
        "not udp port 2112 and not (icmp[icmptype] == icmp-unreach and (icmp[28:2] == 2112 or icmp[30:2] == 2112))"
        " and not portrange 2120-2122",
    )
    assert (first.host, first.ready, first.stop) == (MACHINE, Ready(says=b"listening on"), 2)
    assert first.drained is has_drained
    assert second.argv[2] == "lab-s" and "{artifacts}/server.pcap" in second.argv
    assert first.stdout != second.stdout, "what each says is kept"


def test_nothing_is_captured_on_hosts():
    assert packets.plan(PacketsParams(), Target("client", {"eth0": "client"}, own_kernel=True)) == ()


def test_snaplen_and_buffer_are_settings():
    argv = packets.plan(PacketsParams(snaplen=65535, buffer="8MiB"), Target(MACHINE, {"c": "client"}, captures=True))[0].argv
    assert argv[argv.index("-s") + 1] == "65535" and argv[argv.index("-B") + 1] == "8192"


@pytest.mark.parametrize("settings", [{"snaplen": 63}, {"snaplen": 65536}, {"buffer": "1kB"}, {"snap": 96}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ValidationError):
        PacketsParams(**settings)


def said(captured: int, received: int, dropped: int) -> bytes:
    """What tcpdump prints on SIGUSR1."""
    return (
        f"tcpdump: {captured} packets captured, {received} packets received by filter, {dropped} packets dropped by kernel\n"
    ).encode()


def test_a_capture_is_drained_when_it_has_what_it_had_received_when_first_asked():
    listening = b"tcpdump: listening on x, link-type EN10MB (Ethernet), snapshot length 96 bytes\n"
    assert not has_drained(listening)
    assert not has_drained(listening + said(90, 100, 0))
    assert not has_drained(listening + said(90, 100, 0) + said(99, 100, 0))
    assert has_drained(listening + said(90, 100, 0) + said(100, 100, 0))
    assert has_drained(listening + said(90, 100, 0) + said(102, 103, 0)), "a link is never wholly silent"
    assert has_drained(said(90, 100, 10)), "dropped packets will not come"


def test_a_capture_of_one_packet_is_drained_as_well():
    """As tcpdump 4.99.3 says it."""
    assert has_drained(b"tcpdump: 1 packet captured, 1 packet received by filter, 0 packets dropped by kernel\n")
    assert has_drained(b"tcpdump: 1 packet captured, 2 packets received by filter, 1 packet dropped by kernel\n")


def test_a_capture_is_drained_when_nothing_more_comes_for_longer_than_a_block_is_held():
    """What came before the filter was set counts as received, and never comes."""
    same = said(594, 595, 0)
    assert not has_drained(QUIET_ANSWERS * same)
    assert has_drained((QUIET_ANSWERS + 1) * same)
    assert not has_drained(QUIET_ANSWERS * said(590, 595, 0) + same)
    assert not has_drained(said(590, 595, 0) + QUIET_ANSWERS * same)
    assert not has_drained(said(90, 100, 0) + said(100, 100, 0)[:20]), "half a line is no answer"


def test_what_tcpdump_says_at_its_end_is_not_what_it_says_when_asked():
    text = (GOLDEN / "small/machine/client.tcpdump.err").read_bytes()
    counters = ended(text)
    assert counters is not None
    assert (counters.captured, counters.received, counters.dropped) == (240, 240, 0)
    assert ended(said(1, 1, 0)) is None


@pytest.mark.parametrize("host", ["client", "server"])
def test_small_documents_count_as_tshark_counts_them(host):
    found = extracted(GOLDEN / "small")
    expected = {
        C2S: {"packets": 120, "bytes": 8180, "payload_bytes": 1780, "data_segments": 20, "pure_acks": 60},
        S2C: {"packets": 120, "bytes": 21360, "payload_bytes": 14960, "data_segments": 40, "pure_acks": 40},
    }
    longest = {C2S: 89, S2C: 500}
    for direction, counts in expected.items():
        read = numbers(found, host, direction)
        assert {name: read[name] for name in counts} == counts
        assert read["super_packets"] == read["retransmitted_segments"] == read["out_of_order_segments"] == 0
        assert read["wire_packets"] == 120
        assert read["max_segment_bytes"] == longest[direction]
        assert read["mean_segment_bytes"] == counts["payload_bytes"] / counts["data_segments"]
    counts = {"connections": 20, "incomplete_connections": 0, "other_packets": 0, "captured_packets": 240, "capture_drops": 0}
    both = {"packets": 240, "bytes": 8180 + 21360, "data_segments": 60}
    read = numbers(found, host)
    assert {name: read[name] for name in counts | both} == counts | both


def test_large_segments_and_a_retransmission_count_as_tshark_counts_them():
    read = numbers(extracted(GOLDEN / "large"), "client", S2C)
    expected = {
        "packets": 75,
        "bytes": 2102604,
        "payload_bytes": 2098696,
        "data_segments": 72,
        "pure_acks": 1,
        "super_packets": 42,
        "max_segment_bytes": 65160,
        "retransmitted_segments": 1,
    }
    assert {name: read[name] for name in expected} == expected


def test_goodput_is_payload_bits_counted_once_over_the_captures_length():
    """tshark: conversation of 0.0145 s; 2098696 bytes of payload, of which 1024 were sent twice (frame 29)."""
    read = numbers(extracted(GOLDEN / "large"), "client", S2C)
    assert read["link_goodput"] == pytest.approx(8 * (2098696 - 1024) / 0.0145, rel=0.01)


def test_the_runs_packets_are_those_on_the_clients_links_both_ways():
    run = numbers(extracted(GOLDEN / "small"), "")
    assert run["packets"] == 240 and run["bytes"] == 8180 + 21360 and run["connections"] == 20


def test_connections_say_on_which_link_they_were_seen():
    table = extracted(GOLDEN / "small").tables["connections"]
    assert table["link"].to_pylist() == ["client"] * 20 + ["server"] * 20
    assert set(table["responder_port"].to_pylist()) == {8081}


def test_unfinished_checksums_are_the_only_caution_of_good_captures():
    """tshark that validates: 180 of client's 240 frames have a wrong TCP checksum, all of them the pseudo-header's sum."""
    for case in ("small", "large"):
        assert {caution.kind for caution in extracted(GOLDEN / case).cautions} == {Kind.CHECKSUM_OFFLOAD}
    first = extracted(GOLDEN / "small").cautions[0]
    assert first.detail == "180 of 420 checksums on client's link"


def doubts(found: Extracted) -> list[Caution]:
    return [caution for caution in found.cautions if caution.kind is not Kind.CHECKSUM_OFFLOAD]


@pytest.fixture
def case(tmp_path):
    shutil.copytree(GOLDEN / "small", tmp_path / "run")
    return tmp_path / "run"


def test_drops_are_counted_and_a_caution(case):
    (case / "machine/client.tcpdump.err").write_text(
        "tcpdump: listening on x\n240 packets captured\n300 packets received by filter\n60 packets dropped by kernel\n"
    )
    found = extracted(case)
    assert numbers(found, "client")["capture_drops"] == 60
    (caution,) = doubts(found)
    assert caution.kind is Kind.CAPTURE_DROPS
    assert caution.detail == "60 of 300 packets (20.00%) on client's link"


def test_drops_are_missing_where_tcpdump_did_not_end(case):
    (case / "machine/client.tcpdump.err").write_text("tcpdump: listening on x\n")
    (case / "machine/server.tcpdump.err").unlink()
    found = extracted(case)
    assert numbers(found, "client")["capture_drops"] is None and numbers(found, "server")["capture_drops"] is None
    assert [caution.kind for caution in doubts(found)] == [Kind.UNREADABLE, Kind.UNREADABLE]


def test_a_capture_that_was_cut_off_is_a_caution(case):
    file = case / "machine/client.pcap"
    file.write_bytes(file.read_bytes()[:-5])
    found = extracted(case)
    assert numbers(found, "client")["captured_packets"] == 239
    assert {caution.kind for caution in doubts(found)} == {Kind.UNREADABLE}


def test_a_capture_that_is_none_is_an_error(case):
    (case / "machine/client.pcap").write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"client\.pcap"):
        extracted(case)


def test_no_capture_at_all_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        extracted(tmp_path)


def test_every_value_is_declared_in_its_unit_and_given_once():
    found = extracted(GOLDEN / "large").values
    declared = {metric.name: metric.unit for metric in packets.metrics}
    assert all(declared[value.metric] == value.unit for value in found)
    places = [(value.metric, value.host, value.direction) for value in found]
    assert len(places) == len(set(places))


def test_every_setting_says_what_it_is():
    assert all(field.description for field in PacketsParams.model_fields.values())


def test_bytes_in_flight_are_tsharks():
    """Greatest tcp.analysis.bytes_in_flight of the server's segments."""
    assert numbers(extracted(GOLDEN / "large"), "client", S2C)["max_in_flight"] == 66560


def test_every_packet_is_found_on_the_other_link_and_its_time_on_the_way():
    """By frame.time_epoch of tshark's rows with the same ports, numbers, length and flags: medians 1.167 and 1.227 µs over all
    packets. The metric is the median of the connections' medians, of six packets each, so near it and not the same."""
    found = extracted(GOLDEN / "small")
    for direction, median in ((C2S, 1.167e-6), (S2C, 1.227e-6)):
        read = numbers(found, "", direction)
        assert read["path_lost_packets"] == read["path_split_packets"] == read["path_merged_packets"] == 0
        assert read["path_delay_median"] == pytest.approx(median, rel=0.05)


def with_packet(content: bytes, frame: bytes, at: int) -> bytes:
    """A capture with another packet before its ``at``-th, at the time of the one before."""
    offset = 24
    for _ in range(at):
        before = struct.unpack_from("<IIII", content, offset)
        offset += 16 + before[2]
    return content[:offset] + struct.pack("<IIII", *before[:2], len(frame), len(frame)) + frame + content[offset:]


def test_what_a_switch_says_to_one_host_alone_is_not_lost(case):
    """A router solicitation from an address that is neither host's, amid the packets on the client's link."""
    ethernet = bytes.fromhex("333300000002 5ec1a4ae3198 86dd")
    ip = bytes.fromhex("60000000 0010 3aff fe80000000000000 5cc1a4fffeae3198 ff020000000000000000000000000002")
    frame = ethernet + ip + bytes.fromhex("8500 0000 00000000 0101 5ec1a4ae3198")
    path = case / "machine/client.pcap"
    path.write_bytes(with_packet(path.read_bytes(), frame, 20))
    found = extracted(case)
    assert numbers(found, "", C2S)["path_lost_packets"] == numbers(found, "", S2C)["path_lost_packets"] == 0
    assert numbers(found, "client")["connections"] == numbers(extracted(GOLDEN / "small"), "client")["connections"] + 1


def test_what_is_lost_of_one_way_traffic_counts(case):
    """Datagrams that nobody answers, between addresses of their own: three sent, of which the second does not arrive."""
    for name, sent in (("client", (1, 2, 3)), ("server", (1, 3))):
        path = case / f"machine/{name}.pcap"
        content = path.read_bytes()
        for number in reversed(sent):
            ip = bytes.fromhex(f"45000024 {number:04x}0000 40110000 c0000201 c0000202")
            frame = (
                bytes.fromhex("5ec1a4ae0002 5ec1a4ae0001 0800")
                + ip
                + bytes.fromhex("0fa0 1388 0010 0000")
                + bytes([number] * 8)
            )
            content = with_packet(content, frame, 10 + number)
        path.write_bytes(content)
    assert numbers(extracted(case), "", C2S)["path_lost_packets"] == 1


def of_clients(metric: str, numbers_of: dict[str, float | None], direction: str = "") -> list[Value]:
    run = Value(metric, 1.0, "1", "", direction)
    return [run, *(Value(metric, number, "1", host, direction) for host, number in numbers_of.items())]


DRAWN = Drawn((("client2", "server2"), ("client5", "server5"), ("client7", "server7")), 12, seed=1)


def said_of_all(values: list[Value], work: dict[str, float] | None = None) -> dict[tuple[str, str, str], Value]:
    found = packets.of_all(DRAWN, Extracted(values), work or {}).values
    return {(value.metric, value.host, value.direction): value for value in found}


def test_sums_over_drawn_links_are_estimated_for_all_of_them():
    """By hand: qt(0.975, 2) is 4.302653; 12 * sqrt((1 - 3/12) * 700 / 3) is 158.745, with a variance of 10,000 it is 600."""
    values = of_clients("packets", {"client2": 10, "server2": 11, "client5": 20, "client7": 60})
    values += of_clients("packets", {"client2": 100, "client5": 200, "client7": 300}, C2S)
    found = said_of_all(values)
    both = found["packets", "", ""]
    assert both.value == 12 * 30 and both.high == pytest.approx(360 + 683.02, abs=0.01)
    assert both.low == 90, "what was seen is there at least"
    one_way = found["packets", "", C2S]
    assert (one_way.value, one_way.high) == (2400, pytest.approx(2400 + 2581.59, abs=0.01))
    assert found["packets", "client5", ""] == values[3], "what was measured on a link stays"


def test_a_sum_is_missing_where_a_drawn_link_is():
    found = said_of_all(of_clients("packets", {"client2": 10, "client5": None, "client7": 60}))
    assert found["packets", "", ""].value is found["packets", "", ""].low is None
    assert said_of_all(of_clients("packets", {"client2": 10}))["packets", "", ""].value is None


def test_means_are_those_of_the_sample_and_the_largest_is_not_known():
    values = of_clients("rtt", {"client2": 0.1, "client5": 0.2, "client7": 0.3}, C2S)
    values += of_clients("max_in_flight", {"client2": 1, "client5": 2, "client7": 3}, C2S)
    found = said_of_all(values)
    assert (found["rtt", "", C2S].value, found["rtt", "", C2S].low) == (1.0, None)
    assert found["max_in_flight", "", C2S].value is None and found["max_in_flight", "client7", C2S].value == 3


def test_a_sample_is_a_caution_with_its_size_and_what_it_leaves_open():
    values = of_clients("packets", {"client2": 10, "client5": 20, "client7": 60})
    values += of_clients("retransmitted_segments", {"client2": 0, "client5": 0, "client7": 0})
    (caution,) = packets.of_all(DRAWN, Extracted(values), {}).cautions
    assert caution.kind is Kind.SAMPLED
    assert caution.detail == (
        "3 of 12 pairs; 95% intervals: packets 360 (90 to 1043.02), retransmitted_segments 0 (all drawn alike: no interval)"
    )


def test_every_metric_of_the_run_is_a_sum_a_mean_or_the_most():
    """Each is in one of the groups, and what is summed over links is what the packets of one link add to."""
    means = {*MEASURED, *EXCHANGES, *PATHS, *STREAMS} - LARGEST - SUMS
    of_files = {"other_packets", "captured_packets", "capture_drops"}
    assert not SUMS & LARGEST and {metric.name for metric in packets.metrics} == SUMS | LARGEST | means | of_files
    assert {metric.name for metric in packets.metrics if metric.extensive} <= SUMS


def test_links_of_hosts_that_were_not_drawn_are_not_captured():
    links = {f"{side[0]}{i}": f"{side}{i}" for i in range(1, 9) for side in ("client", "server")}
    machine = Target(MACHINE, links, captures=True)
    started = packets.plan(PacketsParams(hosts="random 10 %"), machine.narrowed(DRAWN.hosts))
    assert {command.argv[2] for command in started} == {"c2", "s2", "c5", "s5", "c7", "s7"}
    on_host = Target("client3", {"eth0": "client3"}, own_kernel=True, captures=True)
    assert packets.plan(PacketsParams(), on_host.narrowed(DRAWN.hosts)) == []


def test_sums_follow_the_work_of_all_clients_where_it_is_known():
    """Captured pairs do half of what others do, and 12 packets a request: Horvitz and Thompson's total is half of the truth."""
    asked = {f"client{i}": 100.0 if f"client{i}" in {"client2", "client5", "client7"} else 200.0 for i in range(1, 13)}
    values = of_clients("packets", {"client2": 1190, "client5": 1200, "client7": 1210})
    found = said_of_all(values, asked)["packets", "", ""]
    assert found.value == 12 * sum(asked.values())
    # By hand: variance 100; (2100 - 300)/300 * 4.302653 * sqrt(3 * 12 / (12 - 3) * 100)
    assert found.high - found.value == pytest.approx(516.32, abs=0.01)
    assert said_of_all(values, {**asked, "client9": 0})["packets", "", ""].value == 12 * 1900
    del asked["client9"]
    assert said_of_all(values, asked)["packets", "", ""].value == 12 * 1200, "the work of one is not known"
