"""The analysis ``explain``: planted signs are found and ranked, what nothing works on is not, and nothing differs in A/A."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from tests.unit.analyses.explain.made_study import BUSY, PACKETS, study

from twinbed.analyses.explain.command import command
from twinbed.analyses.explain.method import analysis as explain
from twinbed.analyses.explain.proof import cause_of, proved, study_text
from twinbed.analyses.explain.result import Explanation, Proved
from twinbed.analyses.explain.signs import Waits, waits
from twinbed.analyses.explain.words import candidates, section, sentences
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.place import MACHINE
from twinbed.design.order import runs
from twinbed.model.clients import ClientTimes
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.tables import Tables
from twinbed.registry import catalogue
from twinbed.render.pages import page
from twinbed.study.loading import load

SAME = {"real": 1000.0, "virtual": 1000.0}
SLOWER = {"real": 1000.0, "virtual": 500.0}
JOINED = {"snmp:Ip.InReceives": 0.1 * PACKETS}
"""Receive offload hands over a tenth of the packets."""
CORKED = {"netstat:TcpExt.TCPAutoCorking": 0.2 * PACKETS}
HELD = {"netstat:TcpExt.DelayedACKs": 100.0}
"""100 times 40 ms in 10 s."""


def causes(result: Explanation) -> list[str]:
    return [candidate.cause.name for pair in result.pairs for candidate in pair.candidates]


@pytest.mark.parametrize(
    ("name", "counted", "sign"),
    [("gro", JOINED, 0.9), ("autocorking", CORKED, 0.2), ("delayed_ack", HELD, 0.4)],
)
def test_what_works_on_one_testbed_alone_is_named_with_its_share(name: str, counted: dict[str, float], sign: float) -> None:
    result = explain.run(study({"real": counted, "virtual": {}}, SLOWER))
    (pair,) = result.pairs
    assert (pair.testbed, pair.reference, [each.metric for each in pair.responses]) == (
        "virtual",
        "real",
        ["requests_per_second"],
    )
    (one,) = pair.candidates
    assert (one.cause.name, one.role, one.alone) == (name, "server", True)
    assert (one.reference, one.own) == pytest.approx((sign, 0), abs=0.02)
    assert one.p < 0.001


def test_waiting_for_idle_cpus_is_a_cause_with_a_switch() -> None:
    states = {"real": {"idle": "busy"}, "virtual": {"idle": "normal"}}
    source = study({"real": {}, "virtual": {}}, SLOWER, waited={"real": 0.0, "virtual": 0.4}, states=states)
    result = explain.run(source)
    (one,) = result.pairs[0].candidates
    assert (one.cause.name, one.role, one.alone, one.states) == ("idle_cpus", "", True, ("normal", "busy"))
    assert (one.own, one.reference) == (pytest.approx(0.4, rel=0.05), 0.0)
    written = load(study_text(result, source, cause_of(result, None)), "proof.yaml", catalogue())
    assert written.factors["testbed.idle"] == ("normal", "busy")


def timed(seconds: float, of_guest: float = 0.0) -> dict[tuple[str, str, str], float]:
    """20,000 wake-ups in 10 s, four in each request, on a machine; and a fourth as many in a guest's kernel."""
    metrics = {("idle_wake_ups", MACHINE, ""): 20_000.0, ("idle_wake_ups_per_request", MACHINE, ""): 4.0}
    metrics |= {("idle_wake_up_seconds", MACHINE, ""): seconds}
    if of_guest:
        metrics |= {("idle_wake_ups", "server1", ""): 5_000.0, ("idle_wake_ups_per_request", "server1", ""): 1.0}
        metrics |= {("idle_wake_up_seconds", "server1", ""): of_guest}
    return metrics


