"""Write the part of the page on why to trust it: testbeds, settings, runs, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup, escape

from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.model.tables import Outline, Tables
from twinbed.render.html import html
from twinbed.render.tabular import Tabular
from twinbed.report.facts import MISSING, Fact, applied, passports, shown
from twinbed.report.files import imported
from twinbed.report.links import links
from twinbed.show.quantities import duration, share
from twinbed.show.words import cell_title

MOST_RUNS = 2000
"""Rows of the table of runs; failed runs come first where there are more."""


AS_FOUND = "As found; (asked) where that differs. A value that stands once is the same on all testbeds."


def provenance(tables: Tables) -> Iterator[Markup]:
    """Yield the sections, in order."""
    outline = tables.outline
    testbeds = sorted(outline.testbeds, key=lambda name: name != outline.reference)
    yield from _testbeds(tables, testbeds, passports(tables), applied(tables))
    yield from _runs(tables)
    yield from imported(outline)
    yield from _repeat(tables)


def _testbeds(tables: Tables, testbeds: Sequence[str], facts: Sequence[Fact], settings: Sequence[Fact]) -> Iterator[Markup]:
    yield Markup('<section id="testbeds"><h2>Testbeds</h2>')
    imported_from = "From the files and their manifest."
    origin = imported_from if "import" in tables.outline.data else "Read from the running systems."
    differing = [fact for fact in facts if fact.differs(testbeds)]
    same = [fact for fact in facts if not fact.differs(testbeds)]
    yield html("<h3>What differs between them ({} facts)</h3>", len(differing))
    if differing:
        yield _facts(
            testbeds,
            differing,
            "Fact",
            f"{origin} Marked: different from {testbeds[0]}. Several values are separated by |.",
        )
    else:
        yield Markup("<p>No recorded fact.</p>")
    if same:
        yield html('<details class="print"><summary>The same on all ({} facts)</summary>', len(same))
        rows = tuple((f"{fact.place}: {fact.name}", shown(fact.values, testbeds[0])) for fact in same)
        yield Tabular("", origin, ("Fact", "Value"), rows, texts=2).as_html() + Markup("</details>")
    if settings:
        yield Markup("<h3>Settings: asked and read back</h3>")
        places = sum(setting.place.count(", ") + 1 for setting in settings)
        yield html("<p>{} settings were read back from the system after they were set.</p>", places)
        yield html(
            '<details class="print"{}><summary>All settings</summary>',
            " open" if len(settings) <= 12 else "",
        )
        yield _facts(testbeds, settings, "Setting", AS_FOUND) + Markup("</details>")
    yield from links(tables)
    yield Markup("</section>")


def _heads(names: Sequence[str]) -> Markup:
    return Markup().join(html('<th scope="col">{}</th>', name) for name in names)


def _facts(testbeds: Sequence[str], facts: Sequence[Fact], title: str, caption: str) -> Markup:
    """Return a table with one line a fact. A value that all testbeds share stands once."""
    with_sources = any(fact.source for fact in facts)
    rows = []
    for fact in facts:
        values = [_value(fact, name) for name in testbeds]
        if fact.differs(testbeds) or len(set(values)) > 1:
            marks = (Markup(' class="differs"') if fact.differs([testbeds[0], name]) else "" for name in testbeds)
            cells = Markup().join(html("<td{}>{}</td>", mark, value) for mark, value in zip(marks, values, strict=True))
        else:
            cells = html('<td colspan="{}">{}</td>', len(testbeds), values[0])
        source = html("<td><code>{}</code></td>", fact.source) if with_sources else ""
        rows.append(html('<tr><th scope="row">{}: {}</th>{}{}</tr>', fact.place, fact.name, cells, source))
    return html(
        '<div class="scroll" tabindex="0"><table class="facts"><caption>{}</caption>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        caption,
        _heads([title, *testbeds, *(["Read by"] if with_sources else [])]),
        Markup().join(rows),
    )


def _value(fact: Fact, testbed: str) -> Markup:
    """Return a fact as found on a testbed, with what was asked where that differs."""
    asked, actual = shown(fact.asked, testbed), shown(fact.values, testbed)
    return escape(actual) if asked in (actual, "null", MISSING) else html("{} (asked {})", actual, asked)


def _runs(tables: Tables) -> Iterator[Markup]:
    records = sorted(tables.records, key=lambda record: record.position)
    failed = [record for record in records if record.status is Status.FAILED]
    made = {record.id for record in records}
    missing = sum(run.id not in made for run in tables.planned)
    yield Markup('<section id="runs"><h2>Runs</h2>')
    yield html("<p>{} complete, {} failed, {} not made.</p>", len(records) - len(failed), len(failed), missing)
    if failed:
        yield Markup("<h3>Failures</h3><ul>")
        reasons = list(dict.fromkeys(f"{record.failed_phase}: {record.reason}" for record in failed))
        for reason in reasons[:20]:
            runs = [record.id for record in failed if f"{record.failed_phase}: {record.reason}" == reason]
            ids = ", ".join(runs[:5]) + (f" and {len(runs) - 5} more" if len(runs) > 5 else "")
            yield html('<li>{} <span class="note">({})</span></li>', reason, ids)
        yield Markup("</ul>")
    if len(records) > MOST_RUNS:
        records = [*failed, *(record for record in records if record.status is not Status.FAILED)][:MOST_RUNS]
    yield html("<details><summary>The {} runs, in the order they were made</summary>", len(records))
    yield Markup('<p class="screen"><label><input type="checkbox" id="only-failed"> only failed runs</label></p>')
    heads = _heads(["order", "run", "testbed", "cell", "replicate", "status", "started (UTC)", "took"])
    yield html(
        '<div class="scroll" tabindex="0"><table class="sortable" id="runs-table"><thead><tr>{}</tr></thead><tbody>',
        heads,
    )
    yield from (_run(record) for record in records)
    yield Markup("</tbody></table></div></details></section>")


def _run(record: Record) -> Markup:
    seconds = sum(record.phases.values())
    failed = record.status is Status.FAILED
    status = f"{record.status} in {record.failed_phase}: {record.reason}" if failed else str(record.status)
    levels = {factor: level for factor, level in record.levels.items() if factor != "testbed"}
    started = datetime.fromtimestamp(record.started_s, UTC)
    cells = [
        str(record.position + 1),
        html("<code>{}</code>", record.id),
        escape(str(record.settings["testbed"]["name"])),
        escape(cell_title(levels)),
        str(record.replicate + 1),
        escape(status),
        f"{started:%Y-%m-%d %H:%M:%S}",
    ]
    row = Markup().join(html("<td>{}</td>", cell) for cell in cells)
    mark = Markup(' class="failed"') if failed else ""
    took = duration(seconds) if record.phases else "–"
    return html('<tr{}>{}<td data-value="{}">{}</td></tr>', mark, row, seconds, took)


def _repeat(tables: Tables) -> Iterator[Markup]:
    outline = tables.outline
    yield Markup('<section id="repeat"><h2>Repeat it</h2>')
    made = outline.data.get("commands") or [_run_command(outline)]
    commands = "\n".join([*made, f"twinbed report results/{shlex.quote(outline.name)}"])
    yield html('<pre tabindex="0"><code>{}</code></pre>', commands)
    items = (html("<dt>{}</dt><dd>{}</dd>", name, str(value)) for name, value in _conditions(tables) if value not in (None, ""))
    yield html("<dl>{}</dl>", Markup().join(items))
    if outline.source and outline.source != "\n".join(outline.data.get("commands") or ()):
        title = "The manifest" if "import" in outline.data else "The study file"
        yield html('<h3>{}</h3><pre tabindex="0"><code>{}</code></pre>', title, outline.source)
    yield Markup("</section>")


def _run_command(outline: Outline) -> str:
    options = f" --profile {shlex.quote(str(outline.data['profile']))}" if outline.data.get("profile") else ""
    options += "".join(f" -s {shlex.quote(str(override))}" for override in outline.data.get("overrides") or ())
    return f"twinbed run {shlex.quote(Path(str(outline.data.get('filename') or 'study.yaml')).name)}{options}"


def _conditions(tables: Tables) -> Iterator[tuple[str, object]]:
    outline = tables.outline
    reason = outline.data.get("reference_reason")
    times = [record.started_s for record in tables.records]
    yield "seed of the order", outline.seed
    yield "order", outline.data.get("order")
    until = outline.interim
    yield "replicates", f"{until.least} to {until.most}, until decided" if until else outline.data.get("replicates")
    yield "reference", f"{outline.reference} ({reason})" if reason else outline.reference
    yield "margin, confidence", f"{share(outline.margin)}, {share(outline.confidence)}"
    for source in outline.data.get("sources") or ():
        names = ", ".join(old if old == new else f"{old} as {new}" for old, new in source["testbeds"].items())
        yield f"from {source['name']}", f"{source['runs']} runs of {names}"
    yield "twinbed", ", ".join(sorted({record.twinbed for record in tables.records}))
    if times:
        first, last = (f"{datetime.fromtimestamp(time, UTC):%F %H:%M}" for time in (min(times), max(times)))
        yield "measured (UTC)", f"{first} to {last}"
