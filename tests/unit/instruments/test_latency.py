"""The instrument ``latency``: what irtt wrote, held against what irtt itself says of it, and clocks that are planted."""

from __future__ import annotations

import errno
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed.contracts.place import Target
from twinbed.instruments.latency import LatencyParams, latency
from twinbed.model.caution import Kind
from twinbed.readers.latency.files import of_owping

GOLDEN = Path(__file__).parents[2] / "golden" / "latency"
NAMES = sorted(file.stem for file in GOLDEN.glob("*.json"))
THERE, BACK = "client_to_server", "server_to_client"
PARAMS = LatencyParams()
NS = 1e-9


def reading(boot_id: str, synchronised: bool = False, max_error_s: float = 16.0) -> dict[str, Any]:
    return {"boot_id": boot_id, "synchronised": synchronised, "max_error_s": max_error_s}


SHARED = (reading("a"), reading("a"))
APART = (reading("a"), reading("b"))


@pytest.fixture
def extracted(tmp_path: Path) -> Callable[..., Any]:
    """Of a golden file, perhaps changed, with what both hosts say of their clocks."""

    def of(name: str, clocks: Any = SHARED, change: Callable[[Any], None] = lambda said: None, params: Any = PARAMS) -> Any:
        said = json.loads((GOLDEN / f"{name}.json").read_text())
        change(said)
        for host, clock in zip(("client", "server"), clocks, strict=True):
            (tmp_path / host).mkdir(exist_ok=True)
            if clock:
                (tmp_path / host / "clock.json").write_text(f"{json.dumps(clock)}\n" * 2)
        (tmp_path / "client" / "irtt-server.json").write_text(json.dumps(said))
        return latency.extract(params, tmp_path)

    return of


def of(found: Any) -> dict[tuple[str, str], float | None]:
    """(metric, direction) -> value of the run; of the clocks that of the client."""
    return {(value.metric, value.direction): value.value for value in found.values if value.host in ("", "client")}


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def kinds(found: Any) -> set[Kind]:
    return {caution.kind for caution in found.cautions}


@pytest.mark.parametrize("name", NAMES)
def test_what_irtt_says_itself_agrees(name: str, extracted: Callable[..., Any]) -> None:
    stats, values = golden(name)["stats"], of(extracted(name))
    near = pytest.approx
    assert values["probe_rtt_mean", ""] == near(stats["rtt"]["mean"] * NS, abs=2 * NS)
    assert values["probe_rtt_median", ""] == near(stats["rtt"]["median"] * NS, abs=2 * NS)
    assert values["probe_rtt_max", ""] == near(stats["rtt"]["max"] * NS, abs=2 * NS)
    assert values["probes_sent", ""] == stats["packets_sent"]
    assert values["probes_received", ""] == stats["packets_received"] - stats["duplicates"]
    assert values["probe_duplicates", ""] == stats["duplicates"]
    # irtt's differ by what its two readings of the clocks are apart; ours are of the monotonic ones.
    assert values["ipdv", THERE] == near(stats["ipdv_send"]["mean"] * NS, rel=0.02)
    assert values["ipdv", BACK] == near(stats["ipdv_receive"]["mean"] * NS, rel=0.02)


def test_of_one_kernel_one_way_delays_are_irtt_s(extracted: Callable[..., Any]) -> None:
    found = extracted("containers")
    stats, values = golden("containers")["stats"], of(found)
    for way, theirs in ((THERE, stats["send_delay"]), (BACK, stats["receive_delay"])):
        for ours, its in (("min", "min"), ("mean", "mean"), ("median", "median"), ("max", "max")):
            assert values[f"one_way_delay_{ours}", way] == pytest.approx(theirs[its] * NS, abs=2 * NS)
    assert not found.cautions
    assert abs(values["clock_offset", ""] or 0) <= (values["clock_offset_bound", ""] or 0), "one clock: its offset is 0"
    (row,) = found.tables["clocks"].to_pylist()
    assert row["shared"] and row["drift_low_ppm"] < 0 < row["drift_high_ppm"]