def test_wake_ups_that_were_timed_go_before_what_was_estimated() -> None:
    """Of 10 s of a client and 5,000 requests, 2 ms each: 20,000 wake-ups of 30 us are 0.6 s, 5,000 of 40 us another 0.2 s."""
    values = {"real": timed(0.002), "virtual": timed(0.6, of_guest=0.2)}
    result = explain.run(study({"real": {}, "virtual": {}}, SLOWER, waited={"real": 0.5, "virtual": 0.5}, values=values))
    (one,) = result.pairs[0].candidates
    assert (one.cause.name, one.alone) == ("idle_cpus", True)
    assert (one.own, one.reference) == pytest.approx((0.08, 0.0002), rel=0.05)
    here, there = one.waits
    assert here is not None and there is not None
    assert (here.work, here.wake_ups, here.each_s, here.work_s) == (
        "request",
        *(pytest.approx(x, rel=0.05) for x in (5, 32e-6, 2e-3)),
    )
    assert (there.wake_ups, there.waited_s) == (pytest.approx(4, rel=0.05), pytest.approx(4e-7, rel=0.05))
    (row,) = candidates(result).rows()
    assert (row["wake_ups_per_work"], row["reference_wake_up_s"]) == (here.wake_ups, there.each_s)
    sentence = r"virtual: a request takes (\S+) ms, including (\S+) µs for (\S+) wake-ups of (\S+) µs each\."
    match = re.search(sentence, next(sentences(result)))
    assert match is not None
    assert [float(word) for word in match.groups()] == pytest.approx([2, 160, 5, 32], rel=0.06)


def test_a_kernel_that_times_no_wake_ups_leaves_the_estimate() -> None:
    """A guest's alone do not say what the machine's CPUs took."""
    guest = {key: value for key, value in timed(0.6, of_guest=0.2).items() if key[1] != MACHINE}
    values = {"real": guest, "virtual": guest}
    result = explain.run(study({"real": {}, "virtual": {}}, SLOWER, waited={"real": 0.0, "virtual": 0.4}, values=values))
    (one,) = result.pairs[0].candidates
    assert (one.own, one.waits) == (pytest.approx(0.4, rel=0.05), (None, None))


def test_nothing_is_explained_where_nothing_differs() -> None:
    result = explain.run(study({"real": JOINED, "virtual": {}}, SAME))
    assert (result.pairs, result.compared) == ((), 1)
    assert "Nothing to explain" in next(sentences(result))


def test_no_cause_is_named_where_none_shows() -> None:
    result = explain.run(study({"real": JOINED, "virtual": JOINED}, SLOWER))
    assert causes(result) == []
    assert "No candidate cause was found." in next(sentences(result))


def test_what_comes_earlier_on_a_packets_way_comes_first() -> None:
    result = explain.run(study({"real": {}, "virtual": {**HELD, **JOINED, **CORKED}}, SLOWER))
    assert causes(result) == ["autocorking", "gro", "delayed_ack"]


def test_what_differs_by_degrees_comes_after_what_works_on_one_alone() -> None:
    few = {"netstat:TcpExt.TCPAutoCorking": 0.4 * PACKETS}
    result = explain.run(study({"real": {**CORKED, **JOINED}, "virtual": few}, SLOWER))
    assert causes(result) == ["gro", "autocorking"]
    assert [each.alone for each in result.pairs[0].candidates] == [True, False]


def test_receive_offload_without_anything_to_join_says_nothing() -> None:
    """Small packets, and such that came joined, are not what it works on."""
    for size in (100.0, 20_000.0):
        other = {"net/dev:eth0.rx_bytes": size * PACKETS}
        assert causes(explain.run(study({"real": {**JOINED, **other}, "virtual": other}, SLOWER))) == []


def test_cpus_come_first_where_they_are_others_and_take_twice_the_time() -> None:
    time = ("workload_cpu_seconds_per_request", "server1", "")
    values = {"real": {time: 0.0001}, "virtual": {time: 0.001}}
    counted = {"real": JOINED, "virtual": {}}
    of_others = explain.run(study(counted, SLOWER, values=values, cpus={"virtual": "Nehalem"}))
    assert causes(of_others) == ["cpu", "gro"]
    # The same CPUs take longer because there is more to do.
    assert causes(explain.run(study(counted, SLOWER, values=values))) == ["gro"]


