"""The analyses of N: capacity, contention, anomaly, on planted results and printed data; their commands in every format."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.synthetic_results import write_study

from twinbed import registry
from twinbed.cli import exit as codes
from twinbed.cli.main import run
from twinbed.model.error import TwinbedError
from twinbed.report.contention_page import drawn as metrics_drawn
from twinbed.report.contention_page import page as contention_page
from twinbed.report.words import metric_name
from twinbed.store import Store

LOSS = Path(__file__).parents[1] / "golden" / "anova" / "loss.csv"
PAIRS = (1, 2, 4, 8, 16, 24, 32, 40)
SHARES = {"slow": (1, 1.08, 1.05, 1, 0.8, 0.6, 0.45, 0.35), "fast": (1, 1, 1, 1, 1, 1, 0.98, 0.7)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight replicates of two testbeds; the whole run's rate is of all pairs together."""
    noise = random.Random(11)

    def respond(testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        share = dict(zip(PAIRS, SHARES[testbed], strict=True))[levels["pairs"]]
        rate = 100 * share * math.exp(noise.gauss(0, 0.01))
        requests = round(rate * levels["pairs"] * 10)
        return {
            "requests": requests,
            "requests_per_second": rate * levels["pairs"],
            "packets": round(requests * (20 - rate / 10) * math.exp(noise.gauss(0, 0.001))),
            "bytes": requests * 1200,
        }

    folder = tmp_path_factory.mktemp("results") / "study"
    return write_study(folder, ["slow", "fast"], {"pairs": PAIRS}, 8, respond)


class WithMachine:
    """The results with metrics of the machine, as the instrument that reads it would add."""

    def __init__(self, store: Store, without: Sequence[str] = ()) -> None:
        """``without``: runs that it did not measure."""
        self._store = store
        noise = random.Random(12)
        rows = []
        for record in store.records:
            if record.id in without:
                continue
            pairs = record.levels["pairs"]
            assert isinstance(pairs, int)
            load = max(0.0, pairs - 6) / 34 if record.levels["testbed"] == "slow" else max(0.0, pairs - 28) / 34
            for metric, value in (("cpu_idle", 0.9 - 0.6 * load), ("interrupts", 5e3 + 9e4 * load), ("constant", 1.0)):
                spread = 0.0 if metric == "constant" else 0.01 * value
                rows.append((record.id, metric, "machine", "", value + noise.gauss(0, spread)))
        self._machine = pa.table(
            dict(zip(("run", "metric", "host", "direction", "value"), map(list, zip(*rows, strict=True)), strict=True))
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def table(self, name: str) -> pa.Table:
        found = self._store.table(name)
        if name != "metrics":
            return found
        added = self._machine
        for field in found.schema:
            if field.name not in added.column_names:
                kind = {"unit": "1", "scale": "ratio", "layer": "host", "headline": False}.get(field.name)
                added = added.append_column(field.name, pa.array([kind] * len(added), field.type))
        return pa.concat_tables([found, added.select(found.column_names).cast(found.schema)])


@pytest.fixture
def shown(capfdbinary):
    """Runs a command line: exit code, standard output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = run(["analyse", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return command


@pytest.fixture
def opened(results, shown):
    """The extracted results with the machine's metrics."""
    assert shown("capacity", results, "--at-least", "1")[0] == codes.DONE
    return WithMachine(Store.open(results))


def test_capacity_of_the_printed_losses(shown):
    code, out, _ = shown("capacity", LOSS, "--response", "loss", "--over", "receivers", "--at-most", "1")
    assert code == codes.DONE
    assert out.splitlines()[0] == (
        "loss at most 1: 5 receivers: more than 99.9 % sure; 6: no, 99.2 % sure (the mean there is 4.54, 2.1 to 6.99)"
    )


def test_capacity_of_planted_results_by_testbed(shown, results):
    arguments = ("--response", "requests_per_second", "--per-pair", "--at-least", "0.9", "--of-one")
    code, out, _ = shown("capacity", results, *arguments)
    assert code == codes.DONE
    slow, fast = out.splitlines()[:2]
    assert slow.startswith("testbed slow: requests_per_second per pair at least 90 % of that at 1 pair: 8 pairs: more than")
    assert "between them nothing is known" in slow and "; 16: no, " in slow
    assert ": 32 pairs: " in fast
    _, out, _ = shown("capacity", results, *arguments, "--format", "json")
    data = json.loads(out)
    assert [row["keeps"] for row in data["statements"]] == [8, 32]
    assert len(data["steps"]) == 16 and data["steps"][0]["n"] == 1
    _, out, _ = shown("capacity", results, *arguments, "--format", "csv", "--table", "steps")
    assert len(list(csv.DictReader(io.StringIO(out)))) == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what must hold?"),
        (("--at-most", "1", "--at-least", "1"), "what must hold?"),
        (("--at-most", "1", "--over", "testbed"), "whole numbers from 1 on"),
        (("--at-most", "1", "--over", "nothing"), "no column 'nothing'"),
    ],
)
def test_capacity_refuses(shown, results, arguments, message):
    code, _, err = shown("capacity", results, *arguments)
    assert code == codes.USAGE and message in err


