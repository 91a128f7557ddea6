"""Each place of a results folder with kinds of what is no plain file there, and some command on it. ``links_everywhere`` by
itself tries all commands."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

import links_everywhere as tries
from links_everywhere import COMMANDS, KINDS, SECRET, Tally
from twinbed.cli.conclusion import FILE as CONCLUSION
from twinbed.model.interim import FILE as INTERIM_FILE
from twinbed.observations import pages, predictable
from twinbed.report.styles import SUFFIXES
from twinbed.results import contents
from twinbed.results.archive.layout import REPORT
from twinbed.results.folder import HOLDS
from twinbed.results.keep.names import KEPT, ROWS
from twinbed.results.store import FLEET, FROZEN

SEEN_BY = {
    "tables/.lock": "run",
    "tables/metrics": "run",
    "tables": "run",
    "events.jsonl": "run",
    "contents": "prune",
    ".lock": "prune",
    "study.yaml": "publish",
    "study.json": "report",
    "links/x.json": "report",
    "fleet.json": "publish",
    "looks.json": "report",
    "frozen.json": "archive",
    ".report.html.partial": "report",
    ".study.json.partial": "run",
    "pages": "analyse",
    "report.html": "run",
    "runs/.unfinished-x": "run",
}
"""Place -> the command that went wrong there."""
OTHERS_ALIKE = {"facts", "cautions", "fingerprints", "applied"}
"""Tables that one function reads as it does the metrics, so that those stand for them here."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links")
    tries.base(folder)
    return folder


@pytest.mark.parametrize("pattern", HOLDS)
def test_no_place_leads_elsewhere(made: Path, pattern: str) -> None:
    """One kind at every place, and each kind at every sixth place; `make soak` tries others, drawn at random."""
    tally, names, kinds = Tally(), itertools.cycle(COMMANDS), list(KINDS)
    for _ in range(HOLDS.index(pattern)):
        next(names)
    for number, place in enumerate(tries.places(made / "base", pattern)):
        if place.startswith("tables/") and place.split("/")[1] in OTHERS_ALIKE:
            continue
        tries.tried(made, place, kinds[number % len(kinds)], next(names), tally)
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.cases >= 2


@pytest.mark.parametrize("place", SEEN_BY)
def test_what_went_wrong_does_no_more(made: Path, place: str) -> None:
    tally = Tally()
    for kind in ("link to a file", "link to a folder", "named pipe"):
        tries.tried(made, place, kind, SEEN_BY[place], tally)
    assert not tally.faults, "\n".join(tally.faults)


def test_each_fault_is_seen(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that does what it must not is found out."""

    def bad(arguments: list[str]) -> int:
        results = Path(arguments[1])
        if faults == "tells":
            sys.stdout.write((results / "study.yaml").read_text())
        elif faults == "copies":
            (results / "page.html").write_text((results / "study.yaml").read_text())
        elif faults == "writes":
            (results / "study.yaml").write_text("")
        elif faults == "fails":
            raise KeyError("traceback")
        return 2 if faults == "is silent" else 0

    monkeypatch.setattr(tries, "run", bad)
    for faults in ("tells", "copies", "writes", "fails", "is silent"):
        tally = Tally()
        tries.tried(made, "study.yaml", "link to a file", "compare", tally)
        assert len(tally.faults) == 1, (faults, tally.faults)
    tally = Tally()
    faults = "does nothing"
    tries.tried(made, "study.yaml", "link to a file", "compare", tally)
    assert not tally.faults and SECRET


def test_the_list_has_every_name_that_the_program_knows(made: Path) -> None:
    names = {INTERIM_FILE, FLEET, FROZEN, REPORT, CONCLUSION, *(f"report{suffix}" for suffix in SUFFIXES.values())}
    names |= {f"runs/*/{KEPT}", f"runs/*/{ROWS}", f"{contents.FOLDER}/*", f"{pages.FOLDER}/*.html"}
    names |= {f"{predictable.FOLDER}/*.json"}
    assert names <= set(HOLDS)


def test_the_list_has_every_file_of_results(made: Path) -> None:
    there = {path for path in (made / "base").rglob("*") if path.is_file()}
    listed = {path for pattern in HOLDS for path in (made / "base").glob(pattern)}
    assert there and not there - listed
