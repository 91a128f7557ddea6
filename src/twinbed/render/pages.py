"""A section as part of a report, and as a page of its own: every analysis has both by this file."""

from __future__ import annotations

from markupsafe import Markup

from twinbed.contracts.analysis import Reported
from twinbed.render.document import document
from twinbed.render.html import html, notes
from twinbed.render.sections import body
from twinbed.show.section import Section
from twinbed.show.words import caution_sentences, left_out


def in_report(section: Section) -> Markup:
    """Return the section with its heading, a smaller one where it is part of a layer."""
    heading = html("<h3>{}</h3>" if section.layer else "<h2>{}</h2>", section.title)
    return html(
        '<section id="{}">{}{}{}{}</section>',
        section.key,
        heading,
        html("<p>{}</p>", section.sentence) if section.sentence else "",
        body(section),
        notes(section.notes),
    )


def page(section: Section, result: Reported, made_of: str) -> Markup:
    """Return the page of a result, with all that speaks against it; ``made_of`` says what it was made of, and how."""
    weighs = tuple(dict.fromkeys((*section.notes, *caution_sentences(result.cautions), *left_out(result.left_out))))
    header = html(
        "<header>{}<h1>{}</h1>{}{}</header>",
        html('<p class="kicker">{}</p>', section.kicker) if section.kicker else "",
        section.title,
        html('<p class="lede">{}</p>', section.sentence) if section.sentence else "",
        html('<p class="screen">Read it with <a href="#cautions">what to note</a> ({}).</p>', len(weighs)) if weighs else "",
    )
    below = html('<section id="cautions"><h2>What to note</h2>{}</section>', notes(weighs)) if weighs else ""
    main = html('<main><section id="{}">{}</section>{}</main>', section.key, body(section), below)
    return document(section.title, header + main, made_of)
