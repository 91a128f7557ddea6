"""The analysis ``compare``: pairing, degenerate samples, cautions, and the command's exit codes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scipy import stats

from synthetic_results import write_run, write_study
from twinbed.analyses.compare.command import command
from twinbed.analyses.compare.conclusion import conclusions
from twinbed.analyses.compare.estimates import estimate
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.words import explanation, overall
from twinbed.cli.inputs import ResultsFolders
from twinbed.model.caution import Caution, Kind
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.result import Verdict
from twinbed.results.extract import extract
from twinbed.statistics.counts import unseen_share
from twinbed.statistics.ratio import ratio_test
from twinbed.workloads.planted import planted

RATES = {"requests": 100, "requests_per_second": 50.0, "packets": 1000, "bytes": 64000}


def compared(folder: Path, **params: Any) -> Comparisons:
    return compare.run(extract(folder, {"planted": planted}, {}), CompareParams(**params))


def of(result: Comparisons, metric: str = "requests_per_second") -> list[Comparison]:
    return [each for each in result.comparisons if each.metric == metric]


def listed(rates: Mapping[str, list[float | None]]) -> Any:
    """A response that gives each testbed the listed rates, replicate by replicate."""
    return lambda testbed, levels, replicate: {**RATES, "requests_per_second": rates[testbed][replicate]}


def one(folder: Path, rates: Mapping[str, list[float | None]], **params: Any) -> Comparison:
    write_study(folder, list(rates), {}, len(next(iter(rates.values()))), listed(rates))
    [found] = of(compared(folder, **params))
    return found


def test_each_testbed_is_held_against_the_reference_in_its_own_cell(tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        base = {"500B": 1000.0, "1MiB": 10.0}[levels["payload"]]
        return {**RATES, "requests_per_second": base * {"a": 1.0, "ref": 2.0, "b": 4.0}[testbed]}

    write_study(tmp_path, ["a", "ref", "b"], {"payload": ["500B", "1MiB"]}, 2, respond, reference="ref")
    found = [(each.cell["payload"], each.testbed, each.reference, each.ratio) for each in of(compared(tmp_path))]
    assert found == [("500B", "a", "ref", 0.5), ("500B", "b", "ref", 2.0), ("1MiB", "a", "ref", 0.5), ("1MiB", "b", "ref", 2.0)]


def test_layers_and_headlines_come_in_order(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {}, 2, listed({"a": [1, 1], "b": [1, 1]}))
    found = [(each.layer, each.metric) for each in compared(tmp_path).comparisons]
    assert found == [
        ("application", "requests_per_second"),
        ("application", "requests"),
        ("network", "packets_per_request"),
        ("network", "bytes_per_request"),
        ("network", "packets"),
        ("network", "bytes"),
    ]


def test_constants_that_are_equal_are_equivalent(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [5000, 5000, 5000], "b": [5000, 5000, 5000]})
    assert (found.verdict, found.ratio, found.method) == (Verdict.EQUIVALENT, 1.0, "exact")
    assert unseen_share(found.runs) == pytest.approx(1 - 0.05 ** (1 / 3)), (
        "1 - 0.6316 of the runs may be otherwise and not be met"
    )


@pytest.mark.parametrize(
    ("reference", "value", "verdict"),
    [
        (5000.0, 5400.0, Verdict.EQUIVALENT),
        (5000.0, 5600.0, Verdict.DIFFERENT),
        # Printed in whole ones, 5 is anything from 4.5 to 5.5, and 6 up to 6.5: 1.44 times as much, or the same.
        (5.0, 5.0, Verdict.INCONCLUSIVE),
        (5.0, 6.0, Verdict.INCONCLUSIVE),
        (5.0, 8.0, Verdict.DIFFERENT),
        # 49.5 / 50.5 = 0.98 and 55.5 / 49.5 = 1.12.
        (50.0, 50.0, Verdict.EQUIVALENT),
        (50.0, 55.0, Verdict.INCONCLUSIVE),
        # At steps of a tenth, as 5.1 and 5.4 may be 5.05 and 5.45, a factor of 1.079.
        (5.1, 5.4, Verdict.EQUIVALENT),
    ],
)
def test_constants_are_judged_by_their_ratio_and_by_what_rounding_hides(
    tmp_path: Path, reference: float, value: float, verdict: Verdict
) -> None:
    found = one(tmp_path, {"a": [reference] * 3, "b": [value] * 3})
    assert (found.verdict, found.method) == (verdict, "exact")
    if verdict is Verdict.INCONCLUSIVE:
        assert explanation(found) == "values come in steps of 1 /s, too coarse for 10 %"


def test_all_zero_is_no_verdict_and_zero_against_something_is_different(tmp_path: Path) -> None:
    same = one(tmp_path / "same", {"a": [0, 0, 0], "b": [0, 0, 0]})
    assert (same.verdict, same.ratio, same.method) == (Verdict.INCONCLUSIVE, None, "unseen")
    # 1 - 0.05^(1/3) = 0.6316.
    assert explanation(same) == "0 in all 3 runs of both; up to 63 % of runs may be otherwise"
    lost = one(tmp_path / "lost", {"a": [0, 0, 0], "b": [50, 51, 52]})
    assert (lost.verdict, lost.ratio, lost.ratio_interval) == (Verdict.DIFFERENT, None, None)
    none = one(tmp_path / "none", {"a": [50, 51, 52], "b": [0, 0, 0]})
    assert (none.verdict, none.ratio) == (Verdict.DIFFERENT, 0.0)


def test_some_zeros_are_compared_by_fieller_and_may_stay_open(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [0, 3, 1, 0, 2], "b": [1, 0, 2, 4, 0]})
    assert (found.method, found.verdict) == ("fieller", Verdict.INCONCLUSIVE)


def test_negative_values_have_no_ratio(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [1, -1, 2], "b": [1, 2, 3]})
    assert (found.verdict, found.method, found.ratio_interval) == (Verdict.INCONCLUSIVE, "", None)
    assert "negative" in explanation(found)


def test_one_replicate_concludes_nothing(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [100], "b": [100]})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.estimate.stdev is None and found.estimate.interval is None
    assert {caution.kind for caution in found.cautions} == {Kind.FEW_REPLICATES}


def test_missing_values_are_left_out_and_said(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [100, 101, 102, 103, 99, 98], "b": [100, None, 102, 103, 99, 98]})
    assert (found.estimate.n, found.reference_estimate.n) == (5, 6)
    assert [(caution.kind, caution.subject) for caution in found.cautions] == [(Kind.UNREADABLE, "b")]


def test_a_metric_that_one_testbed_never_has_is_shown_as_missing(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [100, 101, 102], "b": [None, None, None]})
    assert (found.verdict, found.estimate.n, found.estimate.mean, found.ratio) == (Verdict.INCONCLUSIVE, 0, None, None)
    assert explanation(found) == "no values on b"


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        # Means are 3 % apart with next to no noise: 1 is excluded, the margin is not; then 5 % to 15 %; then noise.
        ([100, 101, 99], [109, 110, 108], "differs, but maybe by less than 10 %"),
        ([100, 130, 70], [100, 70, 130], "too variable to tell"),
    ],
)
def test_why_a_verdict_is_open(tmp_path: Path, a: list[float | None], b: list[float | None], words: str) -> None:
    found = one(tmp_path, {"a": a, "b": b})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert explanation(found).startswith(words)


def test_which_is_the_reference_changes_no_verdict() -> None:
    one, two = [1.0, 1.1, 0.95, 1.3], [1.2, 1.25, 1.4, 1.1, 1.15]
    forth, back = ratio_test(one, two, 0.1, 0.05), ratio_test(two, one, 0.1, 0.05)
    assert forth is not None and back is not None
    assert forth.p_equivalent == pytest.approx(back.p_equivalent)
    assert forth.p_different == pytest.approx(back.p_different)
    assert forth.ratio == pytest.approx(1 / (back.ratio or 0))


def test_the_margin_can_be_told(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {}, 3, listed({"a": [100, 101, 99], "b": [119, 120, 121]}))
    assert of(compared(tmp_path))[0].verdict is Verdict.DIFFERENT
    assert of(compared(tmp_path, margin=0.5))[0].verdict is Verdict.EQUIVALENT


def test_failed_and_unmade_runs_are_said(tmp_path: Path) -> None:
    values = [100, 101, 99, 100, 101, 99]
    study = write_study(tmp_path, ["a", "b"], {}, len(values), listed({"a": values, "b": values}))
    result = compared(tmp_path)
    assert result.cautions == ()
    runs = sorted(
        json.loads((study / "study.json").read_text())["runs"], key=lambda run: (run["levels"]["testbed"], run["replicate"])
    )
    for run in (runs[0], runs[11]):
        (tmp_path / "runs" / run["id"]).rename(tmp_path / run["id"])
    record = json.loads((tmp_path / runs[11]["id"] / "run.json").read_text())
    failed = write_run(tmp_path, "b", record["levels"], 5, RATES, failed="hung")
    assert failed == runs[11]["id"]
    result = compared(tmp_path)
    assert {(each.kind, each.subject) for each in result.cautions} == {(Kind.FAILED_RUNS, "b"), (Kind.INCOMPLETE, "")}
    [found] = of(result)
    assert (found.reference_estimate.n, found.estimate.n) == (5, 5)
    assert {caution.kind for caution in found.cautions} == {Kind.FAILED_RUNS, Kind.INCOMPLETE}


def test_what_runs_carry_is_counted_not_repeated(tmp_path: Path) -> None:
    cautions = [Caution(Kind.SOFTWARE_CPU, "tcg")]
    write_study(tmp_path, ["a", "b"], {}, 5, listed({"a": [1] * 5, "b": [1] * 5}), cautions=cautions)
    found = [(each.kind, each.subject, each.detail) for each in compared(tmp_path).cautions]
    assert found == [(Kind.SOFTWARE_CPU, "a", "5 of 5 runs: tcg"), (Kind.SOFTWARE_CPU, "b", "5 of 5 runs: tcg")]


def test_a_fact_that_varies_inside_a_cell_is_residue(tmp_path: Path) -> None:
    for replicate, kernel in enumerate(["6.1", "6.1", "6.2"]):
        write_run(
            tmp_path,
            "a",
            {"testbed": "a"},
            replicate,
            RATES,
            passport={"server": {"kernel": kernel, "nic": "e1000", "boot seconds": 3 + replicate}},
        )
    [caution] = compared(tmp_path).cautions
    assert (caution.kind, caution.subject, caution.detail) == (Kind.RESIDUE, "a", "server: kernel is 6.1, 6.2")


BUFFERS = {"small": "4096\t131072\t1030144", "large": "4096\t131072\t33554432"}
STACK = {"kernel": "6.1", "tcp rmem": BUFFERS["large"], "congestion control": "cubic", "qdisc": "noqueue", "initial window": 10}


def differing(folder: Path, settings: Mapping[str, Any] | None = None, **of_b: Any) -> list[str]:
    """What is said of the testbed b, whose server's passport differs in what is given, as perhaps its ``settings`` do."""
    for testbed, server in (("a", STACK), ("b", STACK | of_b)):
        for replicate in range(3):
            passport = {"client": STACK, "server": server, "machine": {"kernel": testbed}}
            run = write_run(folder, testbed, {"testbed": testbed}, replicate, RATES, passport=passport)
            record = folder / "runs" / run / "run.json"
            data = json.loads(record.read_text())
            data["settings"]["testbed"] |= (settings or {}) if testbed == "b" else {}
            record.write_text(json.dumps(data))
    cautions = [caution for caution in compared(folder).cautions if caution.kind is Kind.STACKS_DIFFER]
    assert {caution.subject for caution in cautions} <= {"b"}
    return [caution.detail for caution in cautions]


