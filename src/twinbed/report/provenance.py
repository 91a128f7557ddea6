"""The part of the page that says why to trust it: cautions, testbeds, settings, runs, and how to repeat it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from twinbed.analyses.compare.result import Comparisons
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.model.tables import Outline, Tables
from twinbed.render.quantities import duration, share
from twinbed.render.words import cell_title
from twinbed.report.facts import Fact, applied, passports, shown
from twinbed.report.files import imported
from twinbed.report.links import links

MOST_RUNS = 2000
"""Rows of the table of runs; failed runs come first where there are more."""


def provenance(tables: Tables, result: Comparisons) -> Iterator[str]:
    """The sections, in order."""
    outline = tables.outline
    testbeds = sorted(outline.testbeds, key=lambda name: name != outline.reference)
    yield from _cautions(result)
    yield from _testbeds(tables, testbeds, passports(tables), applied(tables))
    yield from _runs(tables)
    yield from imported(outline)
    yield from _repeat(tables)


def _cautions(result: Comparisons) -> Iterator[str]:
    yield '<section id="cautions"><h2>Cautions</h2>'
    if not result.cautions:
        yield "<p>None: no run gave a reason to doubt it.</p>"
    for kind in dict.fromkeys(each.kind for each in result.cautions):
        about = [each for each in result.cautions if each.kind is kind]
        texts = [": ".join(part for part in (each.subject, each.detail) if part) for each in about]
        items = "".join(f"<li>{escape(text)}</li>" for text in texts if text)
        meaning = kind.meaning[0].upper() + kind.meaning[1:]
        yield (
            f'<div class="caution"><h3>{escape(meaning)}</h3><ul>{items}</ul>'
            f"<p><strong>What to do:</strong> {_code(kind.advice)}.</p></div>"
        )
    yield "</section>"


def _code(text: str) -> str:
    """Escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _testbeds(tables: Tables, testbeds: Sequence[str], facts: Sequence[Fact], settings: Sequence[Fact]) -> Iterator[str]:
    yield '<section id="testbeds"><h2>Testbeds</h2>'
    imported_from = "From the files, and what was said of them."
    origin = imported_from if "import" in tables.outline.data else "Read from the running systems."
    differing = [fact for fact in facts if fact.differs(testbeds)]
    same = [fact for fact in facts if not fact.differs(testbeds)]
    yield f"<h3>What differs between them ({len(differing)} facts)</h3>"
    if differing:
        yield _facts(
            testbeds,
            differing,
            f"{origin} Marked: not as on {testbeds[0]}. Several values are separated by |.",
        )
    else:
        yield "<p>Nothing that was recorded.</p>"
    if same:
        yield f'<details class="print"><summary>What is the same on all ({len(same)} facts)</summary>'
        yield _facts(testbeds, same, origin) + "</details>"
    if settings:
        yield "<h3>Settings: asked and read back</h3>"
        yield f"<p>{len(settings)} settings were read back from the system after they were set.</p>"
        yield f'<details class="print"{" open" if len(settings) <= 12 else ""}><summary>All settings</summary>'
        yield _settings(testbeds, settings) + "</details>"
    yield from links(tables)
    yield "</section>"


def _heads(names: Sequence[str]) -> str:
    return "".join(f'<th scope="col">{escape(name)}</th>' for name in names)


