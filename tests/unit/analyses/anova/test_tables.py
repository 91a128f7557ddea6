"""Figures and tables of an analysis of variance: what a figure is drawn from, and numbers as texts."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.simulated.worlds import drawn
from scipy.special import ndtri

from twinbed.analyses.anova.method import AnovaParams
from twinbed.analyses.anova.method import analysis as anova
from twinbed.analyses.anova.result import Anova
from twinbed.analyses.anova.words import section
from twinbed.model.caution import Kind
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar, Point
from twinbed.observations.source import frame_of_file
from twinbed.render import plots
from twinbed.render.sections import body
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import bounds, figure, fixed, percent, probability
from twinbed.statistics.assumptions import Residual

GOLDEN = Path(__file__).parents[3] / "golden" / "anova"


def analysed(name: str, formula: str, **params: object) -> Anova:
    asked = AnovaParams(formula=formula, **params)
    return anova.run(frame_of_file(GOLDEN / f"{name}.csv", *anova.columns(asked)), asked)


def values(spec: dict, layer: int) -> list[dict]:
    return spec["vconcat"][0]["layer"][layer]["data"]["values"]


def test_residuals_lie_at_their_predictions_and_quantiles():
    result = analysed("loss", "loss ~ receivers")
    scatter = values(diagnostics.residuals(result.residuals, ""), 1)
    assert len(scatter) == 50 and {round(row["x"], 4) for row in scatter} == {
        round(mean, 4) for mean in (0, 0.0076, 0.007, 0.1532, 4.545, 26.3714, 49.55, 63.2888, 74.88)
    }
    quantiles = [row["x"] for row in values(diagnostics.normal_quantiles(result.residuals, ""), 1)]
    # R: qnorm(ppoints(50)).
    assert quantiles == pytest.approx([ndtri((at - 0.5) / 50) for at in range(1, 51)])


def test_of_many_residuals_evenly_many_are_drawn_and_the_extremes_always():
    rows = [Residual(0.0, float(at), float(at)) for at in np.random.default_rng(1).permutation(10_000)]
    kept = diagnostics.thinned(rows)
    assert len(kept) == diagnostics.MOST_POINTS
    assert {kept[0].residual, kept[-1].residual} == {0.0, 9999.0}


def test_an_interval_that_excludes_no_effect_is_coloured():
    bars = [Bar("far", 3.0, 2.0, 4.0, 1.0, 5.0), Bar("near", 1.0, 0.5, 1.5, -0.5, 2.5), Bar("none", 0.0, None, None)]
    spec = diagnostics.intervals(bars, "difference", 0.0)
    rows = values(spec, 3)
    assert [row["away"] for row in rows] == [True, False, False] and "low" not in rows[2]
    low, high = spec["vconcat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < -0.5 and high > 5
    ratio = diagnostics.intervals([Bar("r", 0.5, 0.4, 0.6)], "ratio", 1.0)["vconcat"][0]["layer"][0]
    assert ratio["encoding"]["x"]["scale"]["type"] == "log"


@pytest.mark.parametrize(("low", "high"), [(880.0, 905.0), (930.0, 942.0), (941.12, 941.15), (0.5, 0.9), (3.0, 40.0)])
def test_a_logarithmic_axis_has_numbers_across_its_range(low, high):
    drawn = plots.svg(diagnostics.interaction([Point("s", "a", low), Point("s", "b", high)], "x", "y", True), "interaction")
    labels = [float(text) for text in re.findall(r">([\d.]+)</text>", drawn)]
    middle = (low * high) ** 0.5
    assert len(set(labels)) == len(labels) >= 3 and min(labels) < middle < max(labels), drawn
    effects = diagnostics.intervals([Bar("one", (low * high) ** 0.5 / low, 1.0, high / low)], "ratio", 1.0)
    assert len(re.findall(r">[\d.]+</text>", plots.svg(effects, "effects"))) >= 3


@pytest.mark.parametrize("logarithmic", [False, True])
def test_names_of_lines_that_end_together_do_not_overlap(logarithmic):
    points = [Point(name, at, value) for name in ("one", "two", "three") for at, value in (("a", 1.0), ("b", 100.0))]
    spec = diagnostics.interaction(points, "x", "y", logarithmic)
    drawn = plots.svg(spec, "interaction")
    heights = {
        name: float(result[1])
        for name in ("one", "two", "three")
        if (result := re.search(rf'<text[^>]* y="([-\d.]+)"[^>]*>{name}<', drawn))
    }
    assert len(heights) == 3
    ordered = sorted(heights.values())
    assert min(two - one for one, two in itertools.pairwise(ordered)) > 12


def test_sections_of_a_page_follow_dark_mode_and_have_every_figure():
    text = str(body(section(analysed("signs", "log(y) ~ a * b * c"))))
    # Three effects, three interactions, three differences, residuals, Q-Q.
    assert text.count("<figure>") == 11 and "var(--ink)" in text and "#010101" not in text
    assert "2^3 x 3 factorial design" in text and "geometric mean" in text


def test_numbers_as_texts():
    assert [fixed(64049.00641), fixed(129.904184), fixed(0.0), fixed(None)] == ["64049.0", "129.904", "0", None]
    assert [figure(1234567.0), figure(0.00001234), figure(53.0)] == ["1.235e+06", "1.234e-05", "53"]
    assert [bounds(2.0879, 6.6957), bounds(-1e-9, 1e-9), bounds(None, 1.0)] == ["[2.09, 6.70]", "[-1e-09, 1e-09]", "–"]
    assert [probability(0.00003), probability(0.0123), percent(0.00001), percent(0.0), percent(0.99676)] == [
        "<0.0001",
        "0.0123",
        "<0.01 %",
        "0.00 %",
        "99.68 %",
    ]


def test_a_table_in_latex_has_minus_signs_and_keeps_hyphens_of_names():
    table = Tabular("T", "", ("name", "value"), (("virtio-net-pci", "[-1.5, -0.2]"), ("x-1", "-3")))
    text = table.as_latex("tab")
    assert "virtio-net-pci & [$-$1.5, $-$0.2] \\\\" in text and "x-1 & $-$3 \\\\" in text


def test_testbeds_one_after_the_other_get_a_caution():
    def kinds(apart_s: float | None) -> list[Kind]:
        return [each.kind for each in anova.run(drawn(np.random.default_rng(1), 5, apart_s=apart_s)).cautions]

    assert kinds(None) == [], "runs that take turns"
    assert kinds(0.0) == kinds(1e7) == [Kind.SUCCESSION]
