"""The analysis ``compare`` on every scale, of spreads and of order; and what it says of samples that allow little."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from synthetic_results import write_run, write_study
from twinbed.analyses.compare.command import command
from twinbed.analyses.compare.conclusion import conclusions
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.ranked import touching
from twinbed.analyses.compare.rows import rows
from twinbed.analyses.compare.words import effect_text, explanation, varies
from twinbed.cli.inputs import ResultsFolders
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.result import Verdict
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

RATES = {"requests": 100, "requests_per_second": 50.0, "packets": 1000, "bytes": 64000}


def tables_of(folder: Path, samples: Mapping[str, Sequence[float | None]], scale: str, margin: float | None = None) -> Any:
    """A study whose one metric, a headline, has the given values on each testbed."""
    n = max(map(len, samples.values()))
    write_study(folder, list(samples), {}, n, lambda *_: RATES)
    store = extract(folder, {"planted": planted}, {})
    found = [
        (record.id, samples[str(record.settings["testbed"]["name"])][record.replicate])
        for record in store.records
        if record.replicate < len(samples[str(record.settings["testbed"]["name"])])
    ]
    columns: dict[str, list[Any]] = {"run": [run for run, _ in found], "value": [value for _, value in found]}
    same = {"host": "", "direction": "", "metric": "measure", "unit": "degC", "layer": "host", "scale": scale}
    about = {**same, "headline": True, "description": "", "margin": margin}
    table = pa.table({**columns, **{name: [value] * len(found) for name, value in about.items()}})

    class Given:
        shown, outline, planned, records, cautions = store.shown, store.outline, store.planned, store.records, store.cautions
        link_checks = store.link_checks
        other_settings = 0

        def table(self, name: str) -> Any:
            return table if name == "metrics" else store.table(name)

    return Given()


def compared(
    folder: Path, samples: Mapping[str, Sequence[float | None]], scale: str, margin: float | None = None
) -> Comparison:
    [found] = compare.run(tables_of(folder, samples, scale, margin)).comparisons
    return found


def of(result: Comparisons, metric: str = "requests_per_second") -> list[Comparison]:
    return [each for each in result.comparisons if each.metric == metric]


def kinds(result: Comparisons) -> set[Kind]:
    return {each.kind for each in result.cautions}


@pytest.mark.parametrize(
    ("margin", "b", "verdict"),
    [
        (5.0, [20.1, 20.3, 19.9, 20.0], Verdict.EQUIVALENT),
        (5.0, [30.1, 30.3, 29.9, 30.0], Verdict.DIFFERENT),
        (0.2, [20.1, 20.3, 19.9, 20.0], Verdict.INCONCLUSIVE),
        (None, [20.1, 20.3, 19.9, 20.0], Verdict.INCONCLUSIVE),
    ],
)
def test_an_interval_scale_has_differences_and_a_margin_of_its_own(
    tmp_path: Path, margin: float | None, b: list[float], verdict: Verdict
) -> None:
    found = compared(tmp_path, {"a": [20.0, 20.2, 19.8, 20.1], "b": b}, "interval", margin)
    assert found.verdict is verdict
    assert found.ratio is None and found.effect is not None
    assert found.effect.value == pytest.approx(sum(b) / 4 - 20.025)
    assert effect_text(found).startswith("diff ")
    if margin is None:
        assert "gives no margin" in explanation(found)
        assert found.p_different is None


def test_where_zero_is_does_not_matter_on_an_interval_scale(tmp_path: Path) -> None:
    """20 degrees Celsius and 293.15 kelvin are the same; a margin as a share of the mean would not be."""
    a, b = [20.0, 20.2, 19.8, 20.1], [20.6, 20.8, 20.4, 20.9]
    warm = compared(tmp_path / "c", {"a": a, "b": b}, "interval", 1.0)
    kelvin = compared(tmp_path / "k", {"a": [x + 273.15 for x in a], "b": [x + 273.15 for x in b]}, "interval", 1.0)
    assert warm.p_equivalent == pytest.approx(kelvin.p_equivalent)
    assert warm.verdict is kelvin.verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("b", "verdict"), [([5, 5, 4, 5, 5, 4, 5, 5, 4, 5], Verdict.DIFFERENT), ([1, 2, 3, 2, 1], Verdict.INCONCLUSIVE)]
)
def test_an_ordinal_scale_has_cliffs_delta(tmp_path: Path, b: list[float], verdict: Verdict) -> None:
    found = compared(tmp_path, {"a": [1, 2, 2, 1, 3, 2, 1, 2, 3, 2], "b": b}, "ordinal")
    assert (found.verdict, found.ratio, found.within_rule) == (verdict, None, None)
    assert found.effect is not None and found.effect.name == "cliffs_delta" and found.effect.interval is not None
    assert found.estimate.mean is None and found.estimate.quantiles[0].share == 0.5
    assert "Cliff's delta" in explanation(found)


def test_a_nominal_scale_has_total_variation(tmp_path: Path) -> None:
    same = compared(tmp_path / "same", {"a": [1.0] * 60 + [2.0] * 60, "b": [1.0, 2.0] * 60}, "nominal")
    assert same.effect is not None and same.effect.value == 0
    far = compared(tmp_path / "far", {"a": [1.0] * 20, "b": [1.0] * 2 + [2.0] * 18}, "nominal")
    assert far.effect is not None and far.effect.value == pytest.approx(0.9)
    assert (far.verdict, far.method) == (Verdict.DIFFERENT, "chi-square")
    assert far.estimate.mean is None and far.estimate.quantiles == () and far.spread is None


def test_rare_names_are_said(tmp_path: Path) -> None:
    result = compare.run(tables_of(tmp_path, {"a": [1.0] * 7 + [2.0], "b": [1.0] * 8}, "nominal"))
    assert Kind.FEW_COUNTS in kinds(result)
    assert result.comparisons[0].method == "exact"


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval", "ratio"])
@pytest.mark.parametrize(
    "samples",
    [
        {"a": [1.0], "b": [2.0]},
        {"a": [3.0, 3.0], "b": [3.0, 3.0]},
        {"a": [3.0, 3.0, 3.0, 3.0, 3.0], "b": [1.0, 2.0, 3.0, 4.0, 5.0]},
        {"a": [0.0, 0.0, 0.0], "b": [0.0, 0.0, 0.0]},
        {"a": [0.0, 1.0, 0.0, 2.0, 1.0, 0.0], "b": [2.0, 0.0, 0.0, 1.0, 3.0, 1.0]},
        {"a": [-1.0, 1.0, 2.0, -3.0, 0.5], "b": [1.0, -2.0, 3.0, 0.0, 1.5]},
        {"a": [1.0, None, 2.0], "b": [None, None, 2.0]},
        {"a": [1e-100, 2e-100, 1.5e-100, 1e-100, 3e-100], "b": [1e100, 2e100, 1.5e100, 1e100, 3e100]},
        {"a": [5.0] * 11 + [6.0], "b": [5.0] * 12},
        {"a": [1.0] * 10 + [1e6], "b": [1.0] * 9 + [2.0, 1e-6]},
    ],
)
def test_bad_samples_have_reasons_and_never_nan(
    tmp_path: Path, samples: Mapping[str, Sequence[float | None]], scale: str
) -> None:
    tables = tables_of(tmp_path, samples, scale, 1.0)
    result = compare.run(tables)
    [found] = result.comparisons
    assert explanation(found)
    for value in rows([found])[0].values():
        assert not isinstance(value, float) or math.isfinite(value), rows([found])
    if found.spread is not None and (found.spread.ratio is None or found.spread.interval is None):
        assert found.spread.reason
    for style in ("html", "markdown", "latex", "csv"):
        text = rendered(style, tables, result)
        assert "nan" not in text.lower().replace("nanoseconds", "").replace("nano", "").split(), style


def spread_study(
    folder: Path, deviations: Mapping[str, float], n: int, drift: Callable[[int], float] = lambda _: 1.0
) -> Comparisons:
    noise = random.Random(6)

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return {**RATES, "requests_per_second": 100 * drift(replicate) * math.exp(noise.gauss(0, deviations[testbed]))}

    write_study(folder, list(deviations), {"payload": ["1kB", "1MB"]}, n, respond)
    return compare.run(extract(folder, {"planted": planted}, {}))


def test_what_varies_more_is_said(tmp_path: Path) -> None:
    result = spread_study(tmp_path, {"steady": 0.01, "same": 0.01, "restless": 0.08}, 12)
    for each in of(result):
        assert each.spread is not None and each.spread.relative and each.spread.interval is not None
        assert each.spread.differs is (each.testbed == "restless")
        assert each.spread.family == 12 - 8
    said = {summary.testbed: summary.spread_sentence for summary in conclusions(result)}
    assert said == {"same": "", "restless": "restless varies more than steady in 2 of 6 headline comparisons."}


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ({"a": [1.0, 1.1, 0.9, 1.0], "b": [1.0, 1.3, 0.8, 1.1]}, "varies 2.5 times as much"),
        ({"a": [1.0, 1.0, 1.0], "b": [1.0, 1.3, 0.8]}, "the reference varies not at all"),
        ({"a": [1.0, 1.3, 0.8], "b": [1.0, 1.0, 1.0]}, "this varies not at all"),
        ({"a": [1.0, 1.0], "b": [1.0, 1.0]}, "neither varies"),
        ({"a": [1.0, 1.0 + 2**-52, 1.0], "b": [1.0, 1.0, 1.0 - 2**-53]}, "neither varies"),
    ],
)
def test_spreads_that_have_no_interval_say_why(tmp_path: Path, samples: Mapping[str, list[float]], said: str) -> None:
    found = compared(tmp_path, samples, "ratio")
    assert found.spread is not None and found.spread.reason and found.spread.p_value is None and not found.spread.differs
    assert varies(found.spread) == said


def test_zeros_and_negatives_compare_standard_deviations_as_they_are(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": [0.0, 1.0, 2.0, 3.0, 4.0], "b": [0.0, 2.0, 4.0, 6.0, 8.0]}, "ratio")
    assert found.spread is not None and not found.spread.relative
    assert found.spread.ratio == found.spread.deviation_ratio == pytest.approx(2.0)
    assert found.spread.variation_ratio == pytest.approx(1.0)


def test_medians_and_quantiles_are_given_where_there_are_enough_values(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": [float(x) for x in range(1, 31)], "b": [2.0 * x for x in range(1, 11)]}, "ratio")
    [median, p90, p95, _p99] = found.reference_estimate.quantiles
    assert median.interval is not None and (median.interval.low, median.interval.high) == (10, 21)
    assert p90.interval is not None and p90.interval.high == 30
    assert p95.interval is None and p95.needed == 59
    assert found.median_ratio == pytest.approx(11 / 15.5) and found.median_ratio_interval is not None
    row = rows([found])[0]
    assert (row["reference_p90_high"], row["reference_p95_low"], row["p90_low"]) == (30, None, None)


def test_the_bootstrap_is_used_where_values_are_skewed_and_many(tmp_path: Path) -> None:
    noise = random.Random(3)
    heavy = {name: [math.exp(noise.expovariate(0.7)) for _ in range(25)] for name in "ab"}
    skewed = compared(tmp_path / "heavy", heavy, "ratio")
    assert {caution.kind for caution in skewed.cautions} >= {Kind.SKEWED} and skewed.bootstrap_interval is not None
    usual = {name: [math.exp(noise.gauss(0, 0.1)) for _ in range(25)] for name in "ab"}
    assert compared(tmp_path / "usual", usual, "ratio").bootstrap_interval is None
    few = compared(tmp_path / "few", {"a": [1, 1.1, 0.9, 1, 1.05, 0.95, 9], "b": [1, 1.1, 0.9, 1, 1.05, 0.95, 1]}, "ratio")
    assert Kind.SKEWED in {caution.kind for caution in few.cautions} and few.bootstrap_interval is None


def test_a_drift_is_a_caution_with_its_size(tmp_path: Path) -> None:
    """1 % less each replicate, ten of them: 9 % less at the end, whatever blocks do for the verdicts."""
    result = spread_study(tmp_path, {"a": 0.005, "b": 0.005}, 10, lambda replicate: 0.99**replicate)
    drifts = [each for each in result.cautions if each.kind is Kind.DRIFT]
    assert [each.subject for each in drifts] == ["a", "b"]
    assert "requests_per_second falls by" in drifts[0].detail
    [ordering] = result.orderings
    assert [drift.change for drift in ordering.drifts] == pytest.approx([-0.09, -0.09], abs=0.01)
    assert Kind.BLOCK_EFFECT in kinds(result) and Kind.SERIAL not in kinds(result)
    assert all(Kind.DRIFT in {caution.kind for caution in each.cautions} for each in of(result))
    assert not any(Kind.DRIFT in {caution.kind for caution in each.cautions} for each in of(result, "packets_per_request"))


def test_a_bad_block_is_a_caution_that_names_it(tmp_path: Path) -> None:
    result = spread_study(tmp_path, {"a": 0.005, "b": 0.005}, 8, lambda replicate: 0.8 if replicate == 4 else 1.0)
    [caution] = [each for each in result.cautions if each.kind is Kind.BLOCK_EFFECT]
    assert "block 5 is" in caution.detail and "below" in caution.detail
    assert Kind.DRIFT not in kinds(result)


def test_runs_that_depend_on_the_run_before_are_a_caution(tmp_path: Path) -> None:
    """A saw with a tooth of some runs is no trend."""
    result = spread_study(
        tmp_path, {"a": 0.002, "b": 0.002}, 16, lambda replicate: 1 + 0.05 * math.sin(replicate * math.pi / 4)
    )
    assert Kind.SERIAL in kinds(result) and Kind.DRIFT not in kinds(result)


def test_numbers_of_replicates_are_no_blocks_where_cells_were_measured_one_after_the_other(tmp_path: Path) -> None:
    """As imports have them: replicate 5 of one cell may lie hours from replicate 5 of the next."""
    spread_study(tmp_path, {"a": 0.005, "b": 0.005}, 8, lambda replicate: 0.8 if replicate == 4 else 1.0)
    for file in tmp_path.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        cell = 2 * (record["levels"]["testbed"] == "b") + (record["levels"]["payload"] == "1MB")
        file.write_text(json.dumps(record | {"started_s": 1e9 + 3600 * cell + record["replicate"]}))
    result = compare.run(extract(tmp_path, {"planted": planted}, {}))
    assert Kind.BLOCK_EFFECT not in kinds(result)
    assert [each.p_blocks for each in result.orderings] == [None]


def test_a_drift_inside_cells_is_not_that_of_the_study(tmp_path: Path) -> None:
    """Each of four cells falls by 10 % over its ten runs and begins anew; taken for one slope it would be by 34 % over all."""
    spread_study(tmp_path, {"a": 0.002, "b": 0.002}, 10, lambda replicate: 0.9 ** (replicate / 9))
    for file in tmp_path.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        cell = 2 * (record["levels"]["testbed"] == "b") + (record["levels"]["payload"] == "1MB")
        file.write_text(json.dumps(record | {"started_s": 1e9 + 100 * cell + 10 * record["replicate"]}))
    result = compare.run(extract(tmp_path, {"planted": planted}, {}))
    [ordering] = result.orderings
    assert [(each.inside_cells, round(each.change, 2)) for each in ordering.drifts] == [(True, -0.1), (True, -0.1)]
    details = [each.detail for each in result.cautions if each.kind is Kind.DRIFT]
    assert len(details) == 2 and all("from the first to the last run of a cell" in each for each in details)


def test_a_drift_of_one_metric_is_not_lost_among_many(tmp_path: Path) -> None:
    """Every cell of five rises each time: by Kendall's exact test p = 2 / 120 a cell, less for two; no correction hides it."""
    result = spread_study(tmp_path, {"a": 0.002, "b": 0.002}, 5, lambda replicate: 1.16**replicate)
    details = [each.detail for each in result.cautions if each.kind is Kind.DRIFT]
    assert len(details) == 2 and all("rises by" in each and "by chance" in each for each in details)