RATE = ("--response", "requests_per_second")


def small(folder: Path, factors: Mapping[str, Any]) -> Path:
    """Six replicates of one testbed; a pair is slower by 1 % with each one more."""

    def respond(_testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        n = next(level for name, level in levels.items() if name != "testbed")
        rate = n * (100 - n) + 0.1 * replicate
        return {"requests": 1000, "requests_per_second": rate, "packets": 100, "bytes": 1000}

    return write_study(folder, ["bed"], factors, 6, respond)


@pytest.mark.parametrize("factor", ["pairs", "topology.pairs"])
@pytest.mark.parametrize("command", [("capacity", "--at-least", "1"), ("contention",), ("anomaly",)])
def test_the_number_of_pairs_is_found_by_its_short_and_its_full_name(shown, tmp_path, factor, command):
    results = small(tmp_path / "study", {factor: (1, 2, 4, 8)})
    name, *more = command
    code, out, err = shown(name, results, *RATE, *more, "--format", "json")
    assert (code, err) == (codes.DONE, "")
    tables = [table for table in json.loads(out).values() if isinstance(table, list)]
    found = {row["n"] for table in tables for row in table if row.get("n") is not None}
    assert found and found <= {1, 2, 4, 8}


@pytest.mark.parametrize("command", [("capacity", "--at-least", "1"), ("contention",), ("anomaly",)])
def test_where_no_number_of_pairs_varies_what_could_be_n_is_named(shown, tmp_path, command):
    results = small(tmp_path / "study", {"receivers": (1, 2, 3), "share": (0.5, 1), "offload": ("on", "off"), "flows": (3, 4)})
    name, *more = command
    code, _, err = shown(name, results, *RATE, *more)
    assert code == codes.USAGE
    assert f"twinbed: {results}: no number of pairs varies" in err
    assert "--over FACTOR; those that could be N: receivers, flows" in err


def test_one_run_at_an_n_is_left_out_and_refused_where_it_is_all_there_is(shown, tmp_path):
    file = tmp_path / "few.csv"
    asked = ("capacity", file, "--response", "rate", "--at-least", "4")
    file.write_text("pairs,rate\n1,5\n1,5.1\n2,5\n2,5.1\n4,5\n")
    code, out, _ = shown(*asked)
    assert code == codes.DONE and out.startswith("rate at least 4: at least 2 pairs: 98")
    assert "of more nothing is known\n" in out and "\nLeft out: 1 runs alone at their N.\n" in out
    file.write_text("pairs,rate\n1,5\n2,5\n")
    code, _, err = shown(*asked)
    assert code == codes.USAGE and "1 run at N = 1" in err
    file.write_text("pairs,rate\n1,5\n2,5\n2,6\n")
    code, _, err = shown(*asked[:-1], "0.9", "--of-one")
    assert code == codes.USAGE and "1 run at N = 1" in err


@pytest.mark.parametrize(
    ("command", "table", "why"),
    [
        (("capacity", "--per-pair", "--at-least", "0.9", "--of-one"), "statements", "no runs at N = 1, to which"),
        (("anomaly",), "faster", "no runs at N = 1, against which"),
        (("contention",), "detectors", "pairs has 2 levels: a curve that bends needs at least 4"),
    ],
)
def test_a_combination_that_nothing_can_be_said_of_costs_no_other(shown, results, tmp_path, command, table, why):
    """Of the fast testbed only runs at 2 and 4 pairs are left."""
    folder = tmp_path / "study"
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns("tables"))
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        if record["levels"]["testbed"] == "fast" and record["levels"]["pairs"] not in (2, 4):
            file.write_text(json.dumps({**record, "status": "failed", "failed_phase": "workload", "reason": "gone"}))
    name, *more = command
    code, out, _ = shown(name, folder, *RATE, *more, "--format", "json")
    assert code == codes.DONE
    found = json.loads(out)
    assert {row["testbed"] for row in found[table]} == {"slow"}
    [(reason, count)] = [each for each in found["left_out"].items() if each[0] != "failed runs"]
    assert reason.startswith(f"runs of testbed fast: {why}") and count == 16