def test_what_hosts_differ_in_is_said_a_line_each_most_suspicious_first(tmp_path: Path) -> None:
    assert differing(
        tmp_path, **{"kernel": "6.12", "qdisc": "pfifo_fast", "tcp rmem": BUFFERS["small"], "initial window": 4}
    ) == [
        "receive buffers (tcp_rmem) of servers: 4096 131072 33554432 on a, 4096 131072 1030144 on b",
        "initial window (initcwnd) of servers: 10 on a, 4 on b",
        "queueing discipline of the NIC of servers: noqueue on a, pfifo_fast on b",
        "kernel of servers: 6.1 on a, 6.12 on b",
    ]


def test_what_was_asked_for_is_the_question(tmp_path: Path) -> None:
    asked, unasked = tmp_path / "asked", tmp_path / "unasked"
    reno = {"congestion control": "reno"}
    assert differing(asked, {"congestion_control": "reno"}, **reno) == []
    assert differing(unasked, **reno) == ["congestion control of servers: cubic on a, reno on b"]


def test_what_one_side_does_not_know_is_no_difference(tmp_path: Path) -> None:
    assert differing(tmp_path, **{"kernel": None, "NIC driver": "e1000"}) == []


def test_a_setting_that_varies_inside_a_cell_is_residue(tmp_path: Path) -> None:
    for replicate, rate in enumerate([1000.0, 1000.0, 2000.0]):
        write_run(tmp_path, "a", {"testbed": "a"}, replicate, RATES, workload={"rate": rate})
    [caution] = compared(tmp_path).cautions
    assert (caution.kind, caution.detail) == (Kind.RESIDUE, "setting workload.rate is 1000.0, 2000.0")


