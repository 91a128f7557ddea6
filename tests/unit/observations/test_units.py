"""What is compared with what: blocks that a study declares, sessions that a user names or that pauses show."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from synthetic_results import write_study
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.cli import main
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.error import TwinbedError
from twinbed.model.result import Verdict
from twinbed.observations.units import by_time
from twinbed.registry import catalogue
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.workloads.planted import planted

RATE = "requests_per_second"


def rates(shift: Mapping[int, float], own: Mapping[tuple[str, int], float]) -> Any:
    """What the planted program answers: 1000 requests a second, times what shifts the replicate and what is a run's own."""

    def respond(testbed: str, _levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = 1000 * math.exp(shift[replicate] + own[testbed, replicate])
        return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": 120_000}

    return respond


def noisy(replicates: int, shift: float, own: float, seed: int = 1) -> Any:
    noise = random.Random(seed)
    shifts = {each: noise.gauss(0, shift) for each in range(replicates)}
    return rates(shifts, {(name, each): noise.gauss(0, own) for each in range(replicates) for name in ("real", "virtual")})


def results(folder: Path, replicates: int, respond: Any, **study: Any) -> Store:
    write_study(folder, ["real", "virtual"], {}, replicates, respond)
    about = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**about, **study}))
    return extract(folder, {"planted": planted}, {})


def rate_of(result: Comparisons) -> Comparison:
    (found,) = (each for each in result.comparisons if each.metric == RATE)
    return found


def test_blocks_are_pairs_where_the_study_says_so(tmp_path: Path) -> None:
    """Machines that grow slower by half between blocks, with runs that differ by 1 %: only pairs see that."""
    respond = noisy(6, 0.5, 0.01)
    paired = rate_of(compare.run(results(tmp_path / "paired", 6, respond, comparison="paired")))
    apart = rate_of(compare.run(results(tmp_path / "apart", 6, respond, comparison="independent")))
    older = rate_of(compare.run(results(tmp_path / "older", 6, respond)))
    assert (paired.verdict, paired.paired) == (Verdict.EQUIVALENT, True)
    assert (apart.verdict, apart.paired) == (Verdict.INCONCLUSIVE, False)
    assert (older.ratio_interval, older.paired) == (apart.ratio_interval, False)
    logs = [[math.log(value) for value in each.values] for each in (paired.estimate, paired.reference_estimate)]
    expected = stats.ttest_rel(*logs).confidence_interval(0.90)
    assert paired.ratio_interval is not None
    assert (math.log(paired.ratio_interval.low), math.log(paired.ratio_interval.high)) == pytest.approx(tuple(expected))