def test_an_n_with_one_run_left_costs_no_mark_of_the_others(shown, tmp_path):
    folder = small(tmp_path / "study", {"pairs": (1, 2, 4)})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        if record["levels"]["pairs"] == 4 and record["replicate"]:
            file.write_text(json.dumps({**record, "status": "failed", "failed_phase": "workload", "reason": "gone"}))
    code, out, _ = shown("anomaly", folder, *RATE, "--format", "json")
    assert code == codes.DONE
    found = json.loads(out)
    assert [row["n"] for row in found["faster"]] == [2]
    assert found["left_out"] == {"failed runs": 5, "runs alone at their N": 1}


@pytest.mark.parametrize(
    ("rows", "bound", "message"),
    [
        ("1,5\n1,6\n1e400,3\n1e400,4\n", "4", "pairs has the level inf, expected whole numbers"),
        ("1,5\n1,6\n1.5,3\n1.5,4\n", "4", "pairs has the level 1.5, expected whole numbers"),
        ("", "4", "has no value of rate"),
        ("1,\n2,\n", "4", "left out: 2 rows without rate"),
        ("1,5\n1,6\n", "nan", "nan is no bound"),
        ("1,5\n1,6\n", "inf", "inf is no bound"),
        ("1,5\n1,6\n", "1e155", "the bound is of the size 1e+155"),
        ("1,5e160\n1,6e160\n", "4", "rate is of the size 6e+160"),
        ("1,5e-170\n1,6e-170\n", "4", "rate is of the size 6e-170"),
    ],
)
def test_capacity_of_a_file_that_says_nothing(shown, tmp_path, rows, bound, message):
    file = tmp_path / "few.csv"
    file.write_text(f"pairs,rate\n{rows}")
    for output in ((), ("-o", tmp_path / "few.html")):
        code, _, err = shown("capacity", file, "--response", "rate", "--at-least", bound, *output)
        assert code == codes.USAGE and message in err


def test_capacity_counts_the_rows_it_leaves_out(shown, tmp_path):
    file = tmp_path / "some.csv"
    file.write_text("pairs,rate\n1,5\n1,6\n2,\n4,5\n4,5.5\n")
    asked = ("capacity", file, "--response", "rate", "--at-least", "4")
    _, out, _ = shown(*asked)
    assert "\nLeft out: 1 rows without rate.\n" in out
    assert "! too few replicates" in out and "(2 at pairs 1)" in out
    _, out, _ = shown(*asked, "--format", "json")
    assert json.loads(out)["left_out"] == {"rows without rate": 1}
    shown(*asked, "-o", tmp_path / "some.html")
    assert "Left out: 1 rows without rate." in (tmp_path / "some.html").read_text()


@pytest.fixture
def half_failed(tmp_path: Path) -> Path:
    """Rates that stay; of six replicates two failed at 4 pairs, and all at 8."""
    folder = small(tmp_path / "study", {"pairs": (1, 2, 4, 8)})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        if record["levels"]["pairs"] == 8 or (record["levels"]["pairs"] == 4 and record["replicate"] < 2):
            record |= {"status": "failed", "failed_phase": "workload", "reason": "memory ran out"}
            file.write_text(json.dumps(record))
    return folder


@pytest.mark.parametrize("command", [("capacity", "--per-pair", "--at-least", "0.9", "--of-one"), ("anomaly",)])
def test_failed_runs_are_said_with_where_they_failed(shown, half_failed, command):
    name, *more = command
    code, out, _ = shown(name, half_failed, *RATE, *more)
    assert code == codes.DONE and "\nLeft out: 8 failed runs.\n" in out
    assert "(bed, 2 of 6 at pairs 4, 6 of 6 at pairs 8: workload: memory ran out)" in out
    assert "tested" not in out, "8 pairs were tested, and nothing is known of them"