@pytest.mark.parametrize(("name", "lost_way", "other"), [("lossy-there", THERE, BACK), ("lossy-back", BACK, THERE)])
def test_loss_is_on_the_way_where_it_was_planted(name: str, lost_way: str, other: str, extracted: Callable[..., Any]) -> None:
    stats, values = golden(name)["stats"], of(extracted(name))
    percent = stats["upstream_loss_percent"] + stats["downstream_loss_percent"]
    assert percent > 0
    assert values["probe_loss", lost_way] == pytest.approx(percent / 100)
    assert values["probe_loss", other] == 0
    assert values["probe_loss", ""] == pytest.approx(stats["packet_loss_percent"] / 100)


def test_replies_that_come_twice_are_no_negative_loss(extracted: Callable[..., Any]) -> None:
    values = of(extracted("duplicated-back"))
    assert golden("duplicated-back")["stats"]["downstream_loss_percent"] > 100, "irtt's own is wrong there"
    assert values["probe_loss", BACK] == values["probe_loss", THERE] == values["probe_loss", ""] == 0


def test_overtaking_is_counted_where_it_was(extracted: Callable[..., Any]) -> None:
    trips = golden("reordered-there")["round_trips"]
    values = of(extracted("reordered-there"))
    for way, end, what in ((THERE, "server", "receive"), (BACK, "client", "receive")):
        key = {THERE: ("client", "send"), BACK: ("server", "send")}[way]
        arrivals = sorted(
            (trip["timestamps"][end][what]["monotonic"], trip["timestamps"][key[0]][key[1]]["monotonic"]) for trip in trips
        )
        sent = [sent for _, sent in arrivals]
        assert values["probes_reordered", way] == sum(one < max(sent[: at + 1]) for at, one in enumerate(sent))
    assert (values["probes_reordered", THERE] or 0) > 0


def test_probes_under_way_at_the_end_are_not_lost(extracted: Callable[..., Any]) -> None:
    found = extracted("interrupted")
    assert golden("interrupted")["stats"]["packet_loss_percent"] > 5, "irtt takes them for lost"
    assert of(found)["probe_loss", ""] == of(found)["probe_loss", THERE] == 0
    last = found.tables["probes"].to_pylist()[-1]
    assert last["lost_client_to_server"] is last["lost_server_to_client"] is last["rtt_s"] is None
    assert last["client_sent_ns"] is not None


