"""docs/notebook.ipynb is executed as it is, by a kernel of Jupyter's; its outputs are held against the API and the raw runs."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import twinbed as tb
from twinbed.api.result import VEGA_LITE

pytestmark = pytest.mark.timeout(1500)
"""The kernel and the study are started once; a busy machine takes its time."""
NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """The notebook with its outputs, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("notebook")
    command = folder / "bin" / "twinbed"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m twinbed.cli.main "$@"\n')
    command.chmod(0o755)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name.lower()))
        patch.chdir(folder)
        NotebookClient(
            notebook, timeout=None, startup_timeout=900, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
    return notebook, folder


def shown(notebook: Any, ending: str) -> dict[str, Any]:
    """What the cell whose last line is this gave."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.splitlines()[-1] == ending)
    (output,) = (output for output in cell.outputs if output.output_type == "execute_result")
    data: dict[str, Any] = output.data
    return data


def raw(folder: Path) -> dict[tuple[str, int], list[float]]:
    """(testbed, rate asked for) -> the rates that the runs' own files have."""
    rates: dict[tuple[str, int], list[float]] = {}
    for run in (folder / "notebook-results" / "runs").iterdir():
        levels = json.loads((run / "run.json").read_text())["levels"]
        (answer,) = run.glob("artifacts/*/planted.json")
        key = levels["testbed"], levels["workload.rate"]
        rates.setdefault(key, []).append(json.loads(answer.read_text())["requests_per_second"])
    return rates


def test_every_cell_runs(executed: tuple[Any, Path]) -> None:
    notebook, folder = executed
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert all(output.output_type == "stream" for output in cells[0].outputs), "only the command says something there"
    assert {key: len(values) for key, values in raw(folder).items()} == {
        (testbed, rate): 6 for testbed in ("physical", "virtio") for rate in (1000, 2000)
    }


def test_verdicts_are_shown_as_the_api_has_them(executed: tuple[Any, Path]) -> None:
    notebook, folder = executed
    found = tb.open(folder / "notebook-results")
    assert shown(notebook, "r") == {"text/html": found._repr_html_(), "text/plain": repr(found)}
    assert "virtio is not a stand-in for physical here: requests per second" in shown(notebook, "r")["text/html"]
    wide = shown(notebook, "wide")
    assert "virtio is a stand-in for physical here" in wide["text/html"] and "different" not in wide["text/html"]
    assert wide["text/plain"] == repr(found.compare(margin=0.4, headlines=True))


def test_figures_are_drawn_with_their_data_in_them(executed: tuple[Any, Path]) -> None:
    notebook, folder = executed
    figures = tb.open(folder / "notebook-results").compare().plot()
    one = shown(notebook, "figures[0]")
    assert one[VEGA_LITE] == figures[0].spec and "<svg " in one["text/html"]
    for ratio in (row["ratio"] for row in tb.open(folder / "notebook-results").compare(headlines=True).to_pylist()):
        assert str(ratio) in json.dumps(one[VEGA_LITE])
    assert shown(notebook, "figures")["text/html"].count("<svg ") == len(figures) > 1


def test_data_frames_have_the_runs_numbers(executed: tuple[Any, Path]) -> None:
    notebook, folder = executed
    rates = raw(folder)
    frame = shown(
        notebook, """frame[["metric", "workload.rate", "testbed", "ratio", "ratio_low", "ratio_high", "verdict"]].round(3)"""
    )
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>.*?</tr>", frame["text/html"], re.S)]
    for rate in (1000, 2000):
        one, other = (statistics.fmean(map(math.log, rates[name, rate])) for name in ("virtio", "physical"))
        (row,) = (row for row in rows if row[:3] == ["requests_per_second", str(rate), "virtio"])
        assert float(row[3]) == pytest.approx(math.exp(one - other), abs=6e-4)
        assert float(row[4]) < float(row[3]) < float(row[5]) and row[6] == "different"
    summary = shown(notebook, """rates.groupby(["testbed", "workload.rate"])["value"].agg(["count", "mean", "std"]).round(1)""")
    expected = [
        float(f"{value:.1f}")
        for key in sorted(rates)
        for value in (len(rates[key]), statistics.fmean(rates[key]), statistics.stdev(rates[key]))
    ]
    numbers = [float(text) for text in re.findall(r"<td>([\d.]+)</td>", summary["text/html"])]
    assert numbers == pytest.approx(expected, abs=0.051)


def test_why_is_said(executed: tuple[Any, Path]) -> None:
    notebook, folder = executed
    why = shown(notebook, 'r.analyse("explain")')["text/plain"]
    assert why.startswith("explain of notebook") and "No candidate cause was found" in " ".join(why.split())
    # Two levels of two factors, balanced: the share of a factor by hand.
    values = {key: list(map(math.log, of)) for key, of in raw(folder).items()}
    every = [value for of in values.values() for value in of]
    mean, total = statistics.fmean(every), sum((value - statistics.fmean(every)) ** 2 for value in every)
    of_factor = sum(
        12 * (statistics.fmean(value for key, of in values.items() if key[1] == rate for value in of) - mean) ** 2
        for rate in (1000, 2000)
    )
    share = f"{100 * of_factor / total:.2f} %"
    assert (
        f"workload.rate explains {share}" in shown(notebook, 'r.analyse("anova", response="requests_per_second")')["text/plain"]
    )


def test_nothing_of_a_machine_is_kept_in_the_notebook() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
