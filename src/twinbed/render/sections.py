"""A section (``show/section``) in each form for readers: HTML, lines of text, parts for Markdown, LaTeX and notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from markupsafe import Markup

from twinbed.render import plots
from twinbed.render.collected import Figure as Kept
from twinbed.render.collected import kept
from twinbed.render.colours import light
from twinbed.render.html import as_code, html, notes
from twinbed.render.latex_text import needs
from twinbed.render.tabular import Tabular
from twinbed.show.figure import PAGE, Figure
from twinbed.show.section import Entry, Item, Listing, Matrix, Section
from twinbed.show.table import Table
from twinbed.show.words import SYMBOLS

_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a section says, for Markdown, LaTeX and notebooks: a sentence, and a table where there is one."""

    key: str
    title: str
    sentence: str
    table: Tabular | None = None

    @property
    def label(self) -> str:
        """The name for references to its table in LaTeX."""
        return f"tab-{self.key}"


def tabular(table: Table) -> Tabular:
    """Return a table as readers get it."""
    shown = table.shown
    rows = tuple(tuple(column.text(record) for column in shown) for record in table.records)
    texts = next((at for at, column in enumerate(shown) if column.format), len(shown))
    return Tabular(table.title, table.caption, tuple(column.title for column in shown), rows, texts, table.rule)


def parts(section: Section) -> Iterator[Part]:
    """Yield the section's sentence and what follows it, with its first table unless an inner section has that. Then come other
    tables on paper, and the parts of inner sections that have a sentence. A part's sentence ends with its table's caption."""
    inner = [item for item in section.items if isinstance(item, Section) and (item.sentence or item.mark) and item.in_text]
    apart = replace(section, items=[item for item in section.items if all(item is not nested for nested in inner)])
    tables = [table for table in apart.tables(folded=False) if _is_shown(table)]
    own = [table for table in tables[:1] if any(item is table for item in section.items)]
    sentences = [section.sentence]
    for item in takewhile(
        lambda item: not isinstance(item, Section) and all(item is not table for table in tables), section.items
    ):
        sentences += (item,) if isinstance(item, str) else item if isinstance(item, tuple) else ()
    sentence = " ".join(filter(None, sentences))
    lists = " ".join(f"{item.title}: {'; '.join(item.texts)}." for item in section.items if isinstance(item, Listing))
    if lists and not section.key.startswith("cautions"):
        sentence = f"{sentence} {lists}".strip()
    if not own and (sentence or (not tables and not inner)):
        yield Part(section.key, section.title, sentence)
    yield from (Part("matrix", "", item.caption, matrix_tabular(item)) for item in section.items if isinstance(item, Matrix))
    for table in tables:
        is_first = any(table is other for other in own)
        key, title, text = (section.key, section.title, sentence) if is_first else (table.key, table.title, "")
        shown = replace(tabular(table), caption="")
        yield Part(key, title, f"{text} {table.caption}".strip(), shown)
    for part in inner:
        yield from parts(part)


def latex(section: Section) -> str:
    r"""Return all tables that readers get, for ``\input``; the first line names the packages that they need. The first table is
    ``tab-KEY``, the others are ``tab-KEY-2`` and so on."""
    shown = [tabular(table) for table in section.tables() if _is_shown(table)]
    made = [table.as_latex(f"tab-{section.key}{f'-{at}' if at > 1 else ''}") for at, table in enumerate(shown, 1)]
    texts = [f"% {section.title}: needs {needs(made)}".replace("\n", " "), *made]
    return "\n".join(text if text.isascii() else text.encode("ascii", "replace").decode() for text in texts)


def body(section: Section) -> Markup:
    """Return what is below the section's heading and sentence."""
    return Markup().join(_body(section))