def test_segmentation_offload_is_seen_at_the_link() -> None:
    def sent(packets: float, segment: float = 1448.0) -> dict[tuple[str, str, str], float]:
        way = "server_to_client"
        sizes = {"packets": packets, "wire_packets": 1000.0, "mean_segment_bytes": segment}
        return {(metric, "server1", way): value for metric, value in sizes.items()}

    values = {"real": sent(100.0, 14480.0), "virtual": sent(1000.0)}
    (one,) = explain.run(study({"real": {}, "virtual": {}}, SLOWER, values=values)).pairs[0].candidates
    assert (one.cause.name, one.alone) == ("tso", True)
    assert one.reference == pytest.approx(0.9, abs=0.02)
    small = {"real": sent(100.0, 200.0), "virtual": sent(1000.0, 100.0)}
    assert causes(explain.run(study({"real": {}, "virtual": {}}, SLOWER, values=small))) == []


def test_a_a_studies_name_nothing_in_nine_of_ten() -> None:
    same = {"real": {**JOINED, **CORKED}, "virtual": {**JOINED, **CORKED}}
    assert sum(bool(explain.run(study(same, SAME, seed=seed)).pairs) for seed in range(20)) <= 2


def test_what_needs_an_instrument_is_said() -> None:
    result = explain.run(study({"real": JOINED, "virtual": {}}, SLOWER))
    assert result.not_seen["tso"] == result.not_seen["initial_window"] == "needs the instrument packets"


STATES = {"real": {"offload.gro": "on"}, "virtual": {"offload.gro": "off"}}
LEVELS = ({"testbed.gro": "on"}, {"testbed.gro": "off"})
FACTORS = {"testbed.gro": ["on", "off"]}


def of_gro() -> tuple[Explanation, object]:
    tables = study({"real": JOINED, "virtual": {}}, SLOWER, states=STATES)
    return explain.run(tables), tables


@pytest.mark.parametrize(
    ("rates", "says", "closed"),
    [
        ({("real", "off"): 500.0}, Proved.PROVED, 1.0),
        ({("real", "off"): 841.0}, Proved.IN_PART, 0.25),
        ({("real", "off"): 697.4}, Proved.IN_PART, 0.52),
        ({("real", "off"): 143.6}, Proved.OVERSHOT, 2.8),
        ({}, Proved.NOT_PROVED, 0.0),
        ({("virtual", "off"): 1000.0}, Proved.GONE, 0.0),
    ],
)
def test_a_study_that_switches_the_cause_says_whether_it_is_one(
    rates: dict[tuple[str, str], float], says: Proved, closed: float
) -> None:
    """Offload was on for the reference and off on the other: off on both, the rates say what it made of the difference. A
    quarter of ln 2 is gone where the reference falls to 1000 / 2^(1/4) = 841. At 1000 / 2^0.52 = 697 half of it may be left, as
    errors are 2 %; at 1000 / 2^2.8 = 144 the difference is there the other way round, larger than before."""
    result, tables = of_gro()
    proof = study({"real": {}, "virtual": {}}, SLOWER, levels=LEVELS, factors=FACTORS, rate_of=rates, seed=2)
    (one,) = proved(result, tables, [proof]).proofs  # type: ignore[arg-type]
    assert (one.cause.name, one.level, one.says) == ("gro", "off", says)
    if says is not Proved.GONE:
        assert one.closed == pytest.approx(closed, abs=0.06 if closed <= 1 else 0.2)
        assert one.closed_interval is not None and one.closed_interval.low < closed < one.closed_interval.high
        assert one.as_is.low < 0.5 < one.as_is.high


def test_a_study_that_proves_nothing_of_it_is_refused() -> None:
    result, tables = of_gro()
    with pytest.raises(TwinbedError, match="switches no cause"):
        proved(result, tables, [study({"real": {}, "virtual": {}}, SLOWER)])  # type: ignore[arg-type, list-item]
    elsewhere = study({"one": {}, "two": {}}, {"one": 1.0, "two": 2.0}, levels=LEVELS, factors=FACTORS)
    with pytest.raises(TwinbedError, match="shares no testbed, cell and metric"):
        proved(result, tables, [elsewhere])  # type: ignore[arg-type]


def test_the_study_that_it_writes_is_one() -> None:
    """All else is as the runs had it; the factor of the cell stays one, so that cells are found again."""
    tables = study(
        {"real": JOINED, "virtual": {}}, SLOWER, states=STATES, levels=({"payload": 500},), factors={"payload": [500]}
    )
    result = explain.run(tables)
    text = study_text(result, tables, cause_of(result, None))
    planned = runs(load(text, "proof.yaml", catalogue()))
    assert {run.levels["testbed.gro"] for run in planned} == {"on", "off"}
    assert {run.levels["payload"] for run in planned} == {500}
    assert len(planned) == 2 * 2 * 5
    settings = planned[0].settings()
    assert settings["testbed"]["tso"] == "off"
    assert settings["workload"]["duration"] == 2
    with pytest.raises(TwinbedError, match="tso is not a candidate here"):
        cause_of(result, "tso")