def test_an_order_that_says_nothing_is_no_caution(tmp_path: Path) -> None:
    result = spread_study(tmp_path, {"a": 0.05, "b": 0.05}, 10)
    assert kinds(result) == set()
    [ordering] = result.orderings
    assert ordering.p_blocks is not None and len(ordering.residuals) == 40
    by_cell = sum(each.value for each in ordering.residuals if each.testbed == "a")
    assert by_cell == pytest.approx(0, abs=1e-9)


def test_a_setting_that_only_some_runs_have_is_residue_of_its_cell(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {"payload": ["1kB", "1MB"]}, 2, lambda *_: RATES)
    write_run(tmp_path, "b", {"testbed": "b", "payload": "1kB"}, 2, RATES, position=99, workload={"features": 2})
    result = compare.run(extract(tmp_path, {"planted": planted}, {}))
    [caution] = [each for each in result.cautions if each.kind is Kind.RESIDUE]
    assert (caution.subject, caution.detail) == ("b", "setting workload.features is 2, not there")
    hit = [each.cell["payload"] for each in of(result) if Kind.RESIDUE in {own.kind for own in each.cautions}]
    assert hit == ["1kB"]
    assert len(touching(Kind.RESIDUE, result, of(result))) == 1, (
        "one of both comparisons carries it, though it names their testbed"
    )


