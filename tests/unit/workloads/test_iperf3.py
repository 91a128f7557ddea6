"""What the workload ``iperf3`` plans, and reads from real reports; tests/golden/iperf3/README.md says where they are from."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed.contracts.extracted import Extracted
from twinbed.model.caution import Kind
from twinbed.model.clients import ClientTimes
from twinbed.workloads.iperf3 import Iperf3Params, Streams, iperf3

GOLDEN = Path(__file__).parents[2] / "golden" / "iperf3"
UDP = Iperf3Params(protocol="udp", duration=3)
TCP = Iperf3Params(duration=3, omit=1, streams=2)
PAIRS = Iperf3Params(protocol="udp", duration=3, omit=1)


def numbers(extracted: Extracted, host: str = "") -> dict[str, float | None]:
    return {value.metric: value.value for value in extracted.values if value.host == host}


def own_end(folder: str, client: str = "client") -> dict[str, Any]:
    end: dict[str, Any] = json.loads((GOLDEN / folder / client / "iperf3.json").read_text())["end"]
    return end


def argv(**settings: object) -> str:
    plan = iperf3.plan(Iperf3Params(**settings), [("client", "server", "10.77.0.2")])  # type: ignore[arg-type]
    return " ".join(plan.clients[0].argv)


def test_plans() -> None:
    head = "iperf3 -c 10.77.0.2 -p 5201 -J --get-server-output -i 1"
    assert argv() == f"{head} -t 10 -O 0 -P 1"
    assert argv(duration="2s", omit="1s", streams=4, mss=500, rate="1mbit", payload="64KiB", socket_buffer="1MiB") == (
        f"{head} -t 2 -O 1 -P 4 -b 1000000 -l 65536 -M 500 -w 1048576"
    )
    assert argv(nagle="off", payload="500B") == f"{head} -t 10 -O 0 -P 1 -l 500 -N"
    assert argv(nagle="on") == argv()
    assert argv(congestion="cubic") == f"{head} -t 10 -O 0 -P 1 -C cubic"
    assert argv(protocol="udp", payload="18B") == f"{head} -t 10 -O 0 -P 1 -u -b 0 -l 18"
    plan = iperf3.plan(Iperf3Params(), [("client", "server", "10.77.0.2")])
    assert plan.servers[0].argv == ("iperf3", "-s", "-p", "5201", "-J", "-i", "1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"duration": "1500ms"}, "duration must be whole seconds"),
        ({"omit": "1500ms"}, "omit must be whole seconds"),
        ({"protocol": "udp", "mss": 500}, "mss needs protocol: tcp"),
        ({"protocol": "udp", "congestion": "cubic"}, "congestion needs protocol: tcp"),
        ({"protocol": "udp", "nagle": "off"}, "nagle needs protocol: tcp"),
        ({"protocol": "udp", "payload": "15B"}, r"16 \(iperf3's header\) to 65507 bytes, not 15"),
        ({"protocol": "udp", "payload": "64KiB"}, "not 65536"),
    ],
)
def test_what_iperf3_cannot_do_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Iperf3Params(**settings)  # type: ignore[arg-type]


def test_udp_with_loss() -> None:
    """Sums and rates are iperf3's own, as nothing was omitted; what was sent is as tshark counted it on the wire."""
    found, end = numbers(iperf3.parse(UDP, GOLDEN / "udp")), own_end("udp")
    assert found["sent_datagrams"] == 34812 == end["sum_sent"]["packets"]
    assert found["lost_datagrams"] == end["sum_received"]["lost_packets"]
    assert found["received_bytes"] == end["sum_received"]["bytes"] == 1400 * found["received_datagrams"]  # type: ignore[operator]
    # Less than tshark saw on the server's link: what came after the end, and what its socket had no room for.
    assert found["received_datagrams"] < 26086  # type: ignore[operator]
    assert found["goodput"] == pytest.approx(end["sum_received"]["bits_per_second"], rel=1e-4)
    assert found["send_rate"] == pytest.approx(end["sum_sent"]["bits_per_second"], rel=1e-4)
    assert found["loss"] == pytest.approx(end["sum_received"]["lost_percent"] / 100, rel=1e-4)
    assert found["effective_throughput"] == pytest.approx((1 - 0.258611) * 129.961e6, rel=1e-4)


def test_jitter_is_not_that_of_the_last_interval() -> None:
    report = json.loads((GOLDEN / "udp" / "client" / "iperf3.json").read_text())
    jitters = [each["streams"][0]["jitter_ms"] for each in report["server_output_json"]["intervals"]]
    found = numbers(iperf3.parse(UDP, GOLDEN / "udp"))["interarrival_jitter"]
    assert found == pytest.approx(sum(jitters[:3]) / 3 * 1e-3)
    assert found != pytest.approx(report["end"]["sum_received"]["jitter_ms"] * 1e-3, rel=0.1)