def _body(section: Section) -> Iterator[Markup]:
    several = sum(map(_is_shown, section.tables(folded=False))) > 1
    for kind, items in groupby(section.items, _kind):
        if kind == "cards":
            yield html('<div class="cards">{}</div>', Markup().join(_card(item) for item in items if isinstance(item, Section)))
        elif kind:
            figures = [item for item in items if isinstance(item, Figure)]
            drawn = "drawn" if any(figure.drawing for figure in figures) else ""
            classes = " ".join(filter(None, ("plots", "ladder" if kind == "narrow" else drawn)))
            yield html('<div class="{}">{}</div>', classes, Markup().join(map(_figure, figures)))
        else:
            yield from (_item(item, headed=several) for item in items)


def _kind(item: Item) -> str:
    """Return which figures, or cards, stand together; nothing for other items."""
    if isinstance(item, Section) and item.mark:
        return "cards"
    return ("narrow" if item.is_narrow else "wide") if isinstance(item, Figure) else ""


def _item(item: Item, *, headed: bool) -> Markup:
    """Return an item as HTML, a table below its title if ``headed``."""
    match item:
        case Table() if not _is_shown(item):
            return Markup()
        case Table():
            heading = html("<h3>{}</h3>", item.title) if headed else ""
            return html("{}{}", heading, tabular(item).as_html())
        case Section():
            return _inner(item, body(item))
        case Listing():
            return _listing(item)
        case Matrix():
            return _matrix(item)
        case str():
            return html('<p class="note">{}</p>', item)
        case tuple():
            return notes(item)
        case _:
            raise TypeError(f"a section has no {type(item).__name__}")


def _card(section: Section) -> Markup:
    """Return one testbed's card: its lists below its name and verdict."""
    return html(
        '<article class="card {}"><h3>{} {}</h3>{}</article>',
        section.mark,
        section.title,
        verdict_mark(section.mark),
        Markup().join(_body(section)),
    )


def verdict_mark(verdict: str) -> Markup:
    """Return a verdict with its sign, in its colour."""
    return html('<span class="verdict {}"><span aria-hidden="true">{}</span> {}</span>', verdict, SYMBOLS[verdict], verdict)


def _listing(listing: Listing) -> Markup:
    items = Markup().join(html("<li>{}</li>", as_code(_CODE, text)) for text in listing.texts)
    below = html("<ul>{}</ul>", items) if items else Markup()
    advice = html('<p class="do"><strong>What to do:</strong> {}.</p>', as_code(_CODE, listing.ending))
    shown = below + (advice if listing.ending else Markup())
    return html('<div class="listing {}"><h4>{}</h4>{}</div>', listing.mark, listing.title, shown)


def _matrix(matrix: Matrix) -> Markup:
    """Return the verdicts at a glance; each opens what it rests on."""
    has_cells = len({row.cell for row in matrix.rows}) > 1
    names = ("Metric", *(("Cell",) if has_cells else ()), *matrix.heads)
    heads = Markup().join(html('<th scope="col">{}</th>', name) for name in names)
    number = 0
    bodies = []
    for group, of_group in groupby(matrix.rows, key=lambda row: row.group):
        lines = [html('<tr class="group"><th scope="rowgroup" colspan="{}">{}</th></tr>', len(names), group)]
        for label, of_label in groupby(of_group, key=lambda row: row.label):
            rows = list(of_label)
            for at, row in enumerate(rows):
                first = html('<th scope="row" rowspan="{}">{}</th>', len(rows), label) if at == 0 else ""
                cell = html('<td class="cell">{}</td>', row.cell) if has_cells else ""
                cells = []
                for head, entry in zip(matrix.heads, row.entries, strict=True):
                    number += 1
                    cells.append(_entry(entry, head, f"why-{number}", f"{label}, {row.cell}, {head}"))
                lines.append(html("<tr>{}{}{}</tr>", first, cell, Markup().join(cells)))
        bodies.append(html("<tbody>{}</tbody>", Markup().join(lines)))
    table = html(
        '<table class="matrix"><caption>{} <span class="screen">Press a verdict to see what it is based on.</span></caption>'
        "<thead><tr>{}</tr></thead>{}</table>",
        matrix.caption,
        heads,
        Markup().join(bodies),
    )
    return html('<div class="scroll" tabindex="0">{}</div>', table)


