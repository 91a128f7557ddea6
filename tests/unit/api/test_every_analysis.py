"""What every analysis gives in Python: rows, words, figures. Each is made of the tables that its own tests plant."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.calibration_results import write_calibrated
from tests.multifidelity_results import write as write_uncertain
from tests.numbered_results import WithMachine
from tests.numbered_results import planted as write_numbered
from tests.synthetic_results import planted_response, write_study
from tests.unit.analyses.anatomy import test_anatomy as anatomy
from tests.unit.analyses.chain.test_chain import results as chains
from tests.unit.analyses.detectability import test_detectability as detectability
from tests.unit.analyses.explain import made_study
from tests.unit.analyses.monitor.test_monitor import study as monitored
from tests.unit.analyses.sockets.test_sockets import study as sockets
from tests.unit.analyses.steady import test_steady as steady
from tests.unit.analyses.tails import test_tails as tails
from tests.unit.analyses.test_stalls import results as stalls
from tests.unit.analyses.test_stalls import row as stall

import twinbed as tb
from twinbed import registry
from twinbed.api.result import VEGA_LITE, Result
from twinbed.model.tables import Tables
from twinbed.render import sections as render_sections
from twinbed.render.pages import page
from twinbed.results.extract import extract
from twinbed.show.section import Section


def opened(folder: Path) -> Tables:
    return extract(folder, registry.PLUGINS.read, registry.PLUGINS.accompanying)


def virtio(folder: Path) -> Tables:
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)
    return opened(write_study(folder, ["physical", "virtio"], {"payload": ["500B", "1MiB"]}, 5, respond))


def numbered(folder: Path) -> Any:
    return WithMachine(opened(write_numbered(folder)))  # type: ignore[arg-type]


JOINED = {"snmp:Ip.InReceives": 0.1 * made_study.PACKETS}
"""Receive offload hands over a tenth of the packets."""
MADE: Mapping[str, Callable[[Path], Any]] = {
    "compare": virtio,
    "anatomy": lambda _: anatomy.study({"real": anatomy.MEANS_US, "virtual": {**anatomy.MEANS_US, "server": 400.0}}),
    "explain": lambda _: made_study.study({"real": {}, "virtual": JOINED}, {"real": 1000.0, "virtual": 500.0}),
    "calibrate": lambda folder: opened(write_calibrated(folder, payloads=8, expensive=6, threads=(1, 4))[0]),
    "chain": lambda _: chains(6, {"physical": 0.0, "e1000": 0.2}),
    "passport": virtio,
    "anova": virtio,
    "regression": virtio,
    "capacity": numbered,
    "scaling": numbered,
    "contention": numbered,
    "tails": lambda _: tails.study({"real": tails.usual, "virtual": tails.with_tail}),
    "steady": lambda _: steady.study({"real": steady.level, "virtual": steady.falling}),
    "stalls": lambda _: stalls([stall("client")]),
    "sockets": lambda _: sockets(),
    "monitor": lambda _: monitored({"real": [0, 0, 0], "virtual": [2, 5, 3]}, {"real": [0] * 3, "virtual": [0] * 3}),
    "detectability": lambda _: detectability.study(detectability.Made(scale=5)),
    "multifidelity": lambda folder: opened(write_uncertain(folder)),
    "anomaly": numbered,
}
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "regression": {"formulas": ["log(requests_per_second) ~ testbed"]},
    "capacity": {"response": "requests_per_second", "bound": 90, "at_most": False, "per_pair": True},
}
UNDRAWN = {"explain", "passport", "stalls", "monitor", "multifidelity", "anomaly"}


def test_no_analysis_is_forgotten() -> None:
    assert tuple(MADE) == tuple(registry.analysis_names())


@pytest.fixture(scope="module", params=MADE)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Result, Any, Any]:
    """Its name, its result in Python, the result itself, and the tables."""
    source = MADE[request.param](tmp_path_factory.mktemp("made") / "study")
    analysis = registry.analysis(request.param)
    found = analysis.run(source, analysis.params(**SETTINGS.get(request.param, {})))
    return request.param, Result(analysis, found, source, {}), found, source


@pytest.fixture(scope="module")
def section(made: tuple[str, Result, Any, Any]) -> Section:
    name, _, found, _ = made
    section = registry.analysis(name).section(found)
    assert section is not None
    return section


@pytest.fixture(scope="module")
def drawn(section: Section) -> int:
    """How many figures the section has."""
    return render_sections.body(section).count("<svg ")


def test_rows_are_the_analysis_own(made: tuple[str, Result, Any, Any]) -> None:
    name, result, found, _ = made
    expected = registry.analysis(name).tables(found)
    assert result.tables() == tuple(expected) and len(result) == len(next(iter(expected.values())))
    for table, rows in expected.items():
        frame = result.to_pandas(table)
        assert len(result.to_arrow(table)) == len(frame) == len(rows)
        for column in frame.columns:
            missing = [row.get(column) is None for row in rows]
            assert list(frame[column].isna()) == missing, f"{table}.{column}: missing is null, and nothing else is"


def test_words_are_those_of_the_section(made: tuple[str, Result, Any, Any], section: Section) -> None:
    name, result, _, _ = made
    said = [*render_sections.parts(section)]
    assert said
    text, page = repr(result), result._repr_html_()
    assert text.startswith(f"{name} of ")
    body = ElementTree.fromstring(page.replace("&nbsp;", " "))  # well-formed
    seen = " ".join(" ".join(body.itertext()).split())
    for part in said:
        assert " ".join(part.sentence.split()) in seen
        assert " ".join(part.sentence.split()) in " ".join(text.split())
        for row in part.table.rows[:3] if part.table is not None else ():
            assert all(" ".join(cell.split()) in seen for cell in row if cell)
    assert "<svg" not in page


def test_a_page_of_its_own_has_the_figures_and_tables_of_the_section_and_all_that_weighs_on_it(
    made: tuple[str, Result, Any, Any], section: Section, drawn: int
) -> None:
    _, _, found, _ = made
    text = str(page(section, found, "Made of results."))
    parser = _Page()
    parser.feed(text)
    assert not parser.open and not parser.twice, "well-formed, and no name is there twice"
    assert " ".join(section.title.split()) in parser.texts["h1"] and parser.texts["title"]
    assert text.count("<svg ") == drawn
    for caution in found.cautions:
        assert caution.kind.meaning.lower() in text.lower()
    for reason in found.left_out:
        assert reason in parser.texts["ul"]


class _Page(HTMLParser):
    """Elements that are not closed, identifiers that are there twice, and the texts of elements."""

    WITHOUT_END = ("meta", "br", "img", "link", "hr", "path", "circle", "rect", "line", "polyline")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.twice: list[str] = []
        self.texts: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.WITHOUT_END:
            self.open.append(tag)
        own = dict(attrs).get("id")
        if own and "svg" not in self.open:
            self.twice += [own] if own in self.ids else []
            self.ids.add(own)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.WITHOUT_END:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag] = self.texts.get(tag, "") + data


def test_figures_are_those_of_the_section(made: tuple[str, Result, Any, Any], drawn: int) -> None:
    name, result, _, _ = made
    if name in UNDRAWN:
        with pytest.raises(tb.TwinbedError, match=f"{name} has nothing to draw"):
            result.plot()
        return
    figures = result.plot()
    assert len(figures) == drawn > 0
    for plot in figures:
        bundle = plot._repr_mimebundle_()
        picture = ElementTree.fromstring(plot.svg)
        assert picture.tag == "{http://www.w3.org/2000/svg}svg" and picture.attrib["aria-label"] == plot.label
        assert not re.search(r"""(?:href|src)=["']?http|url\(["']?http|<script|@import|var\(--""", plot.svg), (
            "needs nothing else"
        )
        assert bundle["text/html"] == plot._repr_html_() and plot.svg in str(bundle["text/html"])
        assert (VEGA_LITE in bundle) == (plot.spec is not None)
        assert '"url"' not in str(plot.spec), "data is in it"
    several = figures._repr_mimebundle_()
    assert str(several["text/html"]).count("<svg ") == len(figures)
    assert (VEGA_LITE in several) == (len(figures) == 1 and figures[0].spec is not None)
