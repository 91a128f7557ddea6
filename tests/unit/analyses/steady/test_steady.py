"""The analysis ``steady``: warm-up, drift and spread inside runs, from captures or from iperf3's intervals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.simulated.little import InMemory, record
from tests.commanded import printed

from twinbed.analyses.steady.method import SteadyParams
from twinbed.analyses.steady.method import analysis as steady
from twinbed.analyses.steady.result import Steady
from twinbed.analyses.steady.words import sentence
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.model.tables import Outline
from twinbed.render.sections import body, lines

Pace = Callable[[np.ndarray], np.ndarray]
"""Share of a run that has passed -> rate, as a share of the usual one."""
SECONDS, RATE = 10.0, 400


def level(at: np.ndarray) -> np.ndarray:
    return np.ones_like(at)


def warming(at: np.ndarray) -> np.ndarray:
    """Half as fast for the first fifth."""
    return np.where(at < 0.2, 0.5, 1.0)


def falling(at: np.ndarray) -> np.ndarray:
    """From 1.3 to 0.7."""
    return 1.3 - 0.6 * at


def study(paces: dict[str, Pace], runs: int = 5, between: float = 0.02) -> InMemory:
    """Answers of a Poisson process with each testbed's pace; runs differ by ``between``."""
    noise = np.random.default_rng(4)
    records, run, start = [], list[str](), list[int]()
    for replicate in range(runs):
        for testbed, pace in paces.items():
            one = record(testbed, replicate, len(records), {"testbed": testbed})
            records.append(replace(one, phases={"up": 20.0, "workload": SECONDS}))
            at = np.linspace(0, 1, 1000, endpoint=False)
            expected = RATE * SECONDS / 1000 * pace(at) * np.exp(noise.normal(0, between))
            for part, count in zip(at, noise.poisson(expected), strict=True):
                begun = np.sort((part + noise.random(count) / 1000) * SECONDS * 1e9)
                run += [one.id] * count
                start += (1_700_000_000_000_000_000 + begun.astype(np.int64)).tolist()
    columns = {"run": run, "link": ["client"] * len(run), "start_ns": start, "duration_s": [0.001] * len(run)}
    return InMemory({"exchanges": pa.table(columns)}, Outline("s", tuple(paces), next(iter(paces))), records)


def of(paces: dict[str, Pace], **about: Any) -> dict[str, Steady]:
    return {each.testbed: each for each in steady.run(study(paces, **about)).cells}


def test_steady_runs_are_left_alone() -> None:
    found = of({"real": level, "virtual": level})
    for each in found.values():
        assert each.settles is not False and not each.warm_up.shown
        assert (each.runs, len(each.series)) == (5, 100)
        assert each.seconds == pytest.approx(SECONDS, rel=0.01) and each.overhead_s == 20.0


def test_what_settles_hangs_on_the_margin() -> None:
    """Where a margin is small against what chance does, nothing is decided."""
    tables = study({"real": level})
    assert all(each.settles is None for each in steady.run(tables, SteadyParams(margin=0.001)).cells)
    assert all(each.settles for each in steady.run(tables, SteadyParams(margin=0.5)).cells)


def test_a_warm_up_is_cut_off_and_its_effect_shown() -> None:
    """Half of the rate for a fifth of the time makes the mean 0.9: without it, it is 1/0.9 - 1 = 11 % more."""
    each = of({"real": level, "virtual": warming})["virtual"]
    assert 0.2 <= each.cut <= 0.5 and each.warm_up.shown and each.settles is not False
    assert each.warm_up.mean == pytest.approx(1 / 0.9 - 1, abs=0.02)


def test_runs_that_never_settle_are_cautioned() -> None:
    """From 1.0 to 0.7 in the second half, whose median is 0.85: -35 %."""
    result = steady.run(study({"real": level, "virtual": falling}))
    each = next(each for each in result.cells if each.testbed == "virtual")
    assert each.settles is False and each.drift.mean == pytest.approx(-0.3 / 0.85, abs=0.05)
    [caution] = result.cautions
    assert (caution.kind, caution.subject) == (Kind.UNSETTLED, "virtual")
    assert "falls by 3" in caution.detail and "Runs never settle in 1 of 2 cells" in sentence(result)