def test_the_command_shows_spread_order_and_the_rule_by_name(tmp_path: Path) -> None:
    spread_study(tmp_path, {"steady": 0.01, "restless": 0.10}, 10)
    run = CliRunner().invoke
    text = run(command, [str(tmp_path), "--all"], standalone_mode=False, obj=ResultsFolders()).output
    assert "Spread: how many times as much as steady it varies" in text
    words = " ".join(text.split())
    assert "Crussell et al. 2019" in words and "single runs or percentiles of requests per second: varies" in words
    assert max(map(len, text.splitlines())) <= 132
    data = json.loads(run(command, [str(tmp_path), "--format", "json"], standalone_mode=False, obj=ResultsFolders()).output)
    assert data["summary"][0]["spread"].startswith("restless varies more")
    assert {row["spread_differs"] for row in data["comparisons"] if row["metric"] == "requests_per_second"} == {True}
    assert [row["testbed"] for row in data["order"]] == ["steady", "restless"]
    table = list(
        csv.DictReader(
            io.StringIO(run(command, [str(tmp_path), "--format", "csv"], standalone_mode=False, obj=ResultsFolders()).output)
        )
    )
    assert float(table[0]["spread_ratio_low"]) > 1 and table[0]["within_rule"] in ("True", "False")


def test_the_report_has_tables_of_spread_and_order(tmp_path: Path) -> None:
    noise = random.Random(6)

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return {**RATES, "requests_per_second": 100 * math.exp(noise.gauss(0, 0.01 if testbed == "a" else 0.1))}

    write_study(tmp_path, ["a", "b"], {}, 10, respond)
    tables = extract(tmp_path, {"planted": planted}, {})
    result = compare.run(tables)
    page = rendered("html", tables, result)
    for text in ('id="spread"', 'id="order"', "times as much", "order of runs"):
        assert text in page
    assert "## Spread" in rendered("markdown", tables, result)
