"""docs/coverage.md, anomalies, in small: one planted metric of 188 is found, and what is named beside it is rarely false."""

from __future__ import annotations

import pytest
from benchmarks.coverage import read_pages, tables
from benchmarks.simulated.anomaly import HEADS, METRICS, NAME, PLANTED, Anomaly, outcome

import draws
from twinbed.statistics.anomaly import moving

STUDIES = draws.studies(12, 100)
pytestmark = pytest.mark.soak


def test_one_planted_of_188_is_found_before_all_others() -> None:
    planted = Anomaly("planted", 10, 0.8)
    assert len(planted.study(0)[1]) == METRICS
    of = outcome(planted, STUDIES, draws.SEED)
    # The page's 99 %, less what so few studies leave open.
    least = 0.99 - draws.room(0.99, STUDIES)
    assert of.found >= least and of.first >= least
    assert of.false <= 0.05 + 0.05


def test_where_nothing_is_planted_few_studies_name_any() -> None:
    assert outcome(Anomaly("none", 5, None), STUDIES, draws.SEED).any_false <= 0.05 + draws.room(0.05, STUDIES)


def test_what_correlates_with_the_rate_as_it_is_would_have_been_named() -> None:
    """Counts that go with the time of each pair, divided by the work, are the inverse of the rate but for their noise."""
    runs, metrics = Anomaly("none", 10, None).study(1)
    rows = {row.metric: row for row in moving(runs, metrics)}
    of_pairs = [row for name, row in rows.items() if name.startswith("pairs ")]
    close = [row for row in of_pairs if row.per_work is not None and row.per_work.p_value < 0.001]
    assert len(close) > len(of_pairs) / 2 and not any(row.moves for row in of_pairs)
    assert NAME not in rows


def test_the_page_keeps_what_it_promises() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in tables(read_pages())["anomaly"].splitlines()]
    assert rows[0] == list(HEADS) and [row[0] for row in rows[2:]] == [planted.name for planted in PLANTED]
    for planted, row in zip(PLANTED, rows[2:], strict=True):
        assert float(row[5]) <= 5, row
        if planted.correlation == 0.8 and planted.direction > 0:
            assert float(row[3]) >= 95, row
