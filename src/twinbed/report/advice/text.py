"""Advice as text that fits 80 columns, and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from twinbed.render.quantities import share
from twinbed.render.tabular import Tabular
from twinbed.render.words import LAYERS, heading
from twinbed.report.advice.result import Advice, Count, Rule, Topic, Trusted
from twinbed.report.advice.words import contrast_text, evidence, open_text

WIDTH = 80
TITLES = {
    Topic.STANDS_IN: "What stands in for what",
    Topic.SETTING: "What settings do",
    Topic.FITS: "How many fit",
}
TRUST, OPEN = "Which metrics to trust", "Not settled, and what would settle it"
NOTHING = "No advice: nothing is shown of these results. What is open says what would settle it."


def text(advice: Advice) -> Iterator[str]:
    """Its lines."""
    yield from _wrapped(lede(advice))
    for note in (*bases(advice), *advice.notes):
        yield from _wrapped(f"{note}.", "- ", "  ")
    number = 0
    for topic in Topic:
        of_topic = [rule for rule in advice.rules if rule.topic is topic]
        if of_topic:
            yield from ("", TITLES[topic])
        for rule in of_topic:
            number += 1
            yield from _wrapped(rule.sentence, f"{number:3}. ", "     ")
            for line in details(rule):
                yield from _wrapped(line, "     - ", "       ")
            # A command has to stay in one line to be copied.
            yield f"     $ {rule.command}"
    if advice.trusted:
        yield from ("", TRUST)
        for each in advice.trusted:
            yield from _wrapped(f"{each.testbed} against {each.against}, {_layer(each)}: {trusted_text(each)}", "  ", "    ")
    if advice.open:
        yield from ("", OPEN)
        for contrast in dict.fromkeys(each.contrast for each in advice.open):
            yield from _wrapped(f"{contrast_text(contrast)} ({contrast.source}):", "  ", "  ")
            for one in advice.open:
                if one.contrast == contrast:
                    yield from _wrapped(open_text(one), "  - ", "    ")


def markdown(advice: Advice) -> Iterator[str]:
    """Its lines."""
    yield from ("# Advice", "", lede(advice), "")
    yield from (f"- {note}." for note in (*bases(advice), *advice.notes))
    for topic in Topic:
        of_topic = [rule for rule in advice.rules if rule.topic is topic]
        if of_topic:
            yield from ("", f"## {TITLES[topic]}", "")
        for rule in of_topic:
            yield f"- **{rule.sentence}**"
            yield from (f"  - {line}" for line in (*details(rule), f"`{rule.command}`"))
    if advice.trusted:
        yield from ("", f"## {TRUST}", "")
        yield from _markdown(trust_table(advice.trusted))
    if advice.open:
        yield from ("", f"## {OPEN}", "")
        yield from (f"- {contrast_text(each.contrast)}: {open_text(each)}" for each in advice.open)


def lede(advice: Advice) -> str:
    """How sure all of it is."""
    count = len(advice.rules)
    first = f"{count} rule{'' if count == 1 else 's'} of thumb" if count else NOTHING
    if not count:
        return first
    return (
        f"{first}. That any of them is wrong has a chance of at most {share(advice.error)}, corrected over the {advice.tested} "
        "comparisons and objectives that were tested. In brackets: bounds that hold the interval of every cell that is meant."
    )


def bases(advice: Advice) -> Iterator[str]:
    """What each of the results is, and what of it is no machine."""
    for each in advice.bases:
        against = f", held against {each.reference}" if each.reference else ""
        yield f"{each.source}: {each.study}, {each.runs} runs{against}; margin {share(each.margin)}"
        yield from each.unreal


def details(rule: Rule) -> Iterator[str]:
    """Evidence, and what weighs on it."""
    yield evidence(rule)
    if rule.cautions:
        yield f"cautions: {'; '.join(kind.meaning for kind in rule.cautions)}"


def trusted_text(each: Trusted) -> str:
    """``in all cells: requests per second; in some: packets per request (2 of 6); never shown: jitter (3 of 3 differ)``"""
    return "; ".join(f"{name}: {', '.join(counts)}" for name, counts in zip(GRADES, _graded(each), strict=True) if counts)


GRADES = ("in all cells", "in some", "never shown")


def _graded(each: Trusted) -> tuple[list[str], list[str], list[str]]:
    of_all = [count.metric for count in each.metrics if count.equivalent == count.cells]
    some = [
        f"{count.metric} ({count.equivalent} of {count.cells}{_different(count)})" for count in each.metrics if _is_some(count)
    ]
    never = [f"{count.metric}{_of_never(count)}" for count in each.metrics if not count.equivalent]
    return of_all, some, never


def _is_some(count: Count) -> bool:
    return 0 < count.equivalent < count.cells


def _different(count: Count) -> str:
    return f", {count.different} differ{'' if count.different > 1 else 's'}" if count.different else ""


def _of_never(count: Count) -> str:
    return f" ({count.different} of {count.cells} differ)" if count.different else ""


def _layer(each: Trusted) -> str:
    return LAYERS.get(each.layer, each.layer).partition(":")[0].lower()


def trust_table(trusted: Sequence[Trusted]) -> Tabular:
    """A row a testbed and layer."""
    rows = (
        (each.testbed, each.against, heading(_layer(each)), *("; ".join(counts) for counts in _graded(each)))
        for each in trusted
    )
    heads = ("Testbed", "Against", "Layer", *(heading(name) for name in GRADES))
    return Tabular(TRUST, "Cells in which each metric is shown to be equivalent.", heads, tuple(rows), texts=len(heads))


def _wrapped(line: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        line, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _markdown(table: Tabular) -> Iterator[str]:
    yield f"| {' | '.join(table.heads)} |"
    yield f"|{'---|' * len(table.heads)}"
    for row in table.rows:
        yield f"| {' | '.join((cell or '').replace('|', chr(92) + '|') for cell in row)} |"
