"""How many fit, in the report: planted rates with a knee between 4 and 8 pairs, and a planted ledger."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synthetic_results import write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.contention.result import (
    Alarms,
    Contention,
    Curve,
    DetectorResult,
    LevelContention,
    Operating,
    Scored,
    Step,
)
from twinbed.analyses.contention.words import section as contention_section
from twinbed.analyses.contention.words import sentences
from twinbed.analyses.scaling.result import AtN, LevelScaling, Scaling, Statement
from twinbed.analyses.scaling.words import recommendations, section, statements
from twinbed.cli.main import run
from twinbed.model.result import Interval
from twinbed.model.tables import Tables
from twinbed.render.sections import body, tabular
from twinbed.render.tabular import Tabular
from twinbed.render.terminal import Terminal
from twinbed.report.fitting import fitting, scaling
from twinbed.report.styles import rendered
from twinbed.report.terminal import print_scaling
from twinbed.results.extract import extract
from twinbed.workloads.iperf3 import iperf3
from twinbed.workloads.planted import planted

PAIRS = [1, 2, 4, 8]
OFFSETS = (-10, -5, 0, 5, 10)
OF_A_PAIR = {1: 1000.0, 2: 1010.0, 4: 980.0, 8: 700.0}


def knee(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
    """Rates of a pair as in OF_A_PAIR, off by at most 1 % and by nothing in the mean; the run's is of all pairs."""
    n = levels["pairs"]
    rate = n * (OF_A_PAIR[n] + OFFSETS[replicate])
    return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": 64000}


def study(folder: Path, respond: Any = knee, replicates: int = 5, testbeds: tuple[str, ...] = ("bed",)) -> Tables:
    return extract(write_study(folder, testbeds, {"pairs": PAIRS}, replicates, respond), {"planted": planted}, {})


def tables(found: Scaling) -> list[Tabular]:
    """Those that readers get."""
    return [tabular(each) for each in section(found).tables() if each.records and each.shown]


def test_the_planted_knee_is_what_is_recommended(tmp_path: Path) -> None:
    found = scaling(study(tmp_path))
    assert found is not None and (found.over, found.noun, found.rate) == ("pairs", "pair", "requests_per_second")
    [group] = found.groups
    assert [point.n for point in group.points] == PAIRS
    assert group.single == pytest.approx(1000) and group.keeps == 4
    [told] = group.statements
    assert (told.keeps, told.fails, told.decided) == (4, 8, True)
    assert told.objective == "requests per second per pair at least 90 % of that at 1 pair"
    # Half the interval is 2.776, Student's t of 4 degrees of freedom by any table, times the deviation 7.906 by the root of 5.
    assert told.text == (
        "4 pairs: more than 99.9 % sure; 8: no, more than 99.9 % sure (the mean there is 700, 690 to 710 /s);"
        " N between them were not tested"
    )
    assert list(recommendations(found)) == [f"Run at most 4 pairs at once, with 95 % confidence: {told.objective}."]


def test_page_markdown_and_terminal_say_so_first(tmp_path: Path) -> None:
    results = study(tmp_path)
    result = compare.run(results)
    page = rendered("html", results, result)
    assert 'href="#fitting"' in page and '<p class="lede">Run at most 4 pairs at once' in page
    assert page.index('id="fitting"') < page.index('id="verdict"'), "of one testbed there is no other verdict"
    part = page[page.index('id="fitting"') : page.index('id="verdict"')]
    # A pair's rate and all together, a point for each of 20 runs and each mean of the panels' lines.
    assert part.count("<figure>") == 2
    assert "N = 8: 690 (a run)" in part
    why = "No detector of contended runs: no metric of the machine varies."
    assert why in part
    text = rendered("markdown", results, result)
    assert f"- {why}" in text
    assert "- **Run at most 4 pairs at once" in text
    assert "| 8 | 5 | 700 | 70.00 % | 5,600 |" in text
    found = fitting(results)
    assert found is not None
    screen = io.StringIO()
    print_scaling(found, Terminal(file=screen, width=200))
    assert screen.getvalue().splitlines()[1:3] == ["How many fit", found.sentence]


