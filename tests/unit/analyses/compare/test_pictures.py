"""Labels are whole while there is room, charts of a row stand level, and columns of the text table align."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import vl_convert

from synthetic_results import planted_response, write_study
from twinbed import registry
from twinbed.analyses.compare.plots import distribution, forest, ratios
from twinbed.analyses.compare.terminal import print_comparison, print_why
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.render.terminal import Terminal
from twinbed.results.extract import extract
from twinbed.show.words import cell_title

LONG = "docker_bridge_with-portmap"
FACTORS = {"direction": ["receive", "send"], "parallel": ["1", "10"]}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Comparisons:
    folder = tmp_path_factory.mktemp("long")
    respond = planted_response({"host": 1.0, LONG: 0.7, "nat": 0.9}, 0.02, 1)
    write_study(folder / "study", ["host", LONG, "nat"], FACTORS, 5, respond)
    compare = registry.analysis("compare")
    found: Comparisons = compare.run(extract(folder / "study", registry.PLUGINS.read, {}), compare.params())
    return found


def rows(result: Comparisons) -> list[Comparison]:
    return [each for each in result.comparisons if each.metric == "requests_per_second"]


def printed(result: Comparisons, width: int, *, why: bool = False) -> list[str]:
    text = io.StringIO()
    (print_why if why else print_comparison)(result, Terminal(file=text, width=width), rows(result))
    return text.getvalue().splitlines()


def test_labels_are_whole_in_charts(result: Comparisons) -> None:
    of_metric = rows(result)
    labels = [f"direction {way}, parallel {streams} {LONG}" for way in FACTORS["direction"] for streams in FACTORS["parallel"]]
    drawn = vl_convert.vegalite_to_svg(forest(of_metric))
    assert all(f">{label}<" in drawn for label in labels)
    for spec in (distribution(of_metric), ratios(of_metric)):
        drawn = vl_convert.vegalite_to_svg(spec)
        assert drawn.count(f">{LONG}<") == 4
        assert "…" not in drawn


def heights(drawn: str, texts: set[str]) -> list[float]:
    """Where texts stand: the vertical parts of all moves of the groups that they are in."""
    found: list[float] = []

    def walk(element: ElementTree.Element, above: float) -> None:
        move = re.match(r"translate\([-\d.]+,\s*([-\d.]+)\)", element.get("transform", ""))
        here = above + (float(move[1]) if move else 0.0)
        if element.text in texts:
            found.append(here)
        for child in element:
            walk(child, here)

    walk(ElementTree.fromstring(drawn), 0.0)
    return found


def test_the_two_charts_of_a_row_stand_level(result: Comparisons) -> None:
    """The scales below the panels have other numbers and titles, and a band fills the panels of one alone."""
    of_metric = rows(result)
    titles = {cell_title(each.cell) for each in of_metric}
    left, right = (heights(vl_convert.vegalite_to_svg(spec(of_metric)), titles) for spec in (distribution, ratios))
    assert len(left) == len(titles) == 4
    assert left == pytest.approx(right, abs=0.01)


def test_labels_of_the_picture_of_characters_are_whole_on_a_wide_terminal(result: Comparisons) -> None:
    wide = "\n".join(printed(result, 160, why=True))
    assert f"  direction receive, parallel 10 {LONG} ≠" in wide
    assert "…" not in wide
    narrow = printed(result, 80, why=True)
    assert max(len(line) for line in narrow if "●" in line) <= 80, "a picture is never wider than the terminal"


def test_columns_of_the_table_align(result: Comparisons) -> None:
    lines = printed(result, 160)
    head = next(line for line in lines if line.startswith("Cell "))
    at = {name: head.index(name) for name in ("Testbed", "Verdict")}
    table = lines[lines.index(head) + 1 :][: 4 * 3 + 2]
    for line in table:
        assert re.match(rf"(?:host|nat|{LONG})\s", line[at["Testbed"] :]), line
        assert line[at["Testbed"] - 1] == line[at["Verdict"] - 1] == " "
    ends = {line.index(" 5 ", at["Verdict"]) for line in table if "±" in line}
    assert len(ends) == 1


def domains(spec: Any) -> list[list[float]]:
    """Of all scales below."""
    parts = [part for part in (spec.values() if isinstance(spec, dict) else spec) if isinstance(part, dict | list)]
    below = [found for part in parts for found in domains(part)]
    return below + ([spec["domain"]] if isinstance(spec, dict) and "nice" in spec and "domain" in spec else [])


def test_an_interval_far_wider_than_the_values_does_not_hide_them(tmp_path: Path) -> None:
    """Of 60 and 320 a second the interval on logarithms is 0.003 to 6 million, which left a picture of nothing."""
    rates = {"host": [9235.0, 9626.0], "nat": [58.6, 317.5]}

    def respond(testbed: str, levels: Any, replicate: int) -> dict[str, float | None]:
        return {"requests": 100, "requests_per_second": rates[testbed][replicate], "packets": 1000, "bytes": 64000}

    write_study(tmp_path, list(rates), {}, 2, respond)
    compare = registry.analysis("compare")
    found = rows(compare.run(extract(tmp_path, registry.PLUGINS.read, {}), compare.params()))
    interval = found[0].estimate.centre_interval
    assert interval is not None and interval.high > 1e6
    [domain] = {tuple(each) for each in domains(distribution(found))}
    assert -1e4 < domain[0] < 58.6 and 9626 < domain[1] < 2.2 * 9626
