"""Advice as a page of its own."""

from __future__ import annotations

from markupsafe import Markup

from twinbed.render.document import document
from twinbed.render.html import html, notes
from twinbed.render.words import heading
from twinbed.report.advice.result import Advice, Rule, Topic
from twinbed.report.advice.text import OPEN, TITLES, TRUST, bases, details, lede, trust_table
from twinbed.report.advice.words import contrast_text, open_text


def page(advice: Advice) -> Markup:
    """The whole page."""
    header = html(
        '<header><p class="kicker">Advice</p><h1>Rules of thumb</h1><p class="lede">{}</p>{}</header>',
        lede(advice),
        notes([f"{each}." for each in (*bases(advice), *advice.notes)]),
    )
    sections = []
    for topic in Topic:
        of_topic = [rule for rule in advice.rules if rule.topic is topic]
        if of_topic:
            items = Markup().join(_rule(rule) for rule in of_topic)
            sections.append(html("<section><h2>{}</h2><ul>{}</ul></section>", TITLES[topic], items))
    if advice.trusted:
        sections.append(html("<section><h2>{}</h2>{}</section>", TRUST, trust_table(advice.trusted).as_html()))
    if advice.open:
        sentences = [f"{contrast_text(each.contrast)}: {open_text(each)}." for each in advice.open]
        sections.append(html("<section><h2>{}</h2>{}</section>", OPEN, notes(sentences)))
    body = html("{}<main>{}</main>", header, Markup().join(sections))
    return document("Advice", body, f"Made of {', '.join(each.source for each in advice.bases)}.")


def _rule(rule: Rule) -> Markup:
    return html(
        "<li><strong>{}</strong>{}<p><code>{}</code></p></li>",
        rule.sentence,
        notes([f"{heading(each)}." for each in details(rule)]),
        rule.command,
    )