def test_tcp() -> None:
    found, end = numbers(iperf3.parse(TCP, GOLDEN / "tcp")), own_end("tcp")
    assert found["tcp_retransmissions"] == end["sum_sent"]["retransmits"]
    assert found["sent_bytes"] == end["sum_sent"]["bytes"]
    assert found["received_bytes"] == end["sum_received"]["bytes"]
    assert found["goodput"] == pytest.approx(end["sum_received"]["bits_per_second"], rel=1e-4)
    assert 0 < found["tcp_rtt_mean"] < 0.1  # type: ignore[operator]
    assert "loss" not in found and "interarrival_jitter" not in found


def test_what_is_omitted_is_not_counted_though_iperf3_does() -> None:
    extracted = iperf3.parse(PAIRS, GOLDEN / "pairs")
    for client in ("client1", "client2"):
        found, end = numbers(extracted, client), own_end("pairs", client)
        omitted = json.loads((GOLDEN / "pairs" / client / "iperf3.json").read_text())["server_output_json"]["intervals"][0]
        assert omitted["sum"]["omitted"]
        assert found["lost_datagrams"] == end["sum_received"]["lost_packets"] - omitted["sum"]["lost_packets"]
        assert found["received_bytes"] == end["sum_received"]["bytes"]
    both, one, two = numbers(extracted), numbers(extracted, "client1"), numbers(extracted, "client2")
    for name in ("sent_datagrams", "received_datagrams", "lost_datagrams", "goodput"):
        assert both[name] == pytest.approx(one[name] + two[name])  # type: ignore[operator]
    assert both["loss"] == pytest.approx((21055 + 22075) / (245751 + 47), rel=1e-6)


def test_the_table_of_intervals() -> None:
    table = iperf3.parse(PAIRS, GOLDEN / "pairs").tables["intervals"]
    assert table.num_rows == 2 * 2 * 3
    assert set(table["end"].to_pylist()) == {"client", "server"}
    received = [row for row in table.to_pylist() if row["host"] == "client1" and row["end"] == "server"]
    assert sum(row["lost_datagrams"] for row in received) == 21055


def changed(tmp_path: Path, folder: str, change: Any) -> Path:
    report = json.loads((GOLDEN / folder / "client" / "iperf3.json").read_text())
    change(report)
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "iperf3.json").write_text(json.dumps(report))
    return tmp_path


def test_a_stream_that_ended_early_is_a_caution(tmp_path: Path) -> None:
    place = changed(tmp_path, "udp", lambda report: report["server_output_json"]["intervals"].pop(1))
    assert [caution.kind for caution in iperf3.parse(UDP, place).cautions] == [Kind.CUT_SHORT]


def test_a_server_whose_clock_began_late_has_no_rate(tmp_path: Path) -> None:
    """As seen where guests outnumber CPUs: 7.3 MB of a stream of two seconds in 29 ms."""
    report = json.loads((GOLDEN / "udp" / "client" / "iperf3.json").read_text())
    far = report["server_output_json"]
    whole = sum(each["sum"]["bytes"] for each in far["intervals"])
    late = far["intervals"][-1]
    late["sum"] |= {"bytes": whole, "seconds": 0.029, "omitted": False}
    far["intervals"] = [late]
    place = tmp_path / "client" / "iperf3.json"
    place.parent.mkdir()
    place.write_text(json.dumps(report))
    found = iperf3.parse(UDP, tmp_path)
    values = numbers(found)
    assert values["goodput"] is None
    assert values["received_bytes"] == whole
    assert values["send_rate"] is not None and values["loss"] is not None
    assert "faster than they were sent: no rate" in " ".join(caution.detail for caution in found.cautions)


def test_nothing_counted_is_null_with_a_caution(tmp_path: Path) -> None:
    def omit(report: Any) -> None:
        for each in report["server_output_json"]["intervals"]:
            each["sum"]["omitted"] = True

    extracted = iperf3.parse(UDP, changed(tmp_path, "udp", omit))
    assert [caution.kind for caution in extracted.cautions] == [Kind.UNREADABLE]
    assert numbers(extracted)["goodput"] is None and numbers(extracted)["loss"] is None


@pytest.mark.parametrize("text", ["", "no JSON", '{"start": {}, "error": "unable to connect to server"}', '{"intervals": []}'])
def test_anything_else_is_an_error_with_its_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "iperf3.json").write_text(text)
    with pytest.raises(ValueError, match="iperf3"):
        iperf3.parse(UDP, tmp_path)