def _facts(testbeds: Sequence[str], facts: Sequence[Fact], caption: str) -> str:
    rows = []
    for fact in facts:
        cells = "".join(f"<td{_mark(fact, name, testbeds)}>{escape(shown(fact.values, name))}</td>" for name in testbeds)
        rows.append(f'<tr><th scope="row">{escape(fact.place)}: {escape(fact.name)}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="facts"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{_heads(['Fact', *testbeds])}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _mark(fact: Fact, testbed: str, testbeds: Sequence[str]) -> str:
    """Marks what is not as on the reference, which comes first."""
    differs = fact.values.get(testbed, ()) != fact.values.get(testbeds[0], ())
    return f' class="fact{" differs" if differs else ""}"'


def _settings(testbeds: Sequence[str], settings: Sequence[Fact]) -> str:
    rows = []
    for setting in settings:
        cells = []
        for name in testbeds:
            asked, found = shown(setting.asked, name), shown(setting.values, name)
            text = escape(found) if asked == found or asked in ("null", "–") else f"{escape(found)} (asked {escape(asked)})"
            cells.append(f"<td{_mark(setting, name, testbeds)}>{text}</td>")
        rows.append(
            f'<tr><th scope="row">{escape(setting.place)}: {escape(setting.name)}</th>{"".join(cells)}'
            f'<td class="fact"><code>{escape(setting.source)}</code></td></tr>'
        )
    return (
        '<div class="scroll"><table class="facts"><caption>As found; what was asked where it reads otherwise.</caption>'
        f"<thead><tr>{_heads(['Setting', *testbeds, 'Read by'])}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _runs(tables: Tables) -> Iterator[str]:
    records = sorted(tables.records, key=lambda record: record.position)
    failed = [record for record in records if record.status is Status.FAILED]
    made = {record.id for record in records}
    missing = sum(run.id not in made for run in tables.planned)
    yield '<section id="runs"><h2>Runs</h2>'
    yield f"<p>{len(records) - len(failed)} complete, {len(failed)} failed, {missing} not made.</p>"
    if failed:
        yield "<h3>Failures</h3><ul>"
        reasons = list(dict.fromkeys(f"{record.failed_phase}: {record.reason}" for record in failed))
        for reason in reasons[:20]:
            runs = [record.id for record in failed if f"{record.failed_phase}: {record.reason}" == reason]
            ids = ", ".join(runs[:5]) + (f" and {len(runs) - 5} more" if len(runs) > 5 else "")
            yield f'<li>{escape(reason)} <span class="note">({escape(ids)})</span></li>'
        yield "</ul>"
    if len(records) > MOST_RUNS:
        records = [*failed, *(record for record in records if record.status is not Status.FAILED)][:MOST_RUNS]
    yield f"<details><summary>The {len(records)} runs, in the order they were made</summary>"
    yield '<p class="screen"><label><input type="checkbox" id="only-failed"> only failed runs</label></p>'
    heads = _heads(["order", "run", "testbed", "cell", "replicate", "status", "started (UTC)", "took"])
    yield f'<div class="scroll"><table class="sortable" id="runs-table"><thead><tr>{heads}</tr></thead><tbody>'
    yield from (_run(record) for record in records)
    yield "</tbody></table></div></details></section>"


def _run(record: Record) -> str:
    seconds = sum(record.phases.values())
    failed = record.status is Status.FAILED
    status = f"{record.status} in {record.failed_phase}: {record.reason}" if failed else str(record.status)
    levels = {factor: level for factor, level in record.levels.items() if factor != "testbed"}
    started = datetime.fromtimestamp(record.started_s, UTC)
    cells = [
        str(record.position + 1),
        f"<code>{escape(record.id)}</code>",
        escape(str(record.settings["testbed"]["name"])),
        escape(cell_title(levels)),
        str(record.replicate + 1),
        escape(status),
        f"{started:%Y-%m-%d %H:%M:%S}",
    ]
    row = "".join(f"<td>{cell}</td>" for cell in cells)
    mark = ' class="failed"' if failed else ""
    took = duration(seconds) if record.phases else "–"
    return f'<tr{mark}>{row}<td data-value="{seconds}">{took}</td></tr>'


def _repeat(tables: Tables) -> Iterator[str]:
    outline = tables.outline
    yield '<section id="repeat"><h2>Repeat it</h2>'
    made = outline.data.get("commands") or [_run_command(outline)]
    commands = "\n".join([*made, f"twinbed report results/{shlex.quote(outline.name)}"])
    yield f"<pre><code>{escape(commands)}</code></pre>"
    items = (
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>"
        for name, value in _conditions(tables)
        if value not in (None, "")
    )
    yield f"<dl>{''.join(items)}</dl>"
    if outline.source and outline.source != "\n".join(outline.data.get("commands") or ()):
        title = "The manifest" if "import" in outline.data else "The study file"
        yield f"<h3>{title}</h3><pre><code>{escape(outline.source)}</code></pre>"
    yield "</section>"


def _run_command(outline: Outline) -> str:
    options = f" --profile {shlex.quote(str(outline.data['profile']))}" if outline.data.get("profile") else ""
    options += "".join(f" -s {shlex.quote(str(override))}" for override in outline.data.get("overrides") or ())
    return f"twinbed run {shlex.quote(Path(str(outline.data.get('filename') or 'study.yaml')).name)}{options}"


def _conditions(tables: Tables) -> Iterator[tuple[str, Any]]:
    outline = tables.outline
    reason = outline.data.get("reference_reason")
    times = [record.started_s for record in tables.records]
    yield "seed of the order", outline.seed
    yield "order", outline.data.get("order")
    until = outline.looks
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
