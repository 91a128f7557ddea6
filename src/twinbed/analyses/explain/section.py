"""What may make testbeds differ, in a report and as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.explain.result import Explanation
from twinbed.analyses.explain.tables import proof_table, sentences, table
from twinbed.contracts.analysis import Part, Section
from twinbed.render.document import document
from twinbed.render.html import html, notes
from twinbed.render.words import caution_sentences, left_out

KEY, TITLE = "explain", "What may make testbeds differ"


def section(result: Explanation) -> Section:
    """The section in every form of a report."""
    part = Part("causes", "tab-explain", TITLE, " ".join(sentences(result)), table(result) if _candidates(result) else None)
    return Section(KEY, TITLE, lambda: html('<section id="{}"><h2>{}</h2>{}</section>', KEY, TITLE, _body(result)), (part,))


def _candidates(result: Explanation) -> bool:
    return any(pair.candidates for pair in result.pairs)


def _body(result: Explanation) -> Markup:
    return Markup().join(_parts(result))


def _parts(result: Explanation) -> Iterator[Markup]:
    for sentence in sentences(result):
        yield html("<p>{}</p>", sentence)
    if _candidates(result):
        yield table(result).as_html()
        if not result.proofs:
            yield html(
                '<p class="note">{} <code>{}</code></p>',
                "The study that would prove or disprove a candidate is written by",
                "twinbed explain RESULTS --study proof.yaml",
            )
    if result.proofs:
        yield proof_table(result).as_html()
    yield notes([*caution_sentences(result.cautions), *left_out(result.left_out)])


def page(result: Explanation, source: str) -> Markup:
    """A page of its own."""
    header = html('<header><p class="kicker">{}</p><h1>{}</h1></header>', "Causes", TITLE)
    return document(
        TITLE, html('{}<main><section id="{}">{}</section></main>', header, KEY, _body(result)), f"Made of {source}."
    )