def _entry(entry: Entry | None, head: str, key: str, title: str) -> Markup:
    if entry is None:
        return html('<td data-label="{}"></td>', head)
    shown = html('<span aria-hidden="true">{}</span> {}', SYMBOLS[entry.verdict], entry.word)
    why = Markup().join(html("<dt>{}</dt><dd>{}</dd>", name, text) for name, text in entry.why)
    return html(
        '<td data-label="{}"><button type="button" class="verdict {}" popovertarget="{}">{}</button>'
        '<div id="{}" popover><p class="title">{}</p><dl>{}</dl></div></td>',
        head,
        entry.verdict,
        key,
        shown,
        key,
        title,
        why,
    )


def matrix_tabular(matrix: Matrix) -> Tabular:
    """Return a matrix as texts: ``≠ -30 %`` in the column of each testbed."""
    rows = tuple(
        (row.label, row.cell, *(f"{SYMBOLS[entry.verdict]} {entry.word}" if entry else "" for entry in row.entries))
        for row in matrix.rows
    )
    return Tabular("Headline metrics", matrix.caption, ("Metric", "Cell", *matrix.heads), rows, texts=2)


def _inner(section: Section, below: Markup) -> Markup:
    """Return a section inside another with what is ``below`` its heading; nothing where there is nothing to say."""
    if not section.sentence and not below:
        return Markup()
    if section.folded:
        # Paper has the figures of a folded section too.
        has_figure = any(isinstance(item, Figure) for item in section.items)
        printed = Markup(' class="print"' if section.on_paper or (section.on_paper is None and has_figure) else "")
        anchor = html(' id="{}"', section.key) if section.key else ""
        return html("<details{}{}><summary>{}</summary>{}</details>", anchor, printed, section.title, below)
    sentence = html("<p>{}</p>", section.sentence) if section.sentence else ""
    anchor = html(' id="{}"', section.key) if section.key else ""
    return html("<section{}><h3>{}</h3>{}{}</section>", anchor, section.title, sentence, below)


def _figure(figure: Figure) -> Markup:
    """Return the figure drawn; nothing where figures themselves are wanted instead (``collected``)."""
    draw, label = figure.drawing, figure.label or f"{figure.caption} The table has the numbers."
    if draw is None:
        drawn = plots.svg(figure.spec() if figure.spec else {}, label, figure.name)
    elif kept(lambda: Kept(figure.name, label, drawing=draw(light()))):
        return Markup()
    else:
        drawn = Markup(draw(PAGE))  # Its texts were escaped as it was drawn.
    caption = html("<figcaption>{}</figcaption>", figure.caption) if figure.caption else ""
    return html("<figure>{}{}</figure>", caption, drawn)


def lines(section: Section, *, everything: bool = False) -> Iterator[str]:
    """Yield the lines that a terminal shows, with ``everything`` those of inner sections that it else leaves out."""
    if section.sentence:
        yield section.sentence
    for item in section.items:
        match item:
            case Table() if _is_shown(item):
                yield ""
                yield tabular(item).as_text().removesuffix("\n")
                if item.caption:
                    yield item.caption
            case Section() if (item.in_text or everything) and (inner := [*lines(item, everything=everything)]):
                yield from ("", item.title, *inner)
            case str():
                yield item
            case tuple():
                yield from item
            case Listing():
                yield from (
                    item.title,
                    *(f"  {text}" for text in item.texts),
                    *([f"  -> {item.ending}"] if item.ending else []),
                )
            case Matrix():
                yield matrix_tabular(item).as_text().removesuffix("\n")
            case _:
                pass


def _is_shown(table: Table) -> bool:
    return bool(table.records and table.shown)
