"""What may make testbeds differ, in a report and as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.analyses.explain.result import Explanation
from twinbed.analyses.explain.tables import proof_table, sentences, table
from twinbed.contracts.analysis import Part, Section
from twinbed.render.html import html
from twinbed.show.words import caution_sentences, left_out

KEY, TITLE = "explain", "What may make testbeds differ"


def section(result: Explanation) -> Section:
    """The section in every form of a report."""
    lede, *rest = sentences(result)
    part = Part("causes", "tab-explain", TITLE, " ".join((lede, *rest)), table(result) if _candidates(result) else None)
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result, rest)),
        (part,),
        lede=lede,
        notes=(*caution_sentences(result.cautions), *left_out(result.left_out)),
        kicker="Causes",
    )


def _candidates(result: Explanation) -> bool:
    return any(pair.candidates for pair in result.pairs)


def _body(result: Explanation, more: Sequence[str]) -> Iterator[Markup]:
    for sentence in more:
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