def test_the_command_prints_what_the_report_says(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = study(tmp_path)
    found = scaling(results)
    assert found is not None
    assert run(["analyse", "scaling", str(tmp_path)]) == 0
    assert capfd.readouterr().out.startswith(f"{next(recommendations(found))}\n")
    assert run(["analyse", "scaling", str(tmp_path), "--format", "json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    [told] = printed["statements"]
    assert (told["keeps"], told["fails"], told["statement"]) == (4, 8, found.groups[0].statements[0].text)
    assert [(row["n"], row["rate"], row["of_single"], row["loss"]) for row in printed["numbers"]] == [
        (n, pytest.approx(rate), pytest.approx(rate / 1000), None) for n, rate in OF_A_PAIR.items()
    ]


def test_two_testbeds_are_two_lines_with_a_capacity_each(tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        flat = {**knee(testbed, levels, replicate)}
        if testbed == "wide":
            flat["requests_per_second"] = levels["pairs"] * (1000.0 + OFFSETS[replicate])
        return flat

    results = study(tmp_path, respond, testbeds=("narrow", "wide"))
    found = scaling(results)
    assert found is not None
    assert [(group.levels["testbed"], group.keeps) for group in found.groups] == [("narrow", 4), ("wide", 8)]
    narrow, wide = recommendations(found)
    assert narrow.startswith("Testbed narrow: run at most 4 pairs") and wide.startswith("Testbed wide: all 8 pairs that were")
    page = rendered("html", results, compare.run(results))
    assert page.index('id="verdict"') < page.index('id="fitting"')
    assert "wide, N = 8: 990 (a run)" in page and "narrow, N = 8: 690 (a run)" in page


def test_what_cannot_be_said_is_said(tmp_path: Path) -> None:
    found = scaling(study(tmp_path, replicates=1))
    assert found is not None
    [told] = found.groups[0].statements
    assert not told.decided and told.text.startswith("cannot tell: 1 run at N = 1")
    assert list(recommendations(found)) == ["Cannot recommend a number: no objective could be tested."]


def test_a_single_pair_that_did_nothing_is_no_measure_of_others(tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return {**knee(testbed, levels, replicate), **({"requests_per_second": 0.0} if levels["pairs"] == 1 else {})}

    results = study(tmp_path, respond)
    found = scaling(results)
    assert found is not None
    [told] = found.groups[0].statements
    assert not told.decided and told.text.startswith("cannot tell: the mean at N = 1 is 0")
    assert 'id="fitting"' in rendered("html", results, compare.run(results))


def test_failed_runs_are_said_and_recommend_nothing(tmp_path: Path) -> None:
    """All runs at 8 pairs failed, and one at 4: what is left at 4 is kept, and not said to be all that was tested."""
    folder = write_study(tmp_path, ("bed", "other"), {"pairs": PAIRS}, 5, knee)
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        n, bed = record["levels"]["pairs"], record["levels"]["testbed"]
        if bed == "bed" and (n == 8 or (n == 4 and record["replicate"] == 0)):
            file.write_text(json.dumps({**record, "status": "failed", "failed_phase": "workload", "reason": "gone"}))
    found = scaling(extract(folder, {"planted": planted}, {}))
    assert found is not None
    bed, other = found.groups
    assert (bed.keeps, bed.tested, bed.failed, other.failed) == (4, 4, {4: (1, 5), 8: (5, 5)}, {})
    assert next(recommendations(found)).startswith("Testbed bed: run at most 4 pairs at once")
    assert list(statements(found))[1:3] == [
        "Testbed bed, 1 of 5 runs failed at 4 pairs: statements use the others.",
        "Testbed bed, 5 of 5 runs failed at 8 pairs: too few complete runs for a statement.",
    ]


def test_loss_is_asked_only_where_it_was_measured(tmp_path: Path) -> None:
    """Real reports of iperf3 as one pair's and two pairs': TCP has no loss, UDP lost a quarter."""
    golden = Path(__file__).parents[2] / "golden" / "iperf3"
    folder = write_study(tmp_path, ["bed"], {"pairs": [1, 2], "protocol": ["tcp", "udp"]}, 2, lambda *_: {})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        protocol = record["levels"]["protocol"]
        record["settings"]["workload"] = {"kind": "iperf3", "protocol": protocol, "duration": 3}
        text = (golden / protocol / "client" / "iperf3.json").read_bytes()
        (file.parent / "artifacts/client/iperf3.json").write_bytes(text)
        record["artifacts"] = [{"path": "artifacts/client/iperf3.json", "bytes": len(text)}]
        file.write_text(json.dumps(record))
    results = extract(folder, {"iperf3": iperf3}, {})
    found = scaling(results)
    assert found is not None
    tcp, udp = found.groups
    [rate] = tcp.statements
    assert rate.objective.startswith("goodput per pair")
    assert [each.objective for each in udp.statements] == ["loss at most 1 %", rate.objective]
    assert "How many fit" in rendered("html", results, compare.run(results))


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_run_without_a_rate_counts_in_the_loss(tmp_path: Path, is_silent: bool) -> None:
    """One server of four was kept waiting: its clock is too short for a rate, yet 26 % of its datagrams were lost; or it
    counted no interval at all, so that nothing is known of that client, and the loss of the run is that of the three others."""
    golden = Path(__file__).parents[2] / "golden" / "iperf3" / "udp" / "client" / "iperf3.json"
    folder = write_study(tmp_path, ["bed"], {"pairs": [1, 2, 4]}, 5, lambda *_: {})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        n = record["levels"]["pairs"]
        record["settings"]["workload"] = {"kind": "iperf3", "protocol": "udp", "duration": 3}
        record["settings"]["topology"]["pairs"] = n
        record["artifacts"] = []
        for client in range(n):
            report = json.loads(golden.read_text())
            for interval in report["server_output_json"]["intervals"]:
                if n < 4:
                    interval["sum"]["lost_packets"] = 0
                if client == 3:
                    interval["sum"]["seconds"] /= 100
            if client == 3 and is_silent:
                report["server_output_json"]["intervals"] = []
            name = "client" if n == 1 else f"client{client + 1}"
            place = file.parent / f"artifacts/{name}/iperf3.json"
            place.parent.mkdir(exist_ok=True)
            place.write_text(json.dumps(report))
            record["artifacts"].append({"path": str(place.relative_to(file.parent)), "bytes": place.stat().st_size})
        file.write_text(json.dumps(record))
    found = scaling(extract(folder, {"iperf3": iperf3}, {}))
    assert found is not None
    [group] = found.groups
    [loss, rate] = group.statements
    assert (loss.objective, loss.keeps, loss.fails) == ("loss at most 1 %", 2, 4)
    assert (rate.keeps, rate.fails) == (2, None)
    assert group.unrated == {4: (5, 5)}
    numbers, *_ = tables(found)
    assert [row[0] for row in numbers.rows] == ["1", "2", "4"]
    four = dict(zip(numbers.heads, numbers.rows[2], strict=True))
    # 9,002 of the golden report's 34,812 datagrams were lost on the way to each client.
    assert (four["runs"], four["of 1 pair's"], four["loss"]) == ("5", "–", "25.86 %")
    assert "N = 4: 25.8" in body(section(found))
    assert next(recommendations(found)).startswith("Run at most 2 pairs at once")
    assert list(statements(found))[2] == (
        "5 of 5 runs at 4 pairs lack goodput of some pair: they are used for other metrics, not for goodput."
    )


def test_without_a_single_pair_it_is_fairness_that_is_kept(tmp_path: Path) -> None:
    """Two clients at 1000 and 1000, four at 4000, 0, 0, 0: fairness 1 and 1/4."""
    folder = write_study(tmp_path, ["bed"], {"pairs": [2, 4]}, 5, lambda *_: {"requests": 1, "requests_per_second": 0.0})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        n = record["levels"]["pairs"]
        record["settings"]["topology"]["pairs"] = n
        record["artifacts"] = []
        for client in range(n):
            answer = {"requests": 10, "requests_per_second": 1000.0 if n == 2 else 4000.0 * (client == 0)}
            place = file.parent / f"artifacts/client{client + 1}/planted.json"
            place.parent.mkdir(exist_ok=True)
            place.write_text(json.dumps(answer))
            record["artifacts"].append({"path": str(place.relative_to(file.parent)), "bytes": place.stat().st_size})
        (file.parent / "artifacts/client/planted.json").unlink()
        file.write_text(json.dumps(record))
    found = scaling(extract(folder, {"planted": planted}, {}))
    assert found is not None
    [told] = found.groups[0].statements
    assert (told.objective, told.keeps, told.fails) == ("fairness at least 0.95", 2, 4)
    assert found.groups[0].points[1].fairness == pytest.approx([0.25] * 5)
    [numbers] = tables(found)
    assert "of 1 pair's" not in numbers.heads


def test_a_study_of_one_number_of_pairs_has_no_section(tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return knee(testbed, {"pairs": 1}, replicate)

    results = extract(write_study(tmp_path, ["bed"], {"payload": ["1B", "2B"]}, 2, respond), {"planted": planted}, {})
    assert scaling(results) is None and fitting(results) is None
    assert "How many fit" not in rendered("html", results, compare.run(results))


LEDGER = {"sent": 1000.0, "uplink": 90.0, "shaper": 0.0, "socket buffer": 8.0, "received": 900.0, "unexplained": 2.0}
LOSSES = Scaling(
    "topology.pairs",
    "goodput",
    "bit/s",
    0.95,
    (
        LevelScaling(
            {"payload": "1400B"},
            (
                Statement("loss at most 1 %", "1 pair: 99 % sure; 2: no, 99 % sure", True, 1, 2),
                Statement("goodput per pair at least 90 % of that at 1 pair", "at least 2 pairs: 99 % sure", True, 2, None),
            ),
            (
                AtN(1, (20e6, 20e6), (0.0, 0.0), packets={**dict.fromkeys(LEDGER, 0.0), "sent": 500.0, "received": 500.0}),
                AtN(2, (18e6, 19e6), (0.1, 0.12), (0.9, 1.0), 0.0123, 0.9875, LEDGER),
            ),
        ),
    ),
    most_loss=0.01,
)


def test_the_ledger_is_summed_and_the_rest_shown() -> None:
    numbers, losses = tables(LOSSES)
    assert numbers.heads[-4:] == ("loss", "fairness", "start skew (ms)", "all ran together")
    assert "All ran together: the smallest share of the clients' time in which all of them ran." in numbers.caption
    assert numbers.rows == (
        ("payload 1400B", "1", "2", "20", "100.00 %", "20", "0.00 %", "–", "–", "–"),
        ("payload 1400B", "2", "2", "18.50", "92.50 %", "37", "11.00 %", "0.9500", "12.30", "98.75 %"),
    )
    assert losses.heads == ("Cell", "pairs", "sent", "lost", "uplink", "socket buffer", "unexplained", "of the lost")
    assert losses.rows[1] == ("payload 1400B", "2", "1,000", "100", "90", "8", "2", "2.00 %")


def test_the_strictest_objective_decides() -> None:
    assert list(recommendations(LOSSES)) == [
        "Payload 1400B: run at most 1 pair at once, with 95 % confidence each: loss at most 1 % and goodput per pair at least"
        " 90 % of that at 1 pair."
    ]
    assert next(statements(LOSSES)) == "Payload 1400B, loss at most 1 %: 1 pair: 99 % sure; 2: no, 99 % sure."
    [group] = LOSSES.groups
    none = replace(LOSSES, groups=(replace(group, statements=(replace(group.statements[0], keeps=None),)),))
    assert list(recommendations(none)) == ["Payload 1400B: no number of pairs is shown to keep loss at most 1 %."]


def test_one_pair_keeps_what_is_measured_against_itself_and_recommends_nothing(tmp_path: Path) -> None:
    """Rates fall by a fifth from the second pair on: that one pair has all of its own rate is no result."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        pairs = levels["pairs"]
        return {**knee(testbed, levels, replicate), "requests_per_second": pairs * (5000.0 if pairs == 1 else 4000.0)}

    found = scaling(study(tmp_path, respond))
    assert found is not None
    [told] = found.groups[0].statements
    assert told.text.startswith("1 pair: by definition; 2: no, ") and "(the mean there is 4,000, " in told.text
    assert list(recommendations(found)) == [f"Run 1 pair at a time: more is not shown to keep {told.objective}."]


def test_losses_and_bends_are_drawn() -> None:
    shown = body(section(LOSSES))
    assert shown.count("<figure>") == 3
    assert "N = 2: 12 (a run)" in shown
    assert not re.search(r"NaN|undefined", shown)
    curves = [
        Curve(metric, metric.startswith("cpu"), (1, 2, 4, 8), (1.0, 2.0, 3.0, 2.0), (None, -1.0, 0.5, None), 0.5)
        for metric in ("goodput", "cpu_idle_seconds")
    ]
    bent = Contention("results", "goodput", "pairs", 0.05, 0.1, [LevelContention({}, curves, [], None, "few runs")])
    shown = body(contention_section(bent))
    assert shown.count("<figure>") == 1 and "CPU idle time (mirrored), N = 4: 0.5" in shown
    assert "If the rate turns first, the machine&#39;s metrics come too late." in shown


def alarms(count: int, of: int, low: float, high: float) -> Alarms:
    return Alarms(count, of, Interval(low, high, 0.95))


TOLD = DetectorResult(
    area=0.94,
    interval=Interval(0.8, 0.98, 0.95),
    threshold=0.5,
    false_alarms=0.0,
    detected=0.75,
    unclear=1,
    alarms_from=8,
    fallen_from=16,
    before=alarms(3, 4, 0.194, 0.994),
    steps=[
        Step(1, 0.0, alarms(0, 4, 0.0, 0.602)),
        Step(8, 0.07, alarms(3, 4, 0.194, 0.994)),
        Step(16, 0.2, alarms(4, 4, 0.398, 1.0)),
    ],
    curve=[Operating(None, 0.0, 0.0), Operating(0.5, 0.0, 0.75), Operating(-1.0, 1.0, 1.0)],
    runs=[
        Scored("a", 1, 1, "free", True, -1.0),
        Scored("b", 1, 8, "unclear", True, 0.75),
        Scored("c", 1, 16, "contended", True, 2.5),
        Scored("d", 0, 16, "contended", False, 9.0),
    ],
)


def contention(told: DetectorResult | None, reason: str = "") -> Contention:
    return Contention("results", "goodput", "pairs", 0.05, 0.1, [LevelContention({}, [], [], told, reason)])


def test_a_detector_is_drawn_and_told() -> None:
    shown = body(contention_section(contention(TOLD)))
    assert shown.count("<figure>") == 3
    for mark in (
        "N = 1, replicate 1: -1.5, free of contention",
        "N = 8, replicate 1: +0.25, unclear",
        "N = 16, replicate 1: +2, contended",
        "N = 8: 93 % of the rate remains",
        "N = 8: 3 of 4 runs alarm",
        "from 8 on most runs alarm",
        "from 16 on the rate has fallen by 10 % or more",
        "its threshold: 75 % of contended runs, 0 % false alarms",
    ):
        assert f'data-said="{mark}"' in shown
    assert "area 0.940 (0.800 to 0.980)" in shown
    assert "replicate 0" not in shown, "it was trained on that one"
    assert not re.search(r"NaN|undefined", shown)


def test_what_a_detector_is_worth_in_words() -> None:
    quality, timely = sentences(contention(TOLD))
    assert quality == (
        "The machine's metrics alone show 75 % of contended runs (at least 5 % slower), with false alarms in 0 % of the others."
        " Tested on 1 contended and 1 other runs that the detector was not trained on; 1 more is unclear. Area under the ROC"
        " curve: 0.940 (0.800 to 0.980)."
    )
    assert timely == (
        "Most runs alarm from 8 pairs on; the rate has fallen by 10 % from 16 on, 1 tested number later. While the rate has"
        " lost 5 % to 10 % (at 8), 3 of 4 runs alarm (75 %, 19 to 99 %)."
    )
    too_coarse = replace(TOLD, alarms_from=16, before=None, steps=[TOLD.steps[0], TOLD.steps[2]])
    assert list(sentences(contention(too_coarse)))[1] == (
        "Most runs alarm from 16 pairs on; the rate has fallen by 10 % from 16 on: most do not alarm earlier. Cannot tell how"
        " early it alarms: the rate lost 0 % at 1 and 20 % at 16; test numbers between them."
    )
    never = replace(TOLD, alarms_from=None, fallen_from=None, before=None, steps=TOLD.steps[:1])
    assert list(sentences(contention(never)))[1].startswith(
        "Most runs alarm at no number of pairs. The rate lost 5 % to 10 % at no tested number"
    )
    few = contention(None, "2 replicates: a detector needs at least 4, two to train on and two to test")
    assert list(sentences(few)) == [
        "No detector of contended runs: 2 replicates: a detector needs at least 4, two to train on and two to test."
    ]
