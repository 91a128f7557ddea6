"""`twinbed analyse multifidelity`: estimates from few dear runs and many cheap ones, and refusals that say why."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.multifidelity_results import STUDY, TRUE_MEAN, write

from twinbed.cli.main import run

MORE = "samples: {physical+virtio: 20, virtio: 230}"


def analysed(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> dict[str, object]:
    assert run(["analyse", "multifidelity", *map(str, arguments), "--format", "json"]) == 0
    return json.loads(capfdbinary.readouterr().out)


def of(result: dict[str, object], quantity: str) -> dict[str, object]:
    return next(row for row in result["estimates"] if row["quantity"] == quantity)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Results of a study whose virtual testbed has most draws."""
    return write(tmp_path_factory.mktemp("mixed") / "r", STUDY.replace("samples: 30", MORE).replace("seed: 6", "seed: 3"))


def test_results_give_the_planted_mean_with_a_narrower_interval(mixed, capfdbinary):
    result = analysed(capfdbinary, mixed, "--below", "900")
    mean = of(result, "mean")
    assert mean["mixed_in"] == "virtio"
    assert mean["low"] < TRUE_MEAN < mean["high"]
    assert mean["high"] - mean["low"] < 0.5 * (mean["alone_high"] - mean["alone_low"])
    below = of(result, "P(< 900)")
    assert below["low"] < math.log(900 / 300) / math.log(10) < below["high"]
    physical, virtio = result["testbeds"]
    assert (physical["draws"], virtio["draws"], virtio["shared"]) == (20, 250, 20)
    assert virtio["correlation"] > 0.95
    assert virtio["at_most_by_noise"] is None  # no draw was run twice
    assert (physical["seconds_a_run"], virtio["seconds_a_run"]) == (60, 3)
    # 20 x 60 s and 250 x 3 s were spent; the same time makes 32.5 runs on the physical testbed.
    alone = (mean["alone_high"] - mean["alone_low"]) / 2 / stats.t.ppf(0.975, 19)
    assert mean["variance_at_equal_time"] < 1
    least = ((mean["high"] - mean["low"]) / 2 / stats.t.ppf(0.975, 18) / alone) ** 2 * (1200 + 750) / 1200
    most = ((mean["high"] - mean["low"]) / 2 / 1.96 / alone) ** 2 * (1200 + 750) / 1200
    assert least <= mean["variance_at_equal_time"] <= most