def test_offloads_set_together_are_set_one_by_one() -> None:
    tables = study({"real": JOINED, "virtual": {}}, SLOWER, states=STATES)
    for record in tables.records:
        record.settings["testbed"] |= {"offload": "on", "tso": None, "gro": None}  # type: ignore[operator]
    result = explain.run(tables)
    text = study_text(result, tables, cause_of(result, "gro"))
    testbed = runs(load(text, "proof.yaml", catalogue()))[0].settings()["testbed"]
    assert (testbed["offload"], testbed["sg"], testbed["tso"], testbed["gso"]) == (None, "on", "on", "on")


def test_every_form_says_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tables = study({"real": JOINED, "virtual": {}}, SLOWER, states=STATES)

    class Opened:
        def is_results(self, source: Path) -> bool:
            return True

        def tables(self, results: Path, reference: str | None = None, *, all_settings: bool = False) -> object:
            return tables

    def run(*arguments: str) -> str:
        assert command.main(["results", *arguments], standalone_mode=False, obj=Opened()) == codes.DONE
        return capsys.readouterr().out

    assert "1     receive offload" in run()
    row = json.loads(run("--format", "json"))["causes"][0]
    assert (row["cause"], row["rank"], row["setting"], row["state"], row["reference_state"]) == ("gro", 1, "gro", "off", "on")
    assert run("--format", "csv").splitlines()[1].startswith("virtual,real,1,gro")
    assert "receive offload" in run("--format", "html")
    run("--study", str(tmp_path / "p.yaml"))
    assert "testbed.gro" in (tmp_path / "p.yaml").read_text()


def test_the_page_has_what_the_terminal_says() -> None:
    result = explain.run(study({"real": JOINED, "virtual": {}}, SLOWER))
    for sentence in sentences(result):
        assert sentence in page(section(result), result, "results").unescape()


def test_results_without_a_reference_are_refused() -> None:
    tables = study({"real": {}, "virtual": {}}, SAME)
    with pytest.raises(TwinbedError, match="no reference testbed"):
        explain.run(replace(tables, outline=replace(tables.outline, reference=None)))


def test_busy_hosts_of_the_test_join_nothing() -> None:
    assert BUSY["snmp:Ip.InReceives"] == BUSY["net/dev:eth0.rx_packets"]


def test_what_was_set_apart_comes_before_what_comes_earlier_on_the_way() -> None:
    """Autocorking is on at both, so that it works on one alone for another reason."""
    states = {"real": {"quickack": "on", "autocorking": "1"}, "virtual": {"quickack": "off", "autocorking": "1"}}
    tables = study({"real": {}, "virtual": {**HELD, **CORKED}}, SLOWER, states=states)
    assert causes(explain.run(tables)) == ["delayed_ack", "autocorking"]
    unknown = study({"real": {}, "virtual": {**HELD, **CORKED}}, SLOWER)
    assert causes(explain.run(unknown)) == ["autocorking", "delayed_ack"]


def test_wake_ups_by_two_kinds_of_work_are_no_time_of_either() -> None:
    """A stranger's table may count by anything."""
    metrics = ("idle_wake_ups", "idle_wake_up_seconds", "idle_wake_ups_per_request", "idle_wake_ups_per_byte")
    table = pa.table({"run": ["a"] * 4, "host": [MACHINE] * 4, "metric": metrics, "value": [8.0, 2e-4, 4.0, 0.5]})

    def found(rows: int) -> dict[str, Waits]:
        source = SimpleNamespace(table=lambda _: table.slice(0, rows))
        return waits(cast(Tables, source), [cast(Record, SimpleNamespace(id="a", clients=[ClientTimes("c", 1.0, 3.0)]))])

    assert found(3) == {"a": Waits("request", 4.0, 25e-6, 1.0)}
    assert found(4) == {}