def test_an_outlier_is_said(tmp_path: Path) -> None:
    found = one(tmp_path, {"a": [100, 100.1, 99.9, 100, 100.2, 100], "b": [100.2, 100, 100, 30, 99.9, 100.1]})
    assert [(caution.kind, caution.subject) for caution in found.cautions] == [(Kind.SKEWED, "b")]


def test_one_testbed_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    write_study(tmp_path, ["a"], {}, 3, listed({"a": [1, 2, 3]}))
    result = compared(tmp_path)
    assert result.comparisons == () and overall(result) is None
    rates = [each for each in result.estimates if each.metric == "requests_per_second"]
    assert [(each.testbed, each.estimate.n, each.estimate.mean) for each in rates] == [("a", 3, 2.0)]


def test_the_picture_of_characters_holds_every_ratio(tmp_path: Path) -> None:
    """100, 200 and nearly the same: the first line's mark is in the band, the other's beyond it, twice as far as 1.41."""
    write_study(tmp_path, ["a", "b", "c"], {}, 3, listed({"a": [100, 101, 99], "b": [100, 101, 99], "c": [200, 201, 199]}))
    runner = CliRunner()
    text = runner.invoke(command, [str(tmp_path), "--why"], standalone_mode=False, obj=ResultsFolders()).output
    lines = text.splitlines()
    head = next(line for line in lines if line.startswith("ratio "))
    assert "░ within 10 % of a  ├─●─┤ ratio and interval  ◄ ► beyond the picture" in lines
    same, far = (next(line for line in lines if line.startswith(f"  {name} ")) for name in "bc")
    assert same.index("●") == head.index(" 1 ") + 1
    assert "=" in same and "≠" in far and "░" in same and far.index("●") == len(head) - 1 == head.rindex("2")
    assert max(map(len, lines)) <= 80
    quiet = runner.invoke(command, [str(tmp_path), "-q"], standalone_mode=False, obj=ResultsFolders()).output
    assert quiet.splitlines() == [
        "= b is a stand-in for a here: all 3 headline comparisons are within 10 %.",
        "≠ c is not a stand-in for a here: requests per second 2 times as high (95 % CI 1.96-2.04 times). "
        "Packets per request and bytes per request match.",
    ]


