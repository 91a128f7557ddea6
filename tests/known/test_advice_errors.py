"""Rules of thumb are wrong as rarely as is stated, of studies whose truth is planted; benchmarks/advice.py has more of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from benchmarks.simulated.ruled import EDGE, PAYLOADS, World, counts, is_wrong, study
from scipy.stats import binom

import draws
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.result import Verdict
from twinbed.model.run import Level
from twinbed.report.advice.analysis import advise
from twinbed.report.advice.study import Settings

STUDIES = draws.studies(12, 100)
pytestmark = pytest.mark.soak
FACTORS: Mapping[str, list[Level]] = {"payload": [*PAYLOADS]}


def at_the_margin(testbed: str, levels: Mapping[str, Level]) -> float:
    """As far apart as it may be: where both kinds of wrong verdicts are most frequent."""
    return {"physical": 1.0, "virtio": EDGE, "e1000": 1 / EDGE}[testbed]


def test_at_the_margin_few_studies_give_any_wrong_rule() -> None:
    """Every rule would be one. What `compare` says cell by cell is wrong in many of these studies, as it promises no more."""
    wrong = by_cell = 0
    most = binom.ppf(1 - 1e-6 if draws.SOAKING else 0.999, STUDIES, 0.05)
    for seed in range(draws.SEED, draws.SEED + STUDIES):
        tables = study(at_the_margin, 6, seed, factors=FACTORS)
        wrong += any(is_wrong(rule, at_the_margin) for rule in advise([tables], Settings()).rules)
        if by_cell <= most:  # once it is above, no further study makes it less
            by_cell += any(each.verdict is not Verdict.INCONCLUSIVE for each in compare.run(tables).comparisons)
    assert wrong <= most
    assert by_cell > most


def test_of_equal_testbeds_nothing_is_called_different() -> None:
    found = counts(World("A/A", lambda testbed, levels: 1.0), 5, 10, 1)
    assert found.wrong == 0 and found.rules > 0
