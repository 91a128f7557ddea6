"""`twinbed plan STUDY --multifidelity PILOT`: how many draws on which testbed."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.multifidelity_results import STUDY, write

from twinbed.cli.main import run
from twinbed.design.mixing import best, plans
from twinbed.statistics.multifidelity.allocation import Method, blue_variances


@pytest.fixture
def planned(tmp_path, capfdbinary):
    def plan(text=STUDY, *more, pilot=STUDY, **planted):
        write(tmp_path / "pilot", pilot, **planted)
        (tmp_path / "mix.yaml").write_text(text)
        code = run(["plan", str(tmp_path / "mix.yaml"), "--multifidelity", str(tmp_path / "pilot"), *more])
        captured = capfdbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return plan


def test_a_plan_is_within_the_time_and_can_be_run(planned, tmp_path):
    code, out, _ = planned()
    assert code == 0
    samples = re.search(r"samples: (\{.*\})", out)[1]
    assert "seed: 7" in out  # not the pilot's draws
    physical, virtio = map(int, re.fullmatch(r"\{physical\+virtio: (\d+), virtio: (\d+)\}", samples).groups())
    # 30 draws on both take 30 x 63 s.
    assert physical * 63 + virtio * 3 <= 30 * 63
    assert physical >= 10
    other = STUDY.replace("samples: 30", f"samples: {samples}").replace("seed: 6", "seed: 7")
    (tmp_path / "next.yaml").write_text(other)
    assert run(["plan", str(tmp_path / "next.yaml")]) == 0


def test_the_figures_are_those_of_the_closed_form(planned):
    _, out, _ = planned(STUDY, "--format", "json")
    told = json.loads(out)["multifidelity"]
    virtio = told["testbeds"][1]
    rho, w = virtio["correlation"], 20.0
    assert virtio["needed"] == pytest.approx(2 * np.sqrt(w) / (1 + w))
    mfmc = next(row for row in told["plans"] if row["method"] == "MFMC")
    assert mfmc["recommended"]
    n = mfmc["draws:physical"]
    # Of whole draws, at least 10 of the dear one, with weights that are estimated: no less than the optimum, and near it.
    optimum = (np.sqrt(1 - rho**2) + rho / np.sqrt(w)) ** 2
    assert optimum < mfmc["variance_over_plain"] < optimum * (n - 2) / (n - 3) * 1.25
    assert told["samples"] == {"physical+virtio": n, "virtio": mfmc["draws:virtio"] - n}


def test_noise_is_said_where_mixing_does_not_pay(planned):
    noisy = STUDY.replace("uncertain:", "replicates: 2\nuncertain:")
    code, out, _ = planned(STUDY, pilot=noisy, noise=1.2)
    assert code == 0
    assert "Mixing does not pay: virtio correlates by " in out
    assert "run noise limits the correlation of virtio to 0." in out
    assert "samples:" not in out


def test_a_cheap_testbed_that_is_no_cheaper_does_not_pay(planned):
    _, out, _ = planned(seconds={"physical": 3.0, "virtio": 4.0})
    assert "Mixing does not pay: a run on virtio takes 1.3 times as long as on physical." in out


def test_a_pilot_needs_shared_draws(planned):
    code, _, err = planned(pilot=STUDY.replace("samples: 30", "samples: {physical: 30, virtio: 30}"))
    assert code == 2
    assert "0 draws were run on all of physical, virtio" in err


def test_several_outputs_are_planned_by_the_worst_and_in_whole_draws():
    good, bad = (np.array([[1, rho], [rho, 1]]) for rho in (0.99, 0.6))
    covariances, costs = np.asarray([good, bad]), np.array([50.0, 1.0])
    found = plans(covariances, costs, 5000.0)
    assert found[0].method is Method.MONTE_CARLO
    for plan in found[1:]:
        cost = sum(count * sum(costs[model] for model in group) for group, count in plan.samples.items())
        assert cost <= 5000
        n = plan.draws(0)
        expected = blue_variances(covariances, plan.samples) * cost / costs[0] * (n - 2) / (n - 3)
        assert plan.relative == pytest.approx(tuple(expected))
    assert best(found).worst <= min(each.worst for each in found) * 1.05
    # Alone the first would take far fewer dear draws.
    alone = best(plans(good[np.newaxis], costs, 5000.0))
    assert alone.draws(0) < 0.6 * best(found).draws(0)