def test_jitter_is_the_95th_percentile_less_the_median_of_each_window(extracted: Callable[..., Any]) -> None:
    found = extracted("containers", params=LatencyParams(window=0.25))
    values = of(found)
    trips = golden("containers")["round_trips"]
    begin = trips[0]["timestamps"]["client"]["send"]["monotonic"]
    cut: dict[int, list[int]] = {}
    for trip in trips:
        stamps = trip["timestamps"]
        sent, received = stamps["client"]["send"]["monotonic"], stamps["server"]["receive"]["monotonic"]
        cut.setdefault((sent - begin) // 250_000_000, []).append(received - sent)
    jitter = []
    for delays in cut.values():
        if len(delays) >= 20:
            parts = statistics.quantiles(delays, n=20, method="inclusive")
            jitter.append((parts[18] - statistics.median(delays)) * NS)
    assert len(jitter) > 2
    assert values["jitter", THERE] == pytest.approx(statistics.mean(jitter), abs=NS)
    assert values["jitter_max", THERE] == pytest.approx(max(jitter), abs=NS)
    every = [row["jitter_s"] for row in found.tables["delay_windows"].to_pylist() if row["jitter_s"] is not None]
    assert values["jitter", ""] == pytest.approx(statistics.mean(every)), "of both directions, as the studies print it"
    rows = [row for row in found.tables["delay_windows"].to_pylist() if row["direction"] == THERE]
    assert [row["arrived"] for row in rows] == [len(delays) for delays in cut.values()]
    assert [row["jitter_s"] for row in rows if row["jitter_s"] is not None] == pytest.approx(jitter, abs=NS)


def test_different_kernels_have_no_one_way_delay_but_jitter(extracted: Callable[..., Any]) -> None:
    found = extracted("lossy-there", APART)
    values = of(found)
    assert kinds(found) == {Kind.CLOCKS_APART}
    assert values["one_way_delay_min", THERE] is values["one_way_delay_median", BACK] is None
    assert values["jitter", THERE] is not None and values["probe_rtt_median", ""] is not None
    assert all(row["client_to_server_s"] is None for row in found.tables["probes"].to_pylist())


def ahead(said: Any, *, offset_ns: int = 0, ppm: float = 0.0, wall_only_ns: int = 0, after: int = 0) -> None:
    """The server's clocks another way: apart by an offset, running away, and its wall clock stepped from a probe on."""
    for number, trip in enumerate(said["round_trips"]):
        for stamp in trip["timestamps"]["server"].values():
            if stamp:
                begin = said["round_trips"][0]["timestamps"]["client"]["send"]["wall"]
                more = offset_ns + round((stamp["wall"] - begin) * ppm / 1e6)
                stamp["monotonic"] += more
                stamp["wall"] += more + (wall_only_ns if number >= after else 0)


def test_a_planted_offset_and_drift_are_found_and_taken_off_the_jitter(extracted: Callable[..., Any]) -> None:
    plain = of(extracted("containers"))
    found = extracted("containers", APART, lambda said: ahead(said, offset_ns=7_000_000_000, ppm=900.0))
    values = of(found)
    # At the middle of a run of 1 s: 7 s and half of 900 ppm.
    assert values["clock_offset", ""] == pytest.approx(7.00045, abs=values["clock_offset_bound", ""])
    (row,) = found.tables["clocks"].to_pylist()
    assert row["drift_low_ppm"] <= 900 <= row["drift_high_ppm"] and row["drift_low_ppm"] > 0
    assert row["drift_ppm"] == pytest.approx(900, abs=60)
    assert values["jitter", THERE] == pytest.approx(plain["jitter", THERE], abs=30e-6), "0.4 ms without taking the drift off"
    assert kinds(found) == {Kind.CLOCKS_APART}


@pytest.mark.parametrize("clocks", [SHARED, APART])
def test_a_step_of_a_clock_is_seen_and_does_not_disturb_jitter(clocks: Any, extracted: Callable[..., Any]) -> None:
    plain = of(extracted("containers", clocks))
    found = extracted("containers", clocks, lambda said: ahead(said, wall_only_ns=-1_500_000_000, after=40))
    values = of(found)
    assert kinds(found) == {Kind.CLOCK_STEP}
    assert "server: by -1.5 s, 0.4 s after the first probe" in found.cautions[0].detail
    assert values["one_way_delay_mean", THERE] is None, "though they share a clock, as they seemed to"
    for metric in ("jitter", "ipdv", "delay_variation_p95"):
        assert values[metric, THERE] == plain[metric, THERE]
    assert values["probe_rtt_max", ""] == plain["probe_rtt_max", ""]


def test_clocks_agree_only_to_less_than_the_delay(extracted: Callable[..., Any]) -> None:
    """The containers' delays are tens of microseconds."""
    close = (reading("a", True, 1e-6), reading("b", True, 2e-6))
    found = extracted("containers", close)
    assert not found.cautions and of(found)["one_way_delay_min", THERE] is not None
    far = (reading("a", True, 1e-6), reading("b", True, 5e-3))
    assert kinds(extracted("containers", far)) == {Kind.CLOCKS_APART}
    one = (reading("a", True, 1e-6), reading("b", False, 1e-6))
    assert kinds(extracted("containers", one)) == {Kind.CLOCKS_APART}
    assert kinds(extracted("containers", (reading("a"), None))) == {Kind.CLOCKS_APART}, "one host said nothing"


def test_nothing_came_back(extracted: Callable[..., Any]) -> None:
    def lose(said: Any) -> None:
        for trip in said["round_trips"]:
            trip.update(lost="true", delay={}, ipdv={})
            trip["timestamps"]["client"]["receive"] = {}
            trip["timestamps"]["server"] = {"receive": {}, "send": {}}

    found = extracted("containers", SHARED, lose)
    values = of(found)
    assert values["probe_loss", ""] == 1.0 and values["probes_received", ""] == 0
    assert values["probe_loss", THERE] is None, "on which way is not known"
    assert values["probe_rtt_mean", ""] is values["jitter", BACK] is values["clock_offset", ""] is None


@pytest.mark.parametrize("cut", [0, 10, 5_000, -3])
def test_results_that_were_cut_off_are_unreadable(cut: int, tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "irtt-server.json").write_bytes((GOLDEN / "containers.json").read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"irtt-server\.json of client"):
        latency.extract(PARAMS, tmp_path)
    (tmp_path / "client" / "irtt-server.json.out.err").write_text("panic: too late\n\ngoroutine 1\n")
    with pytest.raises(ValueError, match=r"irtt-server\.json of client.*; irtt wrote: panic: too late goroutine 1"):
        latency.extract(PARAMS, tmp_path)


def test_a_client_that_broke_off_is_unreadable(extracted: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="broke off"):
        extracted("containers", SHARED, lambda said: said.update(receive_err={"Code": -2051}))

    def of_socket(number: int) -> dict[str, Any]:
        """As Go writes an error of a socket."""
        return {"Op": "read", "Net": "udp4", "Err": {"Syscall": "read", "Err": number}}

    with pytest.raises(ValueError, match=r"broke off: \{'receive_err': 113\}"):
        extracted("containers", SHARED, lambda said: said.update(receive_err=of_socket(errno.EHOSTUNREACH)))
    # The server ended a moment before the client did: the last probe was refused, and nothing else is missing.
    extracted("containers", SHARED, lambda said: said.update(receive_err=of_socket(errno.ECONNREFUSED)))


def test_of_several_pairs_each_is_told_and_all_together(tmp_path: Path) -> None:
    for number, name in ((1, "lossy-there"), (2, "lossy-back")):
        (tmp_path / f"client{number}").mkdir()
        (tmp_path / f"client{number}" / f"irtt-server{number}.json").write_bytes((GOLDEN / f"{name}.json").read_bytes())
    found = latency.extract(PARAMS, tmp_path)
    values = {(value.metric, value.host, value.direction): value.value for value in found.values}
    sent = [golden(name)["stats"]["packets_sent"] for name in ("lossy-there", "lossy-back")]
    assert [values["probes_sent", host, ""] for host in ("client1", "client2", "")] == [*sent, sum(sent)]
    both = values["probe_loss", "client1", ""] * sent[0] + values["probe_loss", "client2", ""] * sent[1]
    assert values["probe_loss", "", ""] == pytest.approx(both / sum(sent))
    assert set(found.tables["probes"]["client"].to_pylist()) == {"client1", "client2"}


def test_a_pair_that_cannot_be_read_is_no_part_of_the_run_s_values(tmp_path: Path) -> None:
    for number, text in ((1, (GOLDEN / "containers.json").read_text()), (2, "{")):
        (tmp_path / f"client{number}").mkdir()
        (tmp_path / f"client{number}" / f"irtt-server{number}.json").write_text(text)
    found = latency.extract(PARAMS, tmp_path)
    assert Kind.UNREADABLE in kinds(found)
    values = {(value.metric, value.host): value.value for value in found.values}
    assert values["probe_rtt_mean", ""] is None and values["probe_rtt_mean", "client1"] is not None


def test_the_server_is_ready_before_the_client_starts() -> None:
    servers = latency.plan(PARAMS, Target("server", {"eth0": "server"}, clients={"client": "10.77.0.1"}))
    clients = latency.plan(PARAMS, Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"}))
    assert [command.argv[1] for command in (*servers, *clients)] == ["server", "clock", "client", "clock"]
    assert servers[0].round < clients[0].round
    assert "%eth0:2112" in servers[0].argv and "10.77.0.2:2112" in clients[0].argv
    assert latency.plan(PARAMS, Target("router", {"eth0": "router"})) == ()


def test_a_window_must_hold_enough_probes() -> None:
    with pytest.raises(ValidationError, match="fewer than 20 probes"):
        LatencyParams(interval=0.1, window=1.0)
    assert LatencyParams(interval=0.05, window=1.0)


def test_probes_sent_are_the_longest_a_run_may_be() -> None:
    command, _ = latency.plan(LatencyParams(), Target("client", {"eth0": "client"}, servers={"server": "10.0.0.2"}))
    assert command.argv[command.argv.index("-d") + 1] == "10000s"
    assert command.argv[command.argv.index("-i") + 1] == "10000000ns"


OWAMP = LatencyParams(tool="owamp")
EPOCH = 2_208_988_800
"""Seconds from 1900 to 1970 (RFC 5905, figure 4)."""


def record(sequence: int, sent_s: float, received_s: float | None) -> str:
    """A line of owping -R, by its manual. Times are whole multiples of 2^-32 of a second."""
    received = 0 if received_s is None else round((EPOCH + received_s) * 2**32)
    return f"{sequence} {round((EPOCH + sent_s) * 2**32)} 1 1.525879e-05 {received} 1 2.28882e-05 255"


def owping(folder: Path, there: list[str], back: list[str]) -> Any:
    (folder / "client").mkdir(exist_ok=True)
    for way, lines in ((THERE, there), (BACK, back)):
        (folder / "client" / of_owping("server", way)).write_text("".join(f"{line}\n" for line in lines))
    return latency.extract(OWAMP, folder)


def test_owping_s_records_are_read(tmp_path: Path) -> None:
    """Delays of 2^-10 s there, of 2^-11 s back; there one of 100 is lost and one comes twice, back one is overtaken."""
    begin = 1_700_000_000.0
    there = [record(n, begin + n / 128, begin + n / 128 + 2**-10) for n in range(100)]
    there[7] = record(7, begin + 7 / 128, None)
    there.insert(20, there[19])
    back = [record(n, begin + n / 128, begin + n / 128 + (2**-11 if n != 50 else 3 / 128)) for n in range(100)]
    found = owping(tmp_path, there, back)
    values = of(found)
    assert values["probe_loss", THERE] == 0.01 and values["probe_loss", BACK] == 0
    assert values["probes_sent", ""] == 200 and values["probes_received", ""] == 199
    assert values["probe_duplicates", ""] == 1
    assert values["probes_reordered", THERE] == 0 and values["probes_reordered", BACK] == 1
    assert values["jitter", THERE] == 0 and values["delay_variation_p95", THERE] == 0
    assert values["probe_rtt_mean", ""] is None, "no packet goes there and back"
    # Half the difference of the delays, with a bound of half their sum.
    assert values["clock_offset", ""] == pytest.approx((2**-10 - 2**-11) / 2, abs=2 * NS)
    assert values["clock_offset_bound", ""] == pytest.approx((2**-10 + 2**-11) / 2, abs=2 * NS)
    assert kinds(found) == {Kind.CLOCKS_APART}
    row = found.tables["probes"].to_pylist()[1]
    assert row["client_sent_ns"] == 1_700_000_000_007_812_500
    assert row["server_received_ns"] - row["client_sent_ns"] in (976_562, 976_563), "976,562.5"


def test_of_owping_one_kernel_has_one_way_delays(tmp_path: Path) -> None:
    for host, clock in zip(("client", "server"), SHARED, strict=True):
        (tmp_path / host).mkdir()
        (tmp_path / host / "clock.json").write_text(f"{json.dumps(clock)}\n" * 2)
    lines = [record(n, 1e9 + n / 128, 1e9 + n / 128 + 2**-9) for n in range(50)]
    values = of(owping(tmp_path, lines, lines))
    assert values["one_way_delay_max", BACK] == pytest.approx(2**-9, abs=NS)


def test_a_step_between_owping_s_packets_is_seen_by_what_delays_allow(tmp_path: Path) -> None:
    there = [record(n, 1e9 + n / 64, 1e9 + n / 64 + 2**-10 + (n >= 192) * 0.5) for n in range(384)]
    back = [record(n, 1e9 + n / 64 + (n >= 192) * 0.5, 1e9 + n / 64 + 2**-10) for n in range(384)]
    found = owping(tmp_path, there, back)
    assert kinds(found) == {Kind.CLOCK_STEP}
    assert "3.0 s after the first probe" in found.cautions[0].detail


@pytest.mark.parametrize("lines", [[], ["owping: FATAL: connection refused"], [record(0, 0.0, 1.0)[:-4]]])
def test_what_is_no_record_of_owping_is_unreadable(lines: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"owping-server\.client_to_server\.txt of client"):
        owping(tmp_path, lines, [record(0, 0.0, 1.0)])


def test_owping_is_planned_once_each_way() -> None:
    servers = latency.plan(OWAMP, Target("server", {"eth0": "server"}, clients={"client": "10.77.0.1"}))
    clients = latency.plan(OWAMP, Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"}))
    assert [command.argv[0] for command in servers] == ["owampd", "twinbed-probe"]
    assert [command.argv[:3] for command in clients[:2]] == [("owping", "-t", "-R"), ("owping", "-f", "-R")]
    assert OWAMP.programs() == ("owampd", "owping") and PARAMS.programs() == ("irtt",)