def test_the_spread_of_runs_is_split() -> None:
    """4,000 answers of a Poisson process have a mean known to 1/sqrt(4000) = 1.6 %; runs differ by 10 % besides."""
    each = of({"real": level}, runs=40, between=0.1)["real"]
    budget = each.budget
    assert budget is not None and budget.within == pytest.approx(1 / np.sqrt(4000), rel=0.15)
    assert budget.between == pytest.approx(0.1, rel=0.25) and budget.deviation > budget.between
    # sqrt(20 x 10) x 0.016 / 0.1 is less than half of 10 s, of which 144 fit into an hour with 20 s each besides.
    assert budget.best_seconds == pytest.approx(np.sqrt(200) / np.sqrt(4000) / 0.1, rel=0.3)
    assert (budget.seconds, budget.runs_an_hour) == (pytest.approx(5.0, rel=0.01), 144)
    assert budget.error_in_an_hour == pytest.approx(0.1 / np.sqrt(144), rel=0.3)


def test_one_run_has_no_tests() -> None:
    each = of({"real": warming}, runs=1)["real"]
    assert (each.budget, each.warm_up.interval, each.warm_up.shown, each.settles) == (None, None, False, None)


def test_one_run_that_drifts_among_steady_ones_is_named() -> None:
    tables = study({"real": level, "virtual": level}, runs=6)
    late = study({"real": falling}, runs=1).table("exchanges")
    exchanges = tables.table("exchanges")
    kept = exchanges.filter(pc.not_equal(exchanges["run"], "virtual3"))
    late = late.set_column(0, "run", pa.array(["virtual3"] * late.num_rows))
    result = steady.run(replace(tables, tables={"exchanges": pa.concat_tables([kept, late])}))
    real, virtual = result.cells
    assert real.astray is None and virtual.astray is not None
    assert (virtual.astray.run, virtual.settles) == ("virtual3", None)
    assert virtual.astray.drift == pytest.approx(-0.3 / 0.85, abs=0.06)
    [caution] = result.cautions
    assert (caution.kind, caution.subject) == (Kind.UNSETTLED, "virtual")
    assert "in the second half of one run" in caution.detail
    assert "one run drifts unlike the others in 1 of 2 cells" in sentence(result).lower()
    assert "cannot tell, one not" in "\n".join(lines(steady.section(result)))


def test_runs_of_few_answers_are_left_out_and_counted() -> None:
    tables = study({"real": level, "virtual": level}, runs=2)
    exchanges = tables.table("exchanges")
    kept = [index for index, run in enumerate(exchanges["run"].to_pylist()) if run != "virtual1" or index % 100 == 0]
    result = steady.run(replace(tables, tables={"exchanges": exchanges.take(kept)}))
    assert result.left_out == {"runs whose series has fewer than 40 values": 1}
    with pytest.raises(TwinbedError, match="no rate over time inside its runs"):
        steady.run(replace(tables, tables={}))
    assert steady.sections(replace(tables, tables={})) == ()


def test_intervals_of_iperf3_are_a_series_of_all_clients() -> None:
    """Two clients of 1 and 2 MB in each second are 24 Mbit/s; the first ten seconds have half."""
    noise, records, rows = np.random.default_rng(5), [], []
    for replicate in range(4):
        one = record("real", replicate, replicate, {"testbed": "real"})
        records.append(one)
        for second in range(60):
            for client, size in (("client1", 1e6), ("client2", 2e6)):
                done = int(size * (0.5 if second < 10 else 1.0) * noise.normal(1, 0.02))
                row = {"run": one.id, "host": client, "start_s": second + 0.0001, "seconds": 1.0, "bytes": done}
                rows += [{**row, "end": end} for end in ("client", "server")]
    tables = InMemory({"intervals": pa.Table.from_pylist(rows)}, Outline("s", ("real",), "real"), records)
    [each] = steady.run(tables).cells
    assert (len(each.series), each.seconds, each.warm_up.shown) == (60, pytest.approx(60.0), True)
    assert each.cut == pytest.approx(10 / 60, abs=0.1)
    assert each.warm_up.mean == pytest.approx(1 / (1 - 0.5 * 10 / 60) - 1, abs=0.01)


def test_the_command_prints_every_form(tmp_path: Path) -> None:
    tables = study({"real": level, "virtual": warming})
    assert "warm-up moves the mean in 1 of 2 cells, most on virtual" in printed(steady, tables)
    cells = json.loads(printed(steady, tables, "--format", "json"))["cells"]
    assert [row["warm_up_shown"] for row in cells] == [False, True]
    assert printed(steady, tables, "--format", "csv", "--table", "series").count("\n") == 201
    printed(steady, tables, "-o", str(tmp_path / "steady.html"))
    drawn = (tmp_path / "steady.html").read_text()
    assert drawn.count("<svg ") == 1 and "warm-up: 2" in drawn
    with pytest.raises(TwinbedError, match="a share between 0 and 1"):
        printed(steady, tables, "--margin", "lots")


def test_a_page_says_what_never_settles() -> None:
    result = steady.run(study({"real": level, "virtual": falling}))
    text = body(steady.section(result))
    assert "virtual: never settles" in text and "real: never settles" not in text
