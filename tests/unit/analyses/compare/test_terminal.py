"""What a terminal shows of a comparison: conclusion, matrix, cautions; in 80 columns, without colours, and in ASCII."""

from __future__ import annotations

import io
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command import twinbed

from synthetic_results import planted_response, write_study
from twinbed import registry
from twinbed.analyses.compare.ranked import ranked
from twinbed.analyses.compare.terminal import print_comparison, print_why
from twinbed.model.caution import Kind, Rank
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.render.terminal import Terminal
from twinbed.results.extract import extract
from twinbed.terminal import PLAIN, WIDTH

FACTORS = {"payload": ["500B", "1MiB"], "direction": ["receive", "send"]}
RATIOS = {"host": 1.0, "like-it": 1.0, "container_with-a-long-name": 0.7}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown") / "study"
    write_study(folder, list(RATIOS), FACTORS, 3, planted_response(RATIOS, 0.02, 1))
    return folder


@pytest.fixture(scope="module")
def result(folder: Path) -> Comparisons:
    compare = registry.analysis("compare")
    found: Comparisons = compare.run(extract(folder, registry.PLUGINS.read, {}), compare.params())
    return found


def printed(result: Comparisons, width: int = WIDTH, comparisons: list[Comparison] | None = None) -> list[str]:
    text = io.StringIO()
    print_comparison(result, Terminal(file=text, width=width), comparisons)
    return text.getvalue().splitlines()


def reasons(result: Comparisons, width: int = WIDTH) -> list[str]:
    text = io.StringIO()
    print_why(result, Terminal(file=text, width=width), headlines(result))
    return text.getvalue().splitlines()


def headlines(result: Comparisons) -> list[Comparison]:
    return [each for each in result.comparisons if each.headline]


def compared(folder: Path, columns: str, patch: pytest.MonkeyPatch) -> str:
    patch.setenv("COLUMNS", columns)
    return twinbed("compare", folder).stdout


