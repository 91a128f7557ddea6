"""The part of the page that shows what was measured of links: asked, measured, tolerance, verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from markupsafe import Markup

from twinbed.model.linkcheck import Figure, LinkCheck
from twinbed.model.tables import Tables
from twinbed.render.html import html
from twinbed.report.facts import MISSING
from twinbed.show.words import cell_title

_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "1": ((1e-2, "%"),),
}


def links(tables: Tables) -> Iterator[Markup]:
    """Yield nothing where no links were checked."""
    if not tables.link_checks:
        return
    failed = sum(check.reason is not None for check in tables.link_checks)
    yield Markup("<h3>Links: asked and measured</h3>")
    yield html(
        "<p>Before the first run of a cell its links were measured: {} checks, {} failed. "
        "The runs of a cell whose links are out of tolerance are not made.</p>",
        len(tables.link_checks),
        failed,
    )
    for (measured, pairs), number in sorted(Counter(_pairs(check) for check in tables.link_checks).items()):
        if measured < pairs:
            how_many = f"{measured} of {pairs} pairs {'was' if measured == 1 else 'were'} measured, from the first on"
            if measured == 0:
                how_many = f"none of {pairs} pairs could be measured"
            yield html(
                "<p>In {} of the checks {}. What is set on the links of the others was read back.</p>",
                number,
                how_many,
            )
    yield html(
        '<details class="print"{}><summary>All measurements of links</summary>',
        " open" if failed else "",
    )
    heads = ["Cell", "Path", "Quantity", "Asked", "Measured", "Tolerance", "Verdict", "Note"]
    columns = Markup().join(html('<th scope="col">{}</th>', head) for head in heads)
    yield html(
        '<div class="scroll" tabindex="0"><table class="facts" id="links-table"><thead><tr>{}</tr></thead><tbody>',
        columns,
    )
    for check in sorted(tables.link_checks, key=lambda check: check.reason is None):
        for figure in check.figures:
            cells = [_cell(check, tables), *_row(figure)]
            yield html("<tr>{}</tr>", Markup().join(html("<td>{}</td>", cell) for cell in cells))
    yield Markup("</tbody></table></div></details>")


def _pairs(check: LinkCheck) -> tuple[int, int]:
    """Return how many were measured, of how many; nothing where the check does not say."""
    return (0, 0) if check.measured_pairs is None or check.pairs is None else (len(check.measured_pairs), check.pairs)


def _cell(check: LinkCheck, tables: Tables) -> str:
    """Return the cell in words, by the run that the check was made in."""
    levels = next((record.levels for record in tables.records if record.id == check.run), None)
    return check.cell if levels is None else cell_title(levels)


def _row(figure: Figure) -> list[str]:
    least, most = quantity(figure.least, figure.unit), quantity(figure.most, figure.unit)
    tolerance = f"up to {most}" if figure.least is None else f"{least} to {most}"
    if figure.most is None:
        tolerance = MISSING
    asked, measured = quantity(figure.asked, figure.unit), quantity(figure.measured, figure.unit)
    return [figure.path, figure.quantity, asked, measured, tolerance, str(figure.verdict), figure.note]


def quantity(value: float | None, unit: str) -> str:
    """Return the number with four digits, in the unit that suits it.

    >>> quantity(9.413e8, "bit/s"), quantity(0.0105, "s"), quantity(0.001, "1"), quantity(None, "B")
    ('941.3 Mbit/s', '10.5 ms', '0.1 %', '–')
    """
    if value is None:
        return MISSING
    scales = _SCALES[unit]
    factor, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    return f"{value / factor:.4g} {name}"