def test_where_a_block_lacks_a_run_runs_are_taken_as_independent(tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        answer = dict(noisy(6, 0.5, 0.01)(testbed, levels, replicate))
        return answer | {"requests_per_second": None} if (testbed, replicate) == ("virtual", 3) else answer

    found = rate_of(compare.run(results(tmp_path, 6, respond, comparison="paired")))
    assert (found.paired, found.estimate.n, found.reference_estimate.n) == (False, 5, 6)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_mean_and_its_interval_are_those_of_the_ratio(tmp_path: Path) -> None:
    """Columns divide, and an interval of positive values is positive, however few and spread they are."""
    found = rate_of(compare.run(results(tmp_path, 3, noisy(3, 0.0, 1.5))))
    one, two = found.estimate, found.reference_estimate
    assert one.centre and two.centre and found.ratio == pytest.approx(one.centre / two.centre)
    assert one.centre == pytest.approx(stats.gmean(one.values))
    logs = [math.log(value) for value in one.values]
    expected = stats.t.interval(0.95, 2, sum(logs) / 3, stats.sem(logs))
    assert one.centre_interval and one.interval and one.interval.low < 0 < one.centre_interval.low
    assert (math.log(one.centre_interval.low), math.log(one.centre_interval.high)) == pytest.approx(expected)


def of_days(folder: Path, days: Mapping[str, list[str]], runs: int, correlated: float) -> Store:
    """Each testbed's ``days``, which shift all runs of a day alike, as a factor, with pauses between them."""
    noise = random.Random(3)
    shift = {day: noise.gauss(0, correlated) for day in sorted({day for each in days.values() for day in each})}

    def respond(testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        rate = 1000 * math.exp(shift[levels["day"]] + noise.gauss(0, 0.01))
        return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": 120_000}

    write_study(folder, list(days), {"day": sorted(shift)}, runs, respond)
    for path in folder.glob("runs/*/run.json"):
        record = json.loads(path.read_text())
        day = record["levels"]["day"]
        if day not in days[record["levels"]["testbed"]]:
            for file in sorted(path.parent.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            path.parent.rmdir()
            continue
        record["started_s"] = 1_700_000_000 + 86_400 * sorted(shift).index(day) + record["position"]
        path.write_text(json.dumps(record))
    return extract(folder, {"planted": planted}, {})


def test_sessions_are_the_units_of_a_comparison(tmp_path: Path) -> None:
    """Days that both testbeds have are pairs, days of their own two samples: Welch's test of the means of days."""
    crossed = of_days(tmp_path / "crossed", {name: ["a", "b", "c", "d"] for name in ("real", "virtual")}, 3, 0.5)
    found = rate_of(compare.run(crossed, CompareParams(sessions="day")))
    assert (found.cell, found.sessions, found.paired, found.verdict) == ({}, (4, 4), True, Verdict.EQUIVALENT)
    nested = of_days(tmp_path / "nested", {"real": ["a", "b", "c"], "virtual": ["d", "e", "f"]}, 3, 0.5)
    found = rate_of(compare.run(nested, CompareParams(sessions="day")))
    assert (found.sessions, found.paired) == ((3, 3), False)
    means = {"real": [], "virtual": []}
    for each in rate_by_day(nested):
        means[each[0]].append(each[2])
    expected = stats.ttest_ind(means["virtual"], means["real"], equal_var=False).confidence_interval(0.90)
    assert found.ratio_interval is not None
    assert (math.log(found.ratio_interval.low), math.log(found.ratio_interval.high)) == pytest.approx(tuple(expected))


def rate_by_day(tables: Store) -> list[tuple[str, str, float]]:
    """(testbed, day, mean logarithm of the rate), from the tables."""
    of: dict[tuple[str, str], list[float]] = {}
    levels = {record.id: record.levels for record in tables.records}
    metrics = tables.table("metrics").to_pylist()
    for row in metrics:
        if row["metric"] == RATE and row["host"] == "":
            of.setdefault((levels[row["run"]]["testbed"], levels[row["run"]]["day"]), []).append(math.log(row["value"]))
    return [(testbed, day, sum(values) / len(values)) for (testbed, day), values in sorted(of.items())]


def test_pauses_between_runs_make_sessions_and_a_caution(tmp_path: Path) -> None:
    tables = of_days(tmp_path, {"real": ["a", "b", "c"], "virtual": ["d", "e", "f"]}, 6, 0.5)
    assert len(set(by_time(tables.records).values())) == 6
    # Without the factor each testbed has one cell, whose runs are of three days.
    blind = replace(tables, records=tuple(replace(each, levels={"testbed": each.levels["testbed"]}) for each in tables.records))
    result = compare.run(blind)
    cautions = [each for each in rate_of(result).cautions if each.kind is Kind.SESSIONS]
    assert [each.subject for each in cautions] == ["virtual", "real"]
    assert "over 3 sessions" in cautions[0].detail
    by_sessions = compare.run(blind, CompareParams(sessions="time"))
    assert rate_of(by_sessions).sessions == (3, 3)
    assert not any(each.kind is Kind.SESSIONS for each in rate_of(by_sessions).cautions)


def test_runs_that_follow_each_other_evenly_are_one_session(tmp_path: Path) -> None:
    tables = results(tmp_path, 6, noisy(6, 0.0, 0.01))
    assert set(by_time(tables.records).values()) == {0}
    found = rate_of(compare.run(tables, CompareParams(sessions="time")))
    assert (found.sessions, found.verdict) == ((1, 1), Verdict.INCONCLUSIVE)


def test_a_factor_that_there_is_not_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = results(tmp_path / "r", 4, noisy(4, 0.0, 0.01))
    with pytest.raises(TwinbedError, match="no run has a factor 'day'"):
        compare.run(tables, CompareParams(sessions="day"))
    assert main.run(["compare", str(tmp_path / "r"), "--sessions", "time", "-q"]) == 5
    assert "virtual" in capsys.readouterr().out


STUDY = "study: s\ntestbeds: {a: {driver: fake}, b: {driver: fake}}\nworkload: {kind: planted}\n"


@pytest.mark.parametrize(
    ("keys", "comparison"),
    [
        ("", "paired"),
        ("replicates: 4", "paired"),
        ("replicates: 3", "independent"),
        ("order: random", "independent"),
        ("replicates: {least: 4, most: 9}", "paired"),
        ("replicates: 2\ncomparison: paired", "paired"),
        ("comparison: independent", "independent"),
    ],
)
def test_the_design_decides_how_means_are_compared(keys: str, comparison: str) -> None:
    study = load(STUDY + keys, "s.yaml", catalogue())
    assert study.comparison == comparison
    assert study.to_json()["comparison"] == comparison


def test_an_order_without_blocks_has_no_pairs() -> None:
    with pytest.raises(StudyError, match="needs blocks to pair runs by"):
        load(f"{STUDY}order: random\ncomparison: paired\n", "s.yaml", catalogue())


def by_machines(folder: Path, ratios: Mapping[str, float], blocks: int) -> Store:
    """Results of a fleet: on each machine ``blocks`` blocks, in which virtual is its ratio of real; runs differ by 1 %."""
    noise = random.Random(5)
    names = [name for name in ratios for _ in range(blocks)]
    own = {
        (testbed, each): noise.gauss(0, 0.01) + (math.log(ratios[name]) if testbed == "virtual" else 0.0)
        for each, name in enumerate(names)
        for testbed in ("real", "virtual")
    }
    write_study(
        folder, ["real", "virtual"], {}, len(names), rates({each: noise.gauss(0, 0.3) for each in range(len(names))}, own)
    )
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps({**record, "machine": names[record["replicate"]]}))
    return extract(folder, {"planted": planted}, {})


def test_machines_of_a_fleet_are_a_random_effect(tmp_path: Path) -> None:
    """The interval is that of Student's t on the machines' mean log ratios, by scipy."""
    store = by_machines(tmp_path, {"m1": 1.0, "m2": 1.2, "m3": 0.85}, 10)
    found = rate_of(compare.run(store))
    assert (found.verdict, found.sessions, found.paired) == (Verdict.INCONCLUSIVE, (3, 3), True)
    table = store.table("metrics").to_pylist()
    rate = {row["run"]: math.log(row["value"]) for row in table if row["metric"] == RATE}
    logs: dict[tuple[str, str], list[float]] = {}
    for record in store.records:
        logs.setdefault((record.machine, str(record.levels["testbed"])), []).append(rate[record.id])
    differences = [
        sum(logs[name, "virtual"]) / len(logs[name, "virtual"]) - sum(logs[name, "real"]) / len(logs[name, "real"])
        for name in ("m1", "m2", "m3")
    ]
    low, high = stats.t.interval(0.90, 2, loc=sum(differences) / 3, scale=stats.sem(differences))
    assert found.ratio_interval is not None
    assert (math.log(found.ratio_interval.low), math.log(found.ratio_interval.high)) == pytest.approx((low, high))


def test_machines_that_agree_cost_no_verdict_though_each_has_its_own_speed(tmp_path: Path) -> None:
    found = rate_of(compare.run(by_machines(tmp_path, {"m1": 1.0, "m2": 1.0, "m3": 1.0}, 6)))
    assert (found.verdict, found.sessions) == (Verdict.EQUIVALENT, (3, 3))


def test_of_two_machines_blocks_are_the_pairs(tmp_path: Path) -> None:
    store = by_machines(tmp_path, {"m1": 1.0, "m2": 1.0}, 5)
    found = rate_of(compare.run(store))
    assert (found.verdict, found.sessions, found.paired) == (Verdict.EQUIVALENT, None, True)
    asked = rate_of(compare.run(store, CompareParams(sessions="machine")))
    assert asked.sessions == (2, 2)