def test_contention_without_metrics_of_the_machine_says_so(shown, results):
    code, out, _ = shown("contention", results, "--response", "requests_per_second")
    assert code == codes.DONE and "nothing was measured on the machine that varies" in out
    _, out, _ = shown("contention", results, "--response", "requests_per_second", "--format", "json")
    assert {row["metric"] for row in json.loads(out)["curves"]} == {"requests_per_second"}


def test_contention_of_planted_results(opened):
    contention = registry.analysis("contention")
    found = contention.run(opened, contention.params(response="requests_per_second"))
    curves = found.tables["curves"]
    assert {row["metric"] for row in curves} == {"requests_per_second", "cpu_idle", "interrupts"}
    assert {row["mirrored"] for row in curves if row["metric"] == "cpu_idle"} == {True}
    assert max(abs(row["curvature"]) for row in curves if row["curvature"] is not None) == 1
    slow, fast = found.tables["detectors"]
    assert slow["area"] >= 0.95 and slow["fallen_from"] == 16 and slow["alarms_from"] <= 16
    assert slow["before_runs"] is None, "from 8 to 16 pairs the rate goes from all to 80 %"
    alarms = [row for row in found.tables["alarms"] if row["testbed"] == "slow"]
    assert [row["n"] for row in alarms] == list(PAIRS) and {row["runs"] for row in alarms} == {4}
    assert alarms[0]["alarms"] == 0 and (alarms[-1]["share"], alarms[-1]["high"]) == (1, 1)
    assert alarms[-1]["low"] == pytest.approx(0.025 ** (1 / 4)), "the exact interval of 4 of 4"
    scores = [row for row in found.tables["scores"] if row["testbed"] == "slow"]
    assert len(scores) == 64 and sum(row["part"] == "test" for row in scores) == 32
    assert all(row["alarms"] == (row["score"] > slow["threshold"]) for row in scores)
    assert slow["false_alarms"] <= 0.15 and slow["reason"] == ""
    assert fast["area"] >= 0.95 and fast["fallen_from"] == 40
    assert found.tables["roc"][0]["threshold"] is None
    with pytest.raises(TwinbedError, match="constant"):
        contention.run(opened, contention.params(response="requests_per_second", metrics=("constant",)))


