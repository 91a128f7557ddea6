"""The handbook: findings of the papers, compared with own results. The manual uses the archives in docs/measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from manual.markdown import table
from twinbed.cli.inputs import ResultsFolders
from twinbed.cli.published import own
from twinbed.model.result import Verdict
from twinbed.published.claims import Checked, check_all
from twinbed.published.printed import Library, library
from twinbed.published.printed_metrics import Own, printed_with_own
from twinbed.published.verdicts import Held, compare
from twinbed.report.advice.analysis import advise
from twinbed.report.advice.result import Advice, Open, Topic
from twinbed.report.advice.study import Settings
from twinbed.report.advice.text import TITLES, bases, details, lede
from twinbed.report.advice.words import numbers
from twinbed.show.words import heading, metric_name

ROOT = Path(__file__).parents[1]
MEASURED = tuple(sorted((ROOT / "docs/measured").glob("*.zip")))
"""Archives of the results that were measured for the page."""
MARGIN = 0.10
MOST_CASES = 3
NOT_MEASURED = "not measured here"
WALKS = "sequences of system calls"


READING = """Verdicts on printed numbers are twinbed's, at a margin of 10 %: *equivalent*, *different* or *inconclusive*.
They need a printed n and a printed spread; without these there is a ratio only. *measured* has the verdicts of our own results
in the same place. *agree* compares the two. Cautions about the printed side are in the table; those about the measured side are
with the rules at the end.
"""


@dataclass(frozen=True)
class Place:
    """The table, testbed and payload of a line."""

    table: str
    testbed: str
    payload: str


def text(results: Sequence[Path]) -> str:
    """Return what the papers found, metric by metric, and what results say of it."""
    found = library()
    claims = check_all(found)
    held = compare(found, MARGIN)
    measured = [each for folder in results for each in own(folder, MARGIN)]
    advice = _advice(results)
    lines = [*_rules_first(claims, held, advice), "## What was found, metric by metric\n", READING]
    for metric in _metrics(found, claims, held):
        lines += _metric(found, metric, claims, held, measured)
    lines += _measured(advice)
    return "\n".join(lines)


def _advice(results: Sequence[Path]) -> Advice:
    """Return the advice of results. The page has their names, not their places on this machine."""
    found = advise([ResultsFolders().tables(folder) for folder in results], Settings())
    return replace(found, bases=tuple(replace(each, source=Path(each.source).name) for each in found.bases))


def _metrics(found: Library, claims: Sequence[Checked], held: Sequence[Held]) -> list[str]:
    """Return the metrics that are compared, then those that only sentences are about."""
    return list(dict.fromkeys([*(row.metric for row in held), *(_metric_of(found, each) for each in claims)]))


def _metric_of(found: Library, checked: Checked) -> str:
    return WALKS if ":" in checked.claim.left else found.select(checked.claim.left)[0].metric


def _rules_first(claims: Sequence[Checked], held: Sequence[Held], advice: Advice) -> Iterator[str]:
    holding = sum(not each.wrong for each in claims)
    verdicts = Counter(row.verdict for row in held)
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict)
    yield "## In short\n"
    yield f"- The papers' statements about their own tables hold in {holding} of {len(claims)} checks."
    yield f"- The papers print {len(held)} comparisons of a virtual testbed with the physical one: {counts},"
    yield f"  {verdicts[None]} without an interval."
    yield f"- Measured here: {lede(advice)[:1].lower()}{lede(advice)[1:]}"
    yield from (f"- {each}." for each in bases(advice))
    yield ""


def _metric(
    found: Library, metric: str, claims: Sequence[Checked], held: Sequence[Held], measured: Sequence[Own]
) -> Iterator[str]:
    yield f"### {heading(metric_name(metric))}\n"
    sentences = [line for each in claims if _metric_of(found, each) == metric for line in _claim(each)]
    yield from (*sentences, "") if sentences else ()
    rows = [row for row in held if row.metric == metric]
    if not rows:
        return
    places: dict[Place, list[Held]] = {}
    for row in rows:
        places.setdefault(Place(row.table, row.testbed, row.labels.get("payload", "")), []).append(row)
    pairs = list(printed_with_own(found, rows, measured))
    heads = ("table", "testbed", "payload", "cells", "ratio", "printed", "cautions", "measured", "agree")
    lines = []
    for place, of_place in places.items():
        ours = list(dict.fromkeys(each for row, each in pairs if row in of_place and each is not None))
        lines.append(tuple(_line(place, of_place, ours)))
    yield table(heads, lines)


def _claim(each: Checked) -> Iterator[str]:
    """Yield the sentence, its place, how it was checked, and whether the printed numbers support it."""
    claim, cases = each.claim, len(each.cases)
    checked = "" if ":" in claim.left else f"{claim.measure} {claim.relation} {claim.bound} in "
    of_cases = f"{checked}{claim.quantifier} of {cases} case{'s' if cases > 1 else ''}"
    said = f'- "{claim.quote}" ({claim.source}, {claim.place}). Checked: {of_cases}'
    if not each.wrong:
        yield f"{said}: holds."
        return
    shown = "; ".join(case.arithmetic for case in each.wrong[:MOST_CASES])
    more = f"; and {len(each.wrong) - MOST_CASES} more" if len(each.wrong) > MOST_CASES else ""
    yield f"{said}: **does not hold**: {shown}{more}."


def _line(place: Place, rows: Sequence[Held], ours: Sequence[Own]) -> Iterator[str]:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    cautions = dict.fromkeys(caution for row in rows for caution in row.cautions)
    yield from (place.table, place.testbed, place.payload, str(len(rows)))
    yield numbers(min(ratios), max(ratios)) if ratios else ""
    yield _verdicts([row.verdict for row in rows]) or "ratio only"
    yield "; ".join(cautions)
    if not ours:
        yield from (NOT_MEASURED, "")
        return
    own_ratios = [each.ratio for each in ours if each.ratio is not None]
    shown = numbers(min(own_ratios), max(own_ratios)) if own_ratios else ""
    own_verdicts = [Verdict(each.verdict) for each in ours]
    yield f"{shown} ({_verdicts(own_verdicts)})".strip()
    yield _agreement({row.verdict for row in rows}, set(own_verdicts))


def _verdicts(verdicts: Sequence[Verdict | None]) -> str:
    counts = Counter(verdicts)
    known = [verdict for verdict in Verdict if counts[verdict]]
    alone = len(known) == 1 and counts[known[0]] == len(verdicts)
    return str(known[0]) if alone else ", ".join(f"{counts[verdict]} {verdict}" for verdict in known)


def _agreement(printed: set[Verdict | None], measured: set[Verdict]) -> str:
    """Return whether both sides agree. A side with several verdicts, or an inconclusive one, leaves it open."""
    decided = {Verdict.EQUIVALENT, Verdict.DIFFERENT}
    if len(printed) > 1 or len(measured) > 1 or not printed <= decided or not measured <= decided:
        return "open"
    return "agree" if printed == measured else "differ"


def _measured(advice: Advice) -> Iterator[str]:
    yield "## What was measured here\n"
    for topic in Topic:
        statements = [each for each in advice.statements if each.topic is topic]
        if statements:
            yield f"### {TITLES[topic]}\n"
        for each in statements:
            yield f"- {each.sentence}"
            yield from (f"  - {line}" for line in details(each))
        yield ""
    if advice.open:
        yield "### Cannot tell yet\n"
        yield "In brackets: about how many runs of each cell would decide all cells of that metric.\n"
        yield from _open(advice)
        yield ""


def _open(advice: Advice) -> Iterator[str]:
    """Yield a line for each contrast, with its inconclusive metrics."""
    together: dict[tuple[str, str], dict[str, list[Open]]] = {}
    for each in advice.open:
        of = together.setdefault((each.contrast.subject, each.contrast.against), {})
        of.setdefault(each.metric, []).append(each)
    for (subject, against), metrics in together.items():
        every = [each for of in metrics.values() for each in of]
        runs = sorted({each.runs for each in every})
        now = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        listed = ", ".join(map(_settled, metrics, metrics.values()))
        yield f"- {subject} against {against}, {now} runs of each cell now: {listed}."


def _settled(metric: str, of: Sequence[Open]) -> str:
    wanted = [each.replicates for each in of]
    most = max((each for each in wanted if each is not None), default=None)
    return f"{metric} ({'no number' if most is None or None in wanted else f'{most:,}'})"
