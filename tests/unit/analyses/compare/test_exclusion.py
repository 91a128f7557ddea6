"""Runs that a study leaves out for a caution: both results, what each testbed lost, and decisions that came afterwards."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record

from twinbed.analyses.compare import exclusion
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.rows import as_csv
from twinbed.analyses.compare.terminal import print_comparison
from twinbed.lab.study import write_study
from twinbed.model.caution import OF_RUNS, Kind
from twinbed.model.result import Verdict
from twinbed.model.tables import Outline
from twinbed.registry import catalogue
from twinbed.render.terminal import Terminal
from twinbed.results.folder import Folder
from twinbed.study.document import StudyError
from twinbed.study.loading import load

STUDY = """study: s
testbeds: {a: {driver: fake}, b: {driver: fake}}
workload: {kind: planted}
"""


def results(of_a: list[float], of_b: list[float], stalled: list[str], after: int = 0) -> InMemory:
    """Requests per second of runs a0, a1, ... and b0, b1, ..."""
    values = {f"a{at}": value for at, value in enumerate(of_a)} | {f"b{at}": value for at, value in enumerate(of_b)}
    runs = list(values)
    records = [record(run[0], int(run[1:]), at, {}) for at, run in enumerate(runs)]
    text = {"host": "", "direction": "", "metric": "rate", "unit": "1/s", "layer": "application", "scale": "ratio"}
    columns = {name: [value] * len(runs) for name, value in text.items()}
    columns |= {"run": runs, "headline": [True] * len(runs), "description": [""] * len(runs), "value": list(values.values())}
    cautions = pa.table(
        {"run": stalled, "kind": ["stall"] * len(stalled), "detail": ["client: the longest 13 s"] * len(stalled)}
    )
    data = {"exclude_cautions": ["stall"], "exclude_decided_after": after}
    outline = Outline("s", ("a", "b"), "b", data=data)
    return InMemory({"metrics": pa.table(columns), "cautions": cautions}, outline, records)


STEADY = [100.0, 100.4, 99.7, 100.2, 99.9, 100.1]


def test_both_results_are_there() -> None:
    """Of a two runs stalled, at a third of the rate: without them it is as b is, with them nothing is shown."""
    found = compare.run(results([*STEADY, 33.0, 31.0], [*STEADY, 100.3, 99.8], ["a6", "a7"]))
    [one] = found.comparisons
    assert (one.verdict, one.estimate.n) == (Verdict.EQUIVALENT, 6)
    assert one.ratio == pytest.approx(1.0, abs=0.005)
    # Geometric means over all, by hand: (100^6 33 31)^(1/8) / 100.
    assert one.all_runs is not None and one.all_runs.ratio == pytest.approx((0.33 * 0.31) ** (1 / 8), abs=0.005)
    assert (one.all_runs.verdict, one.all_runs.runs) == (Verdict.INCONCLUSIVE, 8)
    assert found.excluded is not None and dict(found.excluded.runs) == {"a": (2, 8), "b": (0, 8)}
    [unequal] = [each for each in found.cautions if each.kind is Kind.EXCLUDED_UNEQUALLY]
    assert unequal.detail == "stall: a 2 of 8, b 0 of 8"
    console = Terminal(width=100, record=True, file=io.StringIO())
    print_comparison(found, console)
    text = console.export_text()
    assert "Runs left out, as the study says (exclude: stall): a 2 of 8, b 0 of 8." in text
    assert re.search(r"without them +with all runs", text) and "inconclusive, 0.75" in text
    _, both = exclusion.items(found)
    assert "inconclusive, 0.75" in str(both.records[0])  # type: ignore[union-attr]
    [row] = csv.DictReader(io.StringIO(as_csv(found.comparisons)))
    assert (row["verdict"], row["all_runs_verdict"], row["all_runs"]) == ("equivalent", "inconclusive", "8")


def test_a_testbed_that_loses_all_of_its_runs_is_inconclusive() -> None:
    for stalled in (["a0", "a1", "a2"], ["a0", "a1"]):
        [one] = compare.run(results(STEADY[:3], STEADY[:3], stalled)).comparisons
        assert (one.verdict, one.estimate.n) == (Verdict.INCONCLUSIVE, 3 - len(stalled))
        assert one.all_runs is not None and one.all_runs.verdict is Verdict.EQUIVALENT


def test_nothing_to_leave_out_changes_nothing() -> None:
    found = compare.run(results(STEADY, STEADY, []))
    assert found.excluded is not None and not found.excluded.ids and found.comparisons[0].all_runs is None
    assert not [each for each in found.cautions if each.kind is Kind.EXCLUDED_UNEQUALLY]


def test_as_many_of_each_is_no_caution_and_a_late_decision_is() -> None:
    found = compare.run(results(STEADY, STEADY, ["a0", "b3"], after=12))
    kinds = {each.kind: each.detail for each in found.cautions}
    assert Kind.EXCLUDED_UNEQUALLY not in kinds and kinds[Kind.EXCLUDED_AFTERWARDS] == "stall: after 12 runs"


def test_what_is_asked_for_with_the_results_in_hand_is_shown_as_that() -> None:
    given = results([*STEADY, 33.0], [*STEADY, 100.3], ["a6"])
    given.outline = Outline("s", ("a", "b"), "b")
    assert compare.run(given).excluded is None
    found = compare.run(given, CompareParams(exclude=("stall",)))
    assert found.excluded is not None and found.excluded.asked_now and found.comparisons[0].estimate.n == 6
    assert (
        found.excluded.sentence
        == "Runs left out, as requested for this comparison, not by the study (exclude: stall): a 1 of 7, b 0 of 7."
    )
    assert [each.detail for each in found.cautions if each.kind is Kind.EXCLUDED_AFTERWARDS] == [
        "stall: requested after the results were known"
    ]
    with pytest.raises(ValueError, match="'drift' is not a caution that leaves a run out, expected stall"):
        CompareParams(exclude=("drift",))


def test_the_key_names_cautions() -> None:
    study = load(STUDY + "exclude: [stall, nic_reset]\n", "s.yaml", catalogue())
    assert (study.exclude, study.exclude_cautions) == ((), ("stall", "nic_reset"))
    with pytest.raises(StudyError) as caught:
        load(STUDY + "exclude: [stalll, drift, stall, stall]\n", "s.yaml", catalogue())
    assert [str(each) for each in caught.value.problems] == [
        "s.yaml:4:11: exclude[0]: 'stalll' is not a caution that can exclude a run; allowed: "
        + ", ".join(OF_RUNS)
        + "; did you mean 'stall'?",
        "s.yaml:4:19: exclude[1]: 'drift' is not a caution that can exclude a run; allowed: " + ", ".join(OF_RUNS),
        "s.yaml:4:33: exclude[3]: stall is given twice",
    ]


def test_what_is_decided_when_there_are_runs_is_known(tmp_path: Path) -> None:
    folder = Folder(tmp_path)

    def write(text: str, *overrides: str) -> int:
        write_study(folder, load(text, "s.yaml", catalogue(), overrides), [])
        return json.loads((tmp_path / "study.json").read_text()).get("exclude_decided_after", 0)

    assert write(STUDY) == 0
    (tmp_path / "runs" / "a0").mkdir(parents=True)
    (tmp_path / "runs" / "a0" / "run.json").write_text("{}")
    assert write(STUDY) == 0
    assert write(STUDY, "exclude=[stall]") == 1
    assert write(STUDY + "exclude: [stall]\n") == 1, "and it stays so"
    other = tmp_path / "other"
    other.mkdir()
    folder = Folder(other)
    tmp_path = other
    assert write(STUDY + "exclude: [stall]\n") == 0