@pytest.mark.parametrize("rate", [lambda n: 1e6, lambda n: 1e6 - 12345.6 * n])
def test_a_rate_that_does_not_bend_has_no_turns(shown, tmp_path, rate):
    """Smoothing leaves the rounding of its sums, which scaled to 1 would look like bends."""

    def respond(_testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        pairs = levels["pairs"]
        return {"requests": 1000, "requests_per_second": pairs * rate(pairs), "packets": 100, "bytes": 1000}

    folder = write_study(tmp_path / "study", ["bed"], {"pairs": (1, 2, 4, 8, 16, 40, 80)}, 3, respond)
    _, out, _ = shown("contention", folder, *RATE, "--format", "json")
    found = json.loads(out)
    assert found["inflections"] == []
    assert {(row["curvature"], row["bent"]) for row in found["curves"]} == {(0.0, 0.0), (None, 0.0)}


def test_a_run_that_the_machine_was_not_measured_in_costs_itself_only(opened):
    store = Store.open(opened.path)
    absent = [record.id for record in store.records if record.levels["pairs"] == 2][:3]
    contention = registry.analysis("contention")
    found = contention.run(WithMachine(store, absent), contention.params(response="requests_per_second"))
    assert found.left_out == {"runs without metrics of the machine": 3}
    assert [row["area"] >= 0.95 for row in found.tables["detectors"]] == [True, True]
    assert {row["metric"] for row in found.tables["curves"]} == {"requests_per_second", "cpu_idle", "interrupts"}
    assert not {row["run"] for row in found.tables["scores"]} & set(absent)


def drawn(page: str) -> tuple[int, set[str]]:
    """The number of pictures, and what the marks say."""
    shown = page.split("<main>")[1].split("</main>")[0]
    assert not re.search(r"NaN|undefined|&lt;figure", shown)
    return shown.count("<figure>"), set(re.findall(r'aria-label="([^"]*)"', shown))


def test_contention_has_a_page(opened):
    contention = registry.analysis("contention")
    found = contention.analyse(opened, contention.params(response="requests_per_second"))
    page = contention_page(found)
    count, said = drawn(page)
    assert count == 2 * 4, "for each testbed: bends, scores, how early, ROC"
    first = found.groups[0]
    curves, turns = metrics_drawn(first)
    assert {curve.metric for curve in curves} == {"requests_per_second", "cpu_idle", "interrupts"}
    way = "rise" if turns[0].rises else "fall"
    name = metric_name(turns[0].metric) + (" (mirrored)" if turns[0].metric == "cpu_idle" else "")
    assert f"1. {name}: the slope begins to {way} at N = {turns[0].n:.3g}" in said
    assert "N = 16: 4 of 4 runs alarm" in said and "from 16 on the rate has fallen by 10 % or more" in said
    assert "the threshold: above it the detector alarms" in said
    assert any(each.startswith("its threshold: ") for each in said)
    assert sum(bool(re.match(r"N = \d+, replicate \d: ", each)) for each in said) > 40
    assert "Testbed slow: at no tested number" not in page
    assert "at no tested number has the rate lost 5 % to 10 %: it goes from" in page.lower()


def test_a_contention_page_without_a_detector_says_why(shown, results, tmp_path):
    page = tmp_path / "contention.html"
    assert shown("contention", results, "--response", "requests_per_second", "-o", page)[0] == codes.DONE
    count, said = drawn(page.read_text())
    assert count == 2 and "requests per second, N = 40: 0" in said
    assert "no detector of contended runs: nothing was measured on the machine that varies." in page.read_text()


def test_capacity_has_a_page(shown, results, tmp_path):
    page = tmp_path / "capacity.html"
    asked = ("--response", "requests_per_second", "--per-pair", "--at-least", "0.9", "--of-one")
    assert shown("capacity", results, *asked, "-o", page)[0] == codes.DONE
    count, said = drawn(page.read_text())
    assert count == 2
    assert {"the capacity is 8 to 15 pairs", "the capacity is 32 to 39 pairs"} <= said
    assert sum(each.startswith("N = 40: ") and each.endswith("(a run)") for each in said) > 8
    code, _, err = shown("anomaly", results, "--response", "requests_per_second", "-o", tmp_path / "anomaly.html")
    assert code == codes.USAGE and "no page" in err


def test_the_page_of_the_printed_losses_shades_five(shown, tmp_path):
    page = tmp_path / "loss.html"
    shown("capacity", LOSS, "--response", "loss", "--over", "receivers", "--at-most", "1", "-o", page)
    _, said = drawn(page.read_text())
    assert ">100.00 %<" not in page.read_text() and "&gt;99.99 %" in page.read_text()
    assert "the capacity is 5 receivers" in said and "N = 6: mean 4.545, 2.097 to 6.993, 5 runs" in said


def test_anomaly_of_planted_results(shown, results):
    code, out, _ = shown("anomaly", results, "--response", "requests_per_second", "--format", "json")
    assert code == codes.DONE
    data = json.loads(out)
    assert [(row["testbed"], row["n"]) for row in data["faster"] if row["faster"]] == [("slow", 2), ("slow", 4)]
    counters = {row["counter"]: row for row in data["counters"]}
    assert counters["packets_per_request"]["moves"] and counters["packets_per_request"]["spearman"] < -0.8
    assert {row["testbed"] for row in data["counters"]} == {"slow"}
    assert "requests_per_second" not in counters
    _, out, _ = shown("anomaly", results, "--response", "requests_per_second")
    assert "other metrics move with the rate up to there" in out


def test_anomaly_where_there_is_none(shown, tmp_path):
    noise = random.Random(3)

    def respond(_testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        rate = 100 * levels["pairs"] * math.exp(noise.gauss(0, 0.02))
        return {"requests": rate, "requests_per_second": rate, "packets": rate, "bytes": rate}

    folder = write_study(tmp_path / "study", ["only"], {"pairs": (1, 2, 4)}, 5, respond)
    code, out, _ = shown("anomaly", folder, "--response", "requests_per_second")
    assert code == codes.DONE and "Nowhere is a pair shown to be faster than alone." in out


@pytest.mark.parametrize("name", ["contention", "anomaly"])
def test_files_are_no_results(shown, name):
    code, _, err = shown(name, LOSS)
    assert code == codes.USAGE and "is no results folder" in err