@pytest.fixture
def whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is shown in 80 columns."""
    return compared(folder, "80", monkeypatch)


def test_conclusion_lists_matrix_and_cautions_come_in_this_order(result: Comparisons) -> None:
    lines = printed(result)
    assert lines[0] == "= like-it is a stand-in for host here: all 12 headline comparisons are within 10"
    marks = ("like-it is", "Use it for", "Do not use it for", "Application", "Cautions: ", "Intervals, values")
    at = [next(n for n, line in enumerate(lines) if mark in line) for mark in marks]
    assert at == sorted(at)
    assert not [line for line in lines if "Ratio [" in line or line.startswith("Spread")], "tables are for --all"
    whole = printed(result, 120, headlines(result))
    assert [line for line in whole if "Ratio [" in line] and [line for line in whole if line.startswith("Spread")]


def test_every_headline_verdict_is_in_the_matrix_by_its_sign_and_a_word(result: Comparisons) -> None:
    lines = printed(result, 120)
    begin = next(n for n, line in enumerate(lines) if line.split() == list(RATIOS)[1:])
    body = lines[begin + 1 : next(n for n, line in enumerate(lines) if line.startswith("Ratio to host"))]
    shown = [re.findall(r"[=≠?] (?:same|[-+][\d.]+ %|[\d.]+x|0 %)", line) for line in body if line.startswith("    ")]
    assert [len(found) for found in shown] == [2] * 3 * 4, "a row a metric and cell, a column a testbed"
    rates = [each for each in headlines(result) if each.metric == "requests_per_second" and each.ratio and each.ratio < 0.8]
    assert {f"≠ -{(1 - (each.ratio or 0)) * 100:.0f} %" for each in rates} <= {found[1] for found in shown}


def test_items_of_lists_have_at_most_twelve_words(result: Comparisons) -> None:
    items = [line.split("- ", 1)[1] for line in printed(result, 200) if line.startswith("  - ")]
    assert items and all(len(item.split()) <= 12 for item in items if not item.endswith("."))


def test_every_ratio_is_a_line_with_its_interval_on_a_scale_whose_middle_is_1(result: Comparisons) -> None:
    lines = [line for line in reasons(result) if "●" in line and "interval" not in line]
    drawn = [each for each in headlines(result) if each.ratio]
    assert len(lines) == len(drawn) == 24
    middles, reaches = set(), []
    for line, each in zip(lines, drawn, strict=True):
        if each.metric != "requests_per_second":
            continue  # these are exact
        assert each.ratio_interval is not None and each.ratio is not None
        number, low, high = (float(text) for text in re.findall(r"[\d.]+", line[line.rindex("●") :])[-3:])
        assert (number, low, high) == pytest.approx((each.ratio, each.ratio_interval.low, each.ratio_interval.high), rel=2e-3)
        if each.ratio < 0.8:  # away from the band, which is whole then
            band = [at for at, mark in enumerate(line) if mark == "░"]
            middle = (min(band) + max(band)) / 2
            middles.add(middle)
            reaches.append((middle - line.index("●")) / -math.log(each.ratio))
    assert len(middles) == 1, "the band is around 1, at one place in all lines"
    assert len(reaches) == 4 and max(reaches) - min(reaches) < 0.15 * min(reaches), "columns go with the logarithm"


def test_what_is_inconclusive_has_its_reason(folder: Path) -> None:
    compare = registry.analysis("compare")
    found = compare.run(extract(folder, registry.PLUGINS.read, {}), compare.params(margin=0.01))
    assert "too variable to tell" in "\n".join(reasons(found))
    text = "\n".join(printed(found))
    assert "Cannot tell yet" in text and "? inconclusive" in text


def test_cautions_that_invalidate_come_first_then_those_of_most_comparisons(result: Comparisons) -> None:
    found = ranked(result, headlines(result))
    assert found == sorted(found, key=lambda each: (list(Rank).index(each.rank), -len(each.touched)))
    lines = [line for line in printed(result, 200) if line.startswith("! ")]
    assert [line[2:] for line in lines] == [each.title for each in found]
    [few] = [each for each in found if each.kind is Kind.FEW_REPLICATES]
    carrying = [each for each in headlines(result) if any(own.kind is Kind.FEW_REPLICATES for own in each.cautions)]
    assert list(few.touched) == carrying


def test_no_colours_where_nobody_sees_them_or_wants_them(result: Comparisons) -> None:
    def colours(*, terminal: bool, **environment: str) -> bool:
        text = io.StringIO()
        print_comparison(result, Terminal(file=text, force_terminal=terminal, environ={"TERM": "xterm", **environment}))
        return re.search(r"\x1b\[[\d;]*3\dm", text.getvalue()) is not None

    assert colours(terminal=True)
    assert not colours(terminal=True, NO_COLOR="1")
    assert not colours(terminal=False)


def test_a_terminal_without_our_characters_gets_ascii(folder: Path, whole: str) -> None:
    """And a program of its own imports no pandas, which takes it as long as all of ours."""
    argv = [sys.executable, "-X", "importtime", "-m", "twinbed.cli.main", "compare", str(folder)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": ""}
    done = subprocess.run(argv, capture_output=True, env=environment, check=False)
    imported = {line.rpartition(b"|")[2].strip() for line in done.stderr.splitlines()}
    assert b"pyarrow" in imported and b"pandas.core" not in imported
    text = done.stdout.decode("ascii")
    assert "?" not in text.partition("Cautions")[0].replace("? inconclusive", "").replace("\n?", "")
    for one, other in zip(whole.splitlines(), text.splitlines(), strict=True):
        assert other == "".join(PLAIN.get(character, character) for character in one)
        assert len(one) == len(other) or "≤" in one or "…" in one or "±" in one


def test_columns_widen_what_is_no_terminal(folder: Path, whole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = compared(folder, "120", monkeypatch)
    reach = [max(map(len, text.splitlines())) for text in (whole, wide)]
    assert reach[0] <= 80 < reach[1] <= 120
    assert compared(folder, "", monkeypatch) == whole