def test_the_congestion_control_asked_for_is_held_against_both_ends_reports(tmp_path: Path) -> None:
    """The report was made with bbr at both ends (its ``sender_tcp_congestion``, ``receiver_tcp_congestion``)."""
    asked = {name: TCP.model_copy(update={"congestion": name}) for name in ("bbr", "cubic")}
    assert numbers(iperf3.parse(asked["bbr"], GOLDEN / "tcp")) == numbers(iperf3.parse(TCP, GOLDEN / "tcp"))
    with pytest.raises(ValueError, match="the sender should use the congestion control cubic; it reports bbr"):
        iperf3.parse(asked["cubic"], GOLDEN / "tcp")
    report = json.loads((GOLDEN / "tcp/client/iperf3.json").read_text())
    report["end"] |= {"sender_tcp_congestion": "cubic"}
    (tmp_path / "client").mkdir()
    (tmp_path / "client/iperf3.json").write_text(json.dumps(report))
    with pytest.raises(ValueError, match="the receiver should use the congestion control cubic; it reports bbr"):
        iperf3.parse(asked["cubic"], tmp_path)


APART = Iperf3Params(protocol="udp", duration=6, omit=1)
TIMES = [ClientTimes("client1", 0.0, 7.196005), ClientTimes("client2", 1.502556, 8.507645)]


def counted(client: str, end: str, *which: int) -> list[dict[str, Any]]:
    report = json.loads((GOLDEN / "apart" / client / "iperf3.json").read_text())
    intervals = report["intervals"] if end == "client" else report["server_output_json"]["intervals"]
    kept = [each["sum"] for each in intervals if not each["sum"]["omitted"]]
    return [kept[at] for at in which]


def test_of_clients_that_start_apart_rates_are_of_the_seconds_in_which_both_sent() -> None:
    """Both sent from 1.51 s on, when the second began, to 7 s, when the first ended: after the omitted second, seconds 1 to 4
    of the first and 0 to 3 of the second are inside. The uplink drops 1 - 10 / 16.48, by its rate and the frames offered."""
    whole, part = iperf3.parse(APART, GOLDEN / "apart"), iperf3.parse_overlap(APART, GOLDEN / "apart", TIMES)
    for client, inside in (("client1", (1, 2, 3, 4)), ("client2", (0, 1, 2, 3))):
        received, sent, found = counted(client, "server", *inside), counted(client, "client", *inside), numbers(part, client)
        assert found["goodput"] == 8 * sum(s["bytes"] for s in received) / math.fsum(s["seconds"] for s in received)
        assert found["send_rate"] == 8 * sum(s["bytes"] for s in sent) / math.fsum(s["seconds"] for s in sent)
        assert found["loss"] == sum(s["lost_packets"] for s in received) / sum(s["packets"] for s in received)
        for name in ("received_bytes", "lost_datagrams", "sent_datagrams", "time_taken"):
            assert found[name] == numbers(whole, client)[name], name
    assert numbers(part)["loss"] == 2241 / 5713 == pytest.approx(1 - 10 / (16 * 1442 / 1400), abs=0.002)
    assert numbers(whole)["loss"] == pytest.approx(0.311, abs=0.001)
    assert numbers(part)["lost_datagrams"] == numbers(whole)["lost_datagrams"]
    assert numbers(part)["goodput"] == sum(numbers(part, client)["goodput"] for client in ("client1", "client2"))  # type: ignore[misc]
    [caution] = part.cautions
    assert caution.kind is Kind.SKEWED_START
    assert caution.detail == "rates, losses and means cover the seconds in which all sent: at least 4 of each client's 6 s"


def test_without_a_common_second_all_seconds_count_and_that_is_a_caution() -> None:
    times = [TIMES[0], ClientTimes("client2", 6.5, 13.505)]
    part = iperf3.parse_overlap(APART, GOLDEN / "apart", times)
    assert list(part.values) == list(iperf3.parse(APART, GOLDEN / "apart").values)
    assert [caution.detail for caution in part.cautions] == [
        "not every client has a full second while all sent: rates, losses and means cover all seconds"
    ]


def test_a_second_is_left_out_where_it_may_lie_outside() -> None:
    """A program that goes on for 0.2 s after its streams may have begun them 0.2 s late; if it goes on for 2 s, 0.25 s late."""
    seconds = [{"sum": {"start": at, "seconds": 1.0, "bytes": 1, "bits_per_second": 8.0, "omitted": False}} for at in range(3)]
    for ends_s, latest_s in ((3.0, 0.0), (3.2, 0.2), (5.0, 0.25)):
        streams = Streams(seconds, ClientTimes("client", 0.0, ends_s))  # type: ignore[arg-type]
        assert (streams.latest_start_s, streams.earliest_end_s) == (pytest.approx(latest_s), 3.0)
        assert len(streams.within(0.0, 3.0 + latest_s)) == 3 and len(streams.within(0.0, 2.99 + latest_s)) == 2
        assert len(streams.within(0.01, 4.0)) == 2
