"""Advice as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.model.amount import amount
from twinbed.render.document import document
from twinbed.render.html import html, notes
from twinbed.report.advice.result import Advice, Contradiction, Contrast, Open, Statement, Topic
from twinbed.report.advice.text import CONTRADICTIONS, OPEN, TITLES, TRUST, bases, details, lede, passport_command, trust_table
from twinbed.report.advice.words import contradiction_texts, contrast_text, open_text
from twinbed.show.words import heading


def page(advice: Advice) -> Markup:
    """Return the whole page."""
    header = html(
        '<header><p class="kicker">Advice</p><h1>Rules of thumb</h1><p class="lede">{}</p>{}</header>',
        lede(advice),
        notes([f"{note}." for note in (*bases(advice), *advice.notes)]),
    )
    sections = []
    if advice.contradictions:
        items = Markup().join(_contradiction(contradiction) for contradiction in advice.contradictions)
        sections.append(html("<section><h2>{}</h2><ul>{}</ul></section>", CONTRADICTIONS, items))
    for topic in Topic:
        of_topic = [statement for statement in advice.statements if statement.topic is topic]
        if of_topic:
            items = Markup().join(_statement(statement) for statement in of_topic)
            sections.append(html("<section><h2>{}</h2><ul>{}</ul></section>", TITLES[topic], items))
    if advice.trusted:
        sections.append(html("<section><h2>{}</h2>{}</section>", TRUST, trust_table(advice.trusted).as_html()))
    if advice.open:
        sections.append(html("<section><h2>{}</h2>{}</section>", OPEN, Markup().join(_open(advice))))
    body = html("{}<main>{}</main>", header, Markup().join(sections))
    return document("Advice", body, f"Made from {', '.join(base.source for base in advice.bases)}.")


def _open(advice: Advice) -> Iterator[Markup]:
    """Yield the inconclusive metrics of each contrast, collapsed: there may be hundreds."""
    together: dict[Contrast, list[Open]] = {}
    for metric in advice.open:
        together.setdefault(metric.contrast, []).append(metric)
    for contrast, members in together.items():
        title = f"{contrast_text(contrast)}: {amount(len(members), 'metric')}"
        yield html("<details><summary>{}</summary>{}</details>", title, notes([f"{open_text(metric)}." for metric in members]))


def _contradiction(contradiction: Contradiction) -> Markup:
    first, *both = contradiction_texts(contradiction)
    return _item(f"{first}.", [f"{text}." for text in both], passport_command(contradiction))


def _statement(statement: Statement) -> Markup:
    return _item(statement.sentence, [f"{heading(line)}." for line in details(statement)], statement.command)


def _item(sentence: str, lines: Sequence[str], command: str) -> Markup:
    return html(
        "<li><strong>{}</strong>{}<p><code>{}</code></p></li>",
        sentence,
        notes(lines),
        command,
    )
