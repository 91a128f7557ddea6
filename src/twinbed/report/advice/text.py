"""Advice as text that fits 80 columns, and as Markdown."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from twinbed.model.amount import amount
from twinbed.render.markdown import code, plain, table
from twinbed.render.tabular import Tabular
from twinbed.report.advice.result import Advice, Contradiction, Count, Statement, Topic, Trusted
from twinbed.report.advice.words import contradiction_texts, contrast_text, evidence, metric_of, open_text
from twinbed.show.numbers import joined
from twinbed.show.quantities import share
from twinbed.show.words import LAYERS, heading

WIDTH = 80
TITLES = {
    Topic.STANDS_IN: "Which testbed can replace which",
    Topic.SETTING: "Effects of settings",
    Topic.FITS: "How many fit",
}
CONTRADICTIONS = "Results that contradict each other"
TRUST, OPEN = "Metrics to trust", "Inconclusive, and what would decide"
NOTHING = "No advice: these results prove no rule. The list below shows how many runs would decide."


def text(advice: Advice) -> Iterator[str]:
    """Yield the lines of the text."""
    yield from _wrapped(lede(advice))
    for note in (*bases(advice), *advice.notes):
        yield from _wrapped(f"{note}.", "- ", "  ")
    if advice.contradictions:
        yield from ("", CONTRADICTIONS)
    for contradiction in advice.contradictions:
        first, *both = contradiction_texts(contradiction)
        yield from _wrapped(f"{first}.", "  ! ", "    ")
        for line in both:
            yield from _wrapped(line, "    - ", "      ")
        yield f"    $ {passport_command(contradiction)}"
    number = 0
    for topic in Topic:
        of_topic = [statement for statement in advice.statements if statement.topic is topic]
        if of_topic:
            yield from ("", TITLES[topic])
        for statement in of_topic:
            number += 1
            yield from _wrapped(statement.sentence, f"{number:3}. ", "     ")
            for line in details(statement):
                yield from _wrapped(line, "     - ", "       ")
            # A command has to stay in one line to be copied.
            yield f"     $ {statement.command}"
    if advice.trusted:
        yield from ("", TRUST)
        for trusted in advice.trusted:
            yield from _wrapped(
                f"{trusted.testbed} against {trusted.against}, {_layer(trusted)}: {trusted_text(trusted)}", "  ", "    "
            )
    if advice.open:
        yield from ("", OPEN)
        for contrast in dict.fromkeys(metric.contrast for metric in advice.open):
            yield from _wrapped(f"{contrast_text(contrast)} ({contrast.source}):", "  ", "  ")
            for entry in advice.open:
                if entry.contrast == contrast:
                    yield from _wrapped(open_text(entry), "  - ", "    ")


def markdown(advice: Advice) -> Iterator[str]:
    """Yield the lines of the Markdown."""
    yield from ("# Advice", "", plain(lede(advice)), "")
    yield from (f"- {plain(note)}." for note in (*bases(advice), *advice.notes))
    if advice.contradictions:
        yield from ("", f"## {CONTRADICTIONS}", "")
    for contradiction in advice.contradictions:
        first, *both = contradiction_texts(contradiction)
        yield f"- **{plain(first)}.**"
        yield from (f"  - {line}" for line in (*map(plain, both), code(passport_command(contradiction))))
    for topic in Topic:
        of_topic = [statement for statement in advice.statements if statement.topic is topic]
        if of_topic:
            yield from ("", f"## {TITLES[topic]}", "")
        for statement in of_topic:
            yield f"- **{plain(statement.sentence)}**"
            yield from (f"  - {line}" for line in (*map(plain, details(statement)), code(statement.command)))
    if advice.trusted:
        yield from ("", f"## {TRUST}", "")
        yield from table(trust_table(advice.trusted))
    if advice.open:
        yield from ("", f"## {OPEN}", "")
        yield from (f"- {plain(contrast_text(metric.contrast))}: {plain(open_text(metric))}" for metric in advice.open)


def lede(advice: Advice) -> str:
    """Return the first sentences: how many rules, and how sure they are."""
    count = len(advice.statements)
    if not count:
        return NOTHING
    return (
        f"{amount(count, 'rule of thumb', 'rules of thumb')}. The chance that any rule here is wrong is at most "
        f"{share(advice.error)} (corrected for {advice.tested} tests). Limits in brackets cover the confidence intervals "
        "of all cells of a rule."
    )


def bases(advice: Advice) -> Iterator[str]:
    """Yield a line for each of the results, and its testbeds that are no machines."""
    for base in advice.bases:
        against = f", compared with {base.reference}" if base.reference else ""
        yield f"{base.source}: {base.study}, {base.runs} runs{against}; margin {share(base.margin)}"
        yield from base.unreal


def details(statement: Statement) -> Iterator[str]:
    """Yield the evidence of each metric, and the cautions."""
    alike: dict[str, list[str]] = {}
    for rule in statement.rules:
        alike.setdefault(evidence(rule), []).append(metric_of(rule))
    for shown, metrics in alike.items():
        yield f"{joined(metrics)}: {shown}" if len(statement.rules) > 1 else shown
    if statement.cautions:
        yield f"cautions: {'; '.join(kind.meaning for kind in statement.cautions)}"


def passport_command(contradiction: Contradiction) -> str:
    """Return the command that shows what differs between both results."""
    return (
        f"twinbed passport {shlex.quote(contradiction.equivalent[0].source)} {shlex.quote(contradiction.different[0].source)}"
    )


def trusted_text(trusted: Trusted) -> str:
    """Return such as ``in all cells: requests per second; in some: packets per request (2 of 6); in none: jitter``."""
    return "; ".join(f"{name}: {', '.join(counts)}" for name, counts in zip(GRADES, _graded(trusted), strict=True) if counts)


GRADES = ("in all cells", "in some cells", "in no cell")


def _graded(trusted: Trusted) -> tuple[list[str], list[str], list[str]]:
    of_all = [count.metric for count in trusted.metrics if count.equivalent == count.cells]
    some = [
        f"{count.metric} ({count.equivalent} of {count.cells}{_different(count)})"
        for count in trusted.metrics
        if _is_some(count)
    ]
    never = [f"{count.metric}{_of_never(count)}" for count in trusted.metrics if not count.equivalent]
    return of_all, some, never


def _is_some(count: Count) -> bool:
    return 0 < count.equivalent < count.cells


def _different(count: Count) -> str:
    return f", {count.different} differ{'' if count.different > 1 else 's'}" if count.different else ""


def _of_never(count: Count) -> str:
    return f" ({count.different} of {count.cells} differ)" if count.different else ""


def _layer(trusted: Trusted) -> str:
    return LAYERS.get(trusted.layer, trusted.layer).partition(":")[0].lower()


def trust_table(trusted: Sequence[Trusted]) -> Tabular:
    """Return a row for each testbed and layer, with the results where there are several."""
    several = len({row.source for row in trusted}) > 1
    rows = (
        (
            *([row.source] if several else ()),
            row.testbed,
            row.against,
            heading(_layer(row)),
            *("; ".join(counts) for counts in _graded(row)),
        )
        for row in trusted
    )
    heads = (*(["Results"] if several else ()), "Testbed", "Against", "Layer", *(heading(name) for name in GRADES))
    return Tabular(TRUST, "Cells in which each metric is equivalent.", heads, tuple(rows), texts=len(heads))


def _wrapped(line: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        line, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