def test_summary_sentences(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b", "c"], {}, 3, listed({"a": [100, 101, 99], "b": [100, 101, 99], "c": [200, 201, 199]}))
    same, far = conclusions(compared(tmp_path))
    assert same.sentence == "b is a stand-in for a here: all 3 headline comparisons are within 10 %."
    # t at 2 + 2 - 2 degrees of freedom, of logarithms of samples that are in proportion but for 1/200: by R's t.test.
    assert far.sentence == (
        "c is not a stand-in for a here: requests per second 2 times as high (95 % CI 1.96-2.04 times). "
        "Packets per request and bytes per request match."
    )
    assert far.avoid_for == ("requests per second: 2 times as high",)
    assert far.use_for == ("packets per request: the same", "bytes per request: the same")
    assert (same.verdict, far.verdict) == (Verdict.EQUIVALENT, Verdict.DIFFERENT)
    # Another testbed may have the metric, in cells of its own.
    apart = replace(same, equivalent=(), different=(), inconclusive=())
    assert apart.sentence == "b shares no headline metric in any cell with a."


@pytest.mark.parametrize(
    ("rates", "code"), [([100, 101, 99], 0), ([200, 201, 199], 4), ([100, 150, 70], 5), ([100, None, None], 5)]
)
@pytest.mark.parametrize("style", ["text", "json", "csv"])
def test_the_command_and_its_exit_codes(tmp_path: Path, rates: list[float | None], code: int, style: str) -> None:
    write_study(tmp_path, ["a", "b"], {}, 3, listed({"a": [100, 101, 99], "b": rates}))
    runner = CliRunner()
    found = runner.invoke(command, [str(tmp_path), "--format", style], standalone_mode=False, obj=ResultsFolders())
    assert found.exception is None
    assert found.return_value == code
    if style == "json":
        assert len(json.loads(found.output)["comparisons"]) == 3
    elif style == "csv":
        assert len(found.output.splitlines()) == 4
    else:
        assert max(len(line) for line in found.output.splitlines()) <= 100


def test_the_command_chooses_metrics(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {}, 3, listed({"a": [100, 101, 99], "b": [100, 101, 99]}))
    runner = CliRunner()
    everything = runner.invoke(
        command, [str(tmp_path), "--all", "--format", "csv"], standalone_mode=False, obj=ResultsFolders()
    )
    assert len(everything.output.splitlines()) == 7
    chosen = runner.invoke(
        command, [str(tmp_path), "--metric", "bytes", "--format", "csv"], standalone_mode=False, obj=ResultsFolders()
    )
    assert [line.split(",")[1] for line in chosen.output.splitlines()] == ["metric", "bytes"]
    unknown = runner.invoke(command, [str(tmp_path), "--metric", "bites"], standalone_mode=False, obj=ResultsFolders())
    assert "bites" in str(unknown.exception) and "bytes" in getattr(unknown.exception, "advice", "")
    margin = runner.invoke(command, [str(tmp_path), "--margin", "wide"], standalone_mode=False, obj=ResultsFolders())
    assert getattr(margin.exception, "exit_code", None) == 2


def metrics_table(folder: Path, rows: list[tuple[str, str, str, str, float | None]]) -> Any:
    """An opened study whose metrics are the given (run, metric, host, direction, value), all headlines."""
    import pyarrow as pa

    store = extract(folder, {"planted": planted}, {})
    names = ("run", "metric", "host", "direction", "value")
    table = pa.table({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})
    for name, value in (("unit", "1"), ("layer", "host"), ("scale", "ratio"), ("headline", True), ("description", "")):
        table = table.append_column(name, pa.array([value] * len(rows)))

    class Given:
        path, outline, planned, records, cautions = store.path, store.outline, store.planned, store.records, store.cautions
        shown = store.shown
        other_settings = 0

        def table(self, name: str) -> Any:
            return table if name == "metrics" else store.table(name)

    return Given()


def test_the_headline_is_the_whole_run_where_there_is_one(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {}, 2, listed({"a": [1, 1], "b": [1, 1]}))
    runs = [record.id for record in extract(tmp_path, {"planted": planted}, {}).records]
    places = [
        ("packets", "", ""),
        ("packets", "client", "client_to_server"),
        ("interrupts", "machine", ""),
        ("interrupts", "server", ""),
    ]
    tables = metrics_table(tmp_path, [(run, *place, 5.0) for run in runs for place in places])
    found = {(each.metric, each.host): each.headline for each in compare.run(tables).comparisons}
    assert found == {
        ("packets", ""): True,
        ("packets", "client"): False,
        ("interrupts", "machine"): True,
        ("interrupts", "server"): True,
    }


def test_what_the_reference_has_no_means_to_measure_is_no_headline(tmp_path: Path) -> None:
    """A container has no kernel of its own to count interrupts in: that is no open question about a guest."""
    write_study(tmp_path, ["container", "guest"], {}, 2, listed({"container": [1, 1], "guest": [1, 1]}))
    records = extract(tmp_path, {"planted": planted}, {}).records
    rows: list[tuple[str, str, str, str, float | None]] = []
    for record in records:
        guest = record.settings["testbed"]["name"] == "guest"
        rows += [(record.id, "interrupts", "machine", "", 5.0), (record.id, "cpu", "", "", 1.0 if guest else None)]
        rows += [(record.id, "interrupts", "server", "", 5.0)] if guest else []
    found = {(each.metric, each.host): each.headline for each in compare.run(metrics_table(tmp_path, rows)).comparisons}
    assert found == {("interrupts", "machine"): True, ("interrupts", "server"): False, ("cpu", ""): True}


def test_a_share_that_is_one_throughout_counts_no_events(tmp_path: Path) -> None:
    """Jain's fairness of equal flows is 1 in every run; three failures in three runs each would be too few to say."""

    def whole(value: int) -> Any:
        return lambda testbed, levels, replicate: {**RATES, "requests": value, "requests_per_second": 50.0}

    for value, method in ((1, "exact"), (2, "counts")):
        write_study(tmp_path / str(value), ["a", "b"], {}, 2, whole(value))
        [found] = of(compared(tmp_path / str(value)), "requests")
        assert found.method == method
    assert explanation(found) == "too few events: 4 here and 4 on a"


def test_how_much_no_event_leaves_is_a_rate_of_what_is_counted_elsewhere_and_a_share_of_runs_otherwise(tmp_path: Path) -> None:
    """Of 3 runs: -ln(0.05) / 3 = 0.9986 events a run, 1 - 0.05^(1/3) = 0.6316 of runs."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return {**RATES, "requests": 0 if levels["payload"] == "1kB" else 7 + replicate, "packets": 0}

    write_study(tmp_path, ["a", "b"], {"payload": ["1kB", "1MB"]}, 3, respond)
    result = compared(tmp_path)
    counted, other = of(result, "requests")[0], of(result, "packets")[0]
    assert explanation(counted) == "0 in all 3 runs of both; up to 1 a run, or some in 63 % of runs, may go unseen"
    assert explanation(other) == "0 in all 3 runs of both; up to 63 % of runs may be otherwise"


@pytest.mark.parametrize(
    ("here", "there", "total"), [([0, 1, 0, 0, 0], [0, 0, 0, 0, 0], 1), ([9, 12, 8, 10, 11], [1, 0, 2, 1, 0], 54)]
)
def test_rare_events_are_counted_against_the_work_that_was_done(
    tmp_path: Path, here: list[int], there: list[int], total: int
) -> None:
    """Of 6,000 requests a run here and 600 there: given the total, the events here are binomial with a share of 10/11 where
    rates are equal (scipy's test), whatever the spread of runs says. Packets stand for what fails."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        done, events = {"a": (600, there), "b": (6000, here)}[testbed]
        return {"requests": done, "requests_per_second": 50.0, "packets": events[replicate], "bytes": 64000}

    write_study(tmp_path, ["a", "b"], {}, 5, respond)
    [found] = of(compared(tmp_path), "packets_per_request")
    assert (found.method, found.event_counts) == ("counts", (sum(here), sum(there)))
    assert sum(here) + sum(there) == total
    low, high = (ratio * 10 / (ratio * 10 + 1) for ratio in (1 / 1.1, 1.1))
    above = stats.binomtest(sum(here), total, low, "greater").pvalue
    below = stats.binomtest(sum(here), total, high, "less").pvalue
    assert found.p_equivalent is not None and found.p_equivalent >= max(above, below) - 1e-12
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"too few events: {sum(here)} here and {sum(there)} on a" in explanation(found)


def test_of_details_that_differ_one_is_named_as_an_example(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {}, 2, listed({"a": [1] * 2, "b": [1] * 2}))
    for file in sorted(tmp_path.glob("runs/*/run.json")):
        record = json.loads(file.read_text())
        detail = f"{50 + record['replicate']} ms between the first and the last client"
        record["cautions"] = [{"kind": "skewed_start", "detail": detail, "subject": ""}]
        file.write_text(json.dumps(record))
    [found] = [each.detail for each in compared(tmp_path).cautions if (each.subject, each.kind) == ("a", Kind.SKEWED_START)]
    assert found in [f"2 of 2 runs, such as {ms} ms between the first and the last client" for ms in (50, 51)]


def test_what_lies_outside_the_margin_takes_replicates_and_no_wider_margin(tmp_path: Path) -> None:
    """A third of the rate, too spread to show; the other lies on the margin's edge, where no number of runs decides."""
    rates = {"ref": [50.0, 51.0], "far": [10.0, 26.0], "edge": [45.4, 45.5]}
    write_study(tmp_path, list(rates), {}, 2, listed(rates), reference="ref")
    advice = {each.testbed: " ".join(each.advice) for each in conclusions(compared(tmp_path))}
    assert "More replicates, or fewer comparisons, may show that requests per second differs" in advice["far"]
    assert "wider margin" not in advice["far"]


def test_means_alike_with_another_spread_are_so_only_where_they_are_listed(tmp_path: Path) -> None:
    """Of one metric a cell is equivalent, with more spread, and another is different."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        step = {"ref": 0.0001, "vm": 0.2}[testbed] * (replicate - 4.5)
        half = 0.5 if testbed == "vm" and levels["payload"] == "1MiB" else 1.0
        return {**RATES, "requests_per_second": 50.0 * half + step}

    write_study(tmp_path, ["ref", "vm"], {"payload": ["500B", "1MiB"]}, 10, respond, reference="ref")
    [vm] = conclusions(compared(tmp_path))
    [about] = [each for each in vm.advice if "Run-to-run spread does not" in each]
    assert about.startswith("Mean requests per second match ref. Run-to-run spread does not: do not use vm for single runs")
    assert vm.use_for[0] == "mean requests per second: the same at payload 500B"


def test_an_interval_that_says_nothing_is_no_error() -> None:
    """Student's t of two values is 6,366 at 99.99 %: ends of e^±3,572 about the mean."""
    interval = estimate((4.3e-5, 1.4e-5), 0.9999).centre_interval
    assert interval is not None
    assert 0 < interval.low < 1e-300 and 1e300 < interval.high < math.inf
