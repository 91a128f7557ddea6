"""Link checks in the report and in a results folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synthetic_results import planted_response, write_study
from twinbed.model.caution import Kind
from twinbed.model.linkcheck import Figure, LinkCheck, Verdict
from twinbed.report.links import links
from twinbed.results.folder import Folder, ResultsUnusable
from twinbed.results.store import Store

GOOD = Figure("client to server", "rate", "bit/s", 1e8, 1.01e8, None, 1.04e8, Verdict.WITHIN)
BAD = Figure("server to client", "loss", "1", 0.01, 0.05, 0.001, 0.02, Verdict.OUT, "100 of <2000> lost")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_study(tmp_path, ["one", "two"], {"size": [1, 2]}, 2, planted_response({"one": 1.0, "two": 1.0}, 0.02, seed=3))
    return tmp_path


def keep(results: Path, *checks: LinkCheck) -> None:
    folder = Folder(results)
    for check in checks:
        folder.keep_link_check(check)


def test_nothing_is_said_where_no_links_were_checked(results: Path) -> None:
    assert "".join(links(Store.open(results))) == ""


def test_failed_checks_come_first_and_say_what_was_asked_and_measured(results: Path) -> None:
    run = next((results / "runs").iterdir()).name
    keep(results, LinkCheck("aaa", run, {}, (GOOD,)), LinkCheck("bbb", run, {}, (BAD,), (), "too much loss"))
    page = "".join(links(Store.open(results)))
    assert "2 checks, 1 failed" in page
    assert page.index("out of tolerance</td>") < page.index("within tolerance</td>")
    for text in ("100 Mbit/s", "101 Mbit/s", "up to 104 Mbit/s", "0.1 % to 2 %", "5 %", "100 of &lt;2000&gt; lost", "size"):
        assert text in page, text


def test_pairs_that_were_not_measured_are_told(results: Path) -> None:
    pair = ("client1 and server1",)
    keep(results, LinkCheck("aaa", "r", {}, (GOOD,), (), None, pair, 1), LinkCheck("bbb", "r", {}, (GOOD,)))
    assert "of the checks" not in "".join(links(Store.open(results)))
    keep(
        results, LinkCheck("ccc", "r", {}, (GOOD,), (), None, pair, 40), LinkCheck("ddd", "r", {}, (GOOD,), (), None, pair, 40)
    )
    page = "".join(links(Store.open(results)))
    assert "In 2 of the checks 1 of 40 pairs was measured, from the first on." in page


def test_what_was_not_measured_has_no_tolerance(results: Path) -> None:
    null = Figure("client to server", "rate", "bit/s", 1000.0, None, None, None, Verdict.INCONCLUSIVE, "too slow")
    keep(results, LinkCheck("aaa", "r", {}, (null,), (), None, (), 2))
    page = "".join(links(Store.open(results)))
    assert "In 1 of the checks none of 2 pairs could be measured. What" in page
    assert "<td>1 kbit/s</td><td>–</td><td>–</td><td>cannot be told</td><td>too slow</td>" in page


def test_a_check_that_cannot_be_read_is_a_caution_to_readers_and_stops_writers(results: Path) -> None:
    (results / "links").mkdir()
    (results / "links" / "aaa.json").write_text("{")
    store = Store.open(results)
    assert store.link_checks == ()
    assert [caution.kind for caution in store.cautions] == [Kind.UNREADABLE]
    with pytest.raises(ResultsUnusable, match=r"aaa\.json cannot be read"):
        Folder(results).link_check("aaa")


def test_only_failed_checks_are_moved_aside(results: Path) -> None:
    keep(results, LinkCheck("aaa", "r", {}, (GOOD,)), LinkCheck("bbb", "r", {}, (BAD,), (), "too much loss"))
    folder = Folder(results)
    for cell in ("aaa", "bbb", "ccc"):
        folder.forget_link_check(cell)
    assert folder.link_check("aaa") == LinkCheck("aaa", "r", {}, (GOOD,))
    assert folder.link_check("bbb") is None
    assert json.loads((results / "failed" / "link-check-bbb-1").read_text())["reason"] == "too much loss"
