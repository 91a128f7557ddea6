"""The analysis ``tails``: times of single requests, from captures or from ab, against the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record
from tests.commanded import printed

from twinbed.analyses.tails.method import analysis as tails
from twinbed.analyses.tails.result import Tails
from twinbed.analyses.tails.words import sentence
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.model.result import Pairing, Verdict
from twinbed.model.tables import Outline, StudyDocument

Times = Callable[[np.random.Generator], np.ndarray]
RUNS = 6


def usual(noise: np.random.Generator) -> np.ndarray:
    return np.asarray(noise.lognormal(np.log(1e-3), 0.1, 2000))


def with_tail(noise: np.random.Generator) -> np.ndarray:
    """The same, but 4 % of the requests take 5 times as long."""
    return usual(noise) * np.where(noise.random(2000) < 0.04, 5.0, 1.0)


def study(
    times: dict[str, Times], table: str = "exchanges", runs: int = RUNS, *, paired: bool = False, shift: float = 0.0
) -> InMemory:
    noise = np.random.default_rng(1)
    records, rows = [], []
    for replicate in range(runs):
        state = np.exp(noise.normal(0, shift))
        for testbed, draw in times.items():
            one = record(testbed, replicate, len(records), {"testbed": testbed, "payload": "500B"})
            records.append(one)
            rows += [(one.id, float(value)) for value in draw(noise) * state]
    run, seconds = [row[0] for row in rows], [row[1] for row in rows]
    if table == "exchanges":
        # What the server's link saw is the same request once more; the last request of all has no answer.
        columns = {
            "run": [*run, *run, run[-1]],
            "link": ["client"] * len(run) + ["server"] * len(run) + ["client"],
            "duration_s": [*seconds, *(9.0 for _ in run), None],
            "complete": [True] * 2 * len(run) + [False],
        }
    else:
        columns = {"run": run, "total_s": [round(value, 3) for value in seconds]}
    data = StudyDocument(comparison=Pairing.PAIRED if paired else Pairing.INDEPENDENT)
    outline = Outline("s", tuple(times), next(iter(times)), data=data)
    return InMemory({table: pa.table(columns)}, outline, records)


def verdicts(result: Tails) -> dict[float, Verdict | None]:
    return {each.share: each.verdict for each in result.verdicts}


def test_a_tail_is_found_where_the_middle_is_the_same() -> None:
    result = tails.run(study({"real": usual, "virtual": with_tail}))
    assert verdicts(result) == {0.5: Verdict.EQUIVALENT, 0.9: Verdict.EQUIVALENT, 0.99: Verdict.DIFFERENT}
    slowest = next(each for each in result.shifts if each.share == 0.99)
    # By the distributions themselves: a quarter of the slow ones lies beyond P99, at 5 exp(0.1 x 0.674) ms, against
    # exp(0.1 x 2.326) ms.
    assert slowest.value == pytest.approx(5e-3 * np.exp(0.1 * 0.674), rel=0.03)
    assert slowest.ratio == pytest.approx(5 * np.exp(0.1 * (0.674 - 2.326)), rel=0.03)
    assert result.left_out == {"requests without an answer": 1}
    assert sentence(result).startswith("virtual: the P99 request time is 4.2")
    assert "(of 3 quantiles 1 differ by more than 10 %, " in sentence(result)


def test_testbeds_one_after_the_other_get_a_caution() -> None:
    in_turn = study({"real": usual, "virtual": usual})
    assert not [each for each in tails.run(in_turn).cautions if each.kind is Kind.SUCCESSION]
    later = [replace(one, started_s=one.started_s + 1e7 * (one.cell == "virtual")) for one in in_turn.records]
    [caution] = tails.run(replace(in_turn, records=later)).cautions
    assert (caution.kind, caution.subject) == (Kind.SUCCESSION, "virtual")
    assert caution.detail == "no session has runs of both virtual and real"


def test_the_same_testbed_twice_is_equivalent_throughout() -> None:
    result = tails.run(study({"real": usual, "virtual": usual}))
    assert set(verdicts(result).values()) == {Verdict.EQUIVALENT}
    assert [each.share for each in result.shifts] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]


def test_what_shifts_a_block_cancels_where_the_study_is_paired() -> None:
    times = {"real": usual, "virtual": usual}
    apart = tails.run(study(times, shift=0.5))
    paired = tails.run(study(times, paired=True, shift=0.5))
    assert set(verdicts(apart).values()) == {Verdict.INCONCLUSIVE}
    assert set(verdicts(paired).values()) == {Verdict.EQUIVALENT}
    assert all(each.paired for each in paired.shifts)


def test_a_quantile_needs_requests_beyond_it() -> None:
    """P99 needs 500 requests in every run, the median 10."""
    result = tails.run(study({"real": usual, "virtual": lambda noise: usual(noise)[:499]}))
    assert 0.99 not in verdicts(result) and 0.9 in verdicts(result)
    assert 0.99 in tails.run(study({"real": usual, "virtual": lambda noise: usual(noise)[:500]})).tails[1].quantiles
    nothing = tails.run(study({"real": usual, "virtual": lambda noise: usual(noise)[:9]}))
    assert nothing.shifts == () and sentence(nothing) == "Nothing to compare: no quantile has two runs on both testbeds."


def test_whole_milliseconds_hide_what_they_are_too_coarse_for() -> None:
    """ab writes 1 ms for all that lies between 0.5 and 1.5: 1.0 against 1.3 is no equivalence."""
    times = {"real": usual, "virtual": lambda noise: 1.3 * usual(noise)}
    result = tails.run(study(times, "requests"))
    assert (result.source, result.step) == ("requests", 0.001)
    assert verdicts(result)[0.5] is Verdict.INCONCLUSIVE
    assert verdicts(tails.run(study(times)))[0.5] is Verdict.DIFFERENT


def test_what_is_written_as_nothing_has_no_ratio() -> None:
    """Half of the requests take 0.2 ms and are written as 0; P90 and more are of the others."""
    times = {"real": lambda noise: usual(noise) * np.where(noise.random(2000) < 0.55, 0.2, 1.0), "virtual": usual}
    result = tails.run(study(times, "requests"))
    assert set(verdicts(result)) == {0.9, 0.99}
    assert all(each.value > 0.5e-3 and each.reference_value > 0.5e-3 for each in result.shifts)
    # The quantiles to the median, and none above 0.6, of each of the runs on one side.
    assert result.left_out["quantiles that the load generator wrote as 0 ms"] == RUNS * 5


def test_one_run_has_no_verdict_and_two_have_a_caution() -> None:
    assert tails.run(study({"real": usual, "virtual": usual}, runs=1)).verdicts == ()
    two = tails.run(study({"real": usual, "virtual": usual}, runs=2))
    assert {each.kind for each in two.cautions} == {Kind.FEW_REPLICATES} and two.verdicts


def test_runs_without_times_are_counted() -> None:
    tables = study({"real": usual, "virtual": usual})
    more = replace(tables, records=[*tables.records, record("virtual", 9, 99, {"testbed": "virtual", "payload": "500B"})])
    assert tails.run(more).left_out == {"runs without times of requests": 1, "requests without an answer": 1}


def test_a_report_without_requests_has_no_section() -> None:
    tables = study({"real": usual, "virtual": usual})
    assert tails.sections(replace(tables, tables={})) == ()
    [found] = tails.sections(tables)
    assert found.key == "tails"


def test_the_page_draws_both_figures(tmp_path: Path) -> None:
    printed(tails, study({"real": usual, "virtual": with_tail}), "-o", str(tmp_path / "tails.html"))
    text = (tmp_path / "tails.html").read_text()
    assert text.count("<svg ") == 2 and "virtual: 1 % of requests take longer than" in text
    assert text.count("<table") == 2


def test_the_command_prints_every_form(tmp_path: Path) -> None:
    tables = study({"real": usual, "virtual": with_tail})
    text = printed(tails, tables)
    assert "≠ different" in text and "P95" not in text
    assert "P95" in printed(tails, tables, "--all")
    rows: Sequence[dict[str, object]] = json.loads(printed(tails, tables, "--format", "json"))["shifts"]
    assert {row["verdict"] for row in rows} == {"equivalent", "different", None}
    assert printed(tails, tables, "--format", "csv", "--table", "quantiles").startswith("payload,testbed,runs,requests")
    with pytest.raises(TwinbedError, match="no times of single requests"):
        printed(tails, tables, "--times", "requests")