def test_a_file_gives_the_regression_estimate(tmp_path, capfdbinary):
    """By scipy's line through the pairs, at the mean of all cheap values."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(60)
    y = 5 + 2 * x[:15] + 0.2 * rng.standard_normal(15)
    with (tmp_path / "runs.csv").open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["draw", "testbed", "rps"])
        rows.writerows([n, "virtio", value] for n, value in enumerate(x.tolist()))
        rows.writerows([n, "physical", value] for n, value in enumerate(y.tolist()))
    result = analysed(capfdbinary, tmp_path / "runs.csv", "--response", "rps", "--dear", "physical")
    line = stats.linregress(x[:15], y)
    assert of(result, "mean")["value"] == pytest.approx(line.intercept + line.slope * x.mean(), rel=1e-12)
    assert of(result, "mean")["variance_at_equal_time"] is None  # no run times
    alone = stats.t.interval(0.95, 14, y.mean(), stats.sem(y))
    assert (of(result, "mean")["alone_low"], of(result, "mean")["alone_high"]) == pytest.approx(alone)


def test_run_noise_is_why_nothing_is_mixed_in(tmp_path, capfdbinary):
    text = STUDY.replace("samples: 30", MORE).replace("uncertain:", "replicates: 2\nuncertain:")
    write(tmp_path / "r", text, noise=1.2)
    result = analysed(capfdbinary, tmp_path / "r")
    mean = of(result, "mean")
    assert mean["mixed_in"] is None
    assert "too little to narrow the interval; run noise caps the correlation of virtio at 0." in mean["because"]
    assert (mean["low"], mean["high"]) == (mean["alone_low"], mean["alone_high"])
    assert result["testbeds"][1]["at_most_by_noise"] < 0.7


def test_only_shared_draws_correlate(tmp_path, capfdbinary):
    write(tmp_path / "r", STUDY.replace("samples: 30", "samples: {physical: 20, virtio: 200}"))
    result = analysed(capfdbinary, tmp_path / "r")
    assert of(result, "mean")["because"].startswith("virtio shares 0 draws with physical, fewer than 5: only shared draws")


def test_few_pairs_are_a_caution(tmp_path, capfdbinary):
    write(tmp_path / "r", STUDY.replace("samples: 30", "samples: {physical+virtio: 6, virtio: 100}"))
    result = analysed(capfdbinary, tmp_path / "r")
    assert of(result, "mean")["mixed_in"] == "virtio"
    assert any(each["detail"] == "6 shared draws, 10 are needed" for each in result["cautions"])


def test_each_level_of_a_factor_is_by_itself(tmp_path, capfdbinary):
    write(tmp_path / "r", STUDY.replace("samples: 30", MORE).replace("uncertain:", "factors: {seconds: [0s, 1s]}\nuncertain:"))
    result = analysed(capfdbinary, tmp_path / "r")
    assert [row["seconds"] for row in result["estimates"] if row["quantity"] == "mean"] == ["0s", "1s"]


def test_results_without_uncertain_inputs_are_refused(tmp_path, capfdbinary):
    write(tmp_path / "r")
    document = json.loads((tmp_path / "r" / "study.json").read_text())
    (tmp_path / "r" / "study.json").write_text(json.dumps({**document, "uncertain": None}))
    assert run(["analyse", "multifidelity", str(tmp_path / "r")]) == 2
    assert "has no uncertain inputs" in capfdbinary.readouterr().err.decode()


def test_the_report_has_a_section(mixed, tmp_path, capfdbinary):
    assert run(["report", str(mixed), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert '<section id="uncertain" ' in page and "<h2>Over uncertain inputs</h2>" in page
    capfdbinary.readouterr()
    result = analysed(capfdbinary, mixed)
    mean = of(result, "mean")
    assert run(["report", str(mixed), "--markdown", "-o", str(tmp_path / "r.md")]) == 0
    (row,) = (line for line in (tmp_path / "r.md").read_text().splitlines() if line.startswith("| mean | virtio |"))
    value, interval = row.replace("\\", "").split(" | ")[2:4]
    low, high = interval.strip("[]").split(", ")
    numbers = tuple(float(each.replace(",", "")) for each in (value, low, high))
    assert numbers == pytest.approx((mean["value"], mean["low"], mean["high"]), abs=0.6)
    write(tmp_path / "other")
    document = json.loads((tmp_path / "other" / "study.json").read_text())
    (tmp_path / "other" / "study.json").write_text(json.dumps({**document, "uncertain": None}))
    assert run(["report", str(tmp_path / "other"), "-o", str(tmp_path / "other.html")]) == 0
    assert "Over uncertain inputs" not in (tmp_path / "other.html").read_text()


def test_a_relation_that_bends_is_not_mixed(tmp_path, capfdbinary):
    """A cheap testbed that answers with the square of the rate: its line through ten draws misses the mean."""
    text = STUDY.replace("samples: 30", "samples: {physical+virtio: 10, virtio: 100}").replace("seed: 6", "seed: 7")
    write(tmp_path / "r", text, power=2.0)
    mean = of(analysed(capfdbinary, tmp_path / "r"), "mean")
    assert mean["mixed_in"] is None or mean["mixed_in"] == ""
    assert (mean["low"], mean["high"]) == (mean["alone_low"], mean["alone_high"])
    run(["analyse", "multifidelity", str(tmp_path / "r")])
    assert "physical is not linear in virtio" in capfdbinary.readouterr().out.decode()


def test_the_chance_of_a_line_is_that_of_fishers_test() -> None:
    """By sums of squares of numpy's polynomials; the smaller of both directions counts double."""
    from twinbed.statistics.multifidelity.decision import line_chance

    rng = np.random.default_rng(5)
    x = rng.standard_normal(12)
    y = x + 0.2 * x**2 + 0.3 * rng.standard_normal(12)
    chances = []
    for one, other in ((x, y), (y, x)):
        line, square = (np.sum((other - np.polyval(np.polyfit(one, other, most), one)) ** 2) for most in (1, 2))
        chances.append(float(stats.f.sf((line - square) / (square / 9), 1, 9)))
    assert line_chance(np.column_stack([y, x]), 1) == pytest.approx(2 * min(chances), rel=1e-6)
