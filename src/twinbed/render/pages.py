"""Write a section as part of a report, and as a page of its own: every analysis has both by this file."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from twinbed.contracts.analysis import Reported
from twinbed.render.document import document
from twinbed.render.html import html, notes
from twinbed.render.sections import body
from twinbed.show.section import Section
from twinbed.show.words import caution_sentences, left_out


def in_report(section: Section) -> Markup:
    """Return the section with its heading; a folded one is closed but for its sentence."""
    sentence = html("<p>{}</p>", section.sentence) if section.sentence else ""
    below = body(section) + notes(section.notes)
    if not section.folded:
        return html('<section id="{}"><h2>{}</h2>{}{}</section>', section.key, section.title, sentence, below)
    return html(
        '<section id="{}" class="folded"><details class="print"><summary><h2>{}</h2>{}</summary>{}</details></section>',
        section.key,
        section.title,
        sentence,
        below,
    )


def contents(links: Sequence[tuple[str, str]]) -> Markup:
    """Return the contents of a page, (anchor, title) each: at the side of a wide screen, above on others."""
    items = Markup().join(html('<a href="#{}">{}</a>', target, text) for target, text in links)
    return html('<nav aria-label="Contents">{}</nav>', items)


def page(section: Section, result: Reported, made_of: str) -> Markup:
    """Return the page of a result, with all cautions about it; ``made_of`` says what it was made of, and how."""
    has_cautions = any(isinstance(item, Section) and item.key == "cautions" for item in section.items)
    cautions = () if has_cautions else caution_sentences(result.cautions)
    weighs = tuple(dict.fromkeys((*section.notes, *cautions, *left_out(result.left_out))))
    header = html(
        "<header>{}<h1>{}</h1>{}{}</header>",
        html('<p class="kicker">{}</p>', section.kicker) if section.kicker else "",
        section.title,
        html('<p class="lede">{}</p>', section.sentence) if section.sentence else "",
        html('<p class="doubt"><a href="#note">What to note</a>: {}.</p>', len(weighs)) if weighs else "",
    )
    below = html('<section id="note"><h2>What to note</h2>{}</section>', notes(weighs)) if weighs else ""
    inner = [(item.key, item.title) for item in section.items if isinstance(item, Section) and item.key and not item.folded]
    links = contents([(section.key, "Answer"), *inner, *([("note", "What to note")] if weighs else [])]) if inner else ""
    main = html('<main><section id="{}">{}</section>{}</main>', section.key, body(section), below)
    return document(section.title, header + html('<div class="columns">{}{}</div>', links, main), made_of)
