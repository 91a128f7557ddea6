"""The analysis `capacity` on planted results and printed data, its command in every format."""

from __future__ import annotations

import csv
import io
import json

import pytest

from numbered_results import LOSS, drawn
from twinbed import registry
from twinbed.contracts import exit_codes as codes


def test_capacity_of_the_printed_losses(shown):
    code, out, _ = shown("capacity", LOSS, "--response", "loss", "--over", "receivers", "--at-most", "1")
    assert code == codes.DONE
    assert out.splitlines()[0] == (
        "Loss at most 1: 5 receivers: 96.8 % sure of most runs (5 of 5 kept it; up to 45 % of all may not); 6: no, 96.8 % sure "
        "of most runs (the mean there is 4.54, 2.1 to 6.99)."
    )


def test_capacity_of_planted_results_by_testbed(shown, results):
    arguments = ("--response", "requests_per_second", "--per-pair", "--at-least", "0.9", "--of-one")
    code, out, _ = shown("capacity", results, *arguments)
    assert code == codes.DONE
    slow, fast = out.splitlines()[:2]
    assert slow.startswith("Testbed slow: requests per second per pair at least 90 % of that at 1 pair: 8 pairs: more than")
    assert "N between them were not tested" in slow and "; 16: no, " in slow
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
        ((), "capacity needs one objective"),
        (("--at-most", "1", "--at-least", "1"), "capacity needs one objective"),
        (("--at-most", "1", "--over", "testbed"), "whole numbers from 1 on"),
        (("--at-most", "1", "--over", "nothing"), "no column 'nothing'"),
    ],
)
def test_capacity_refuses(shown, results, arguments, message):
    code, _, err = shown("capacity", results, *arguments)
    assert code == codes.USAGE and message in err


@pytest.mark.parametrize(
    ("rows", "bound", "message"),
    [
        ("1,5\n1,6\n1e400,3\n1e400,4\n", "4", "pairs has the level inf, expected whole numbers"),
        ("1,5\n1,6\n1.5,3\n1.5,4\n", "4", "pairs has the level 1.5, expected whole numbers"),
        ("", "4", "has no value of rate"),
        ("1,\n2,\n", "4", "left out: 2 rows without rate"),
        ("1,5\n1,6\n", "nan", "the bound nan is not finite"),
        ("1,5\n1,6\n", "inf", "the bound inf is not finite"),
        ("1,5\n1,6\n", "1e155", "the bound 1e+155 is too large or too small"),
        ("1,5e160\n1,6e160\n", "4", "values are of size 6e+160"),
        ("1,5e-170\n1,6e-170\n", "4", "values are of size 6e-170"),
    ],
)
def test_capacity_of_a_file_that_says_nothing(shown, tmp_path, rows, bound, message):
    file = tmp_path / "few.csv"
    file.write_text(f"pairs,rate\n{rows}")
    for output in ((), ("-o", tmp_path / "few.html")):
        code, _, err = shown("capacity", file, "--response", "rate", "--at-least", bound, *output)
        assert code == codes.USAGE and message in err


def test_an_objective_is_read_as_it_was_written_before():
    params = registry.analysis("capacity").params
    assert params(bound=0.9, at_most=False, relative=True) == params(at_least=0.9, of_one=True)
    assert params(bound=1, at_most=True) == params(at_most=1)


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


def test_capacity_has_a_page(shown, results, tmp_path):
    page = tmp_path / "capacity.html"
    asked = ("--response", "requests_per_second", "--per-pair", "--at-least", "0.9", "--of-one")
    assert shown("capacity", results, *asked, "-o", page)[0] == codes.DONE
    count, said = drawn(page.read_text())
    assert count == 2
    assert {"the capacity is 8 to 15 pairs", "the capacity is 32 to 39 pairs"} <= said
    assert sum(each.startswith("N = 40: ") and each.endswith("(a run)") for each in said) > 8
    assert shown("anomaly", results, "--response", "requests_per_second", "-o", tmp_path / "anomaly.html")[0] == codes.DONE
    assert "A pair among N, compared with a pair alone" in (tmp_path / "anomaly.html").read_text()


def test_the_page_of_the_printed_losses_shades_nothing(shown, tmp_path):
    """Five runs that keep 1 % are 96.9 % sure of most runs, less than the 97.5 % that each end of the interval asks."""
    page = tmp_path / "loss.html"
    shown("capacity", LOSS, "--response", "loss", "--over", "receivers", "--at-most", "1", "-o", page)
    _, said = drawn(page.read_text())
    assert ">100.00 %<" not in page.read_text() and "96.88 %" in page.read_text()
    assert not any(each.startswith("the capacity is") for each in said) and "N = 6: mean 4.545, 2.097 to 6.993, 5 runs" in said
