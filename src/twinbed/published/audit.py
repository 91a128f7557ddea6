"""Printed numbers of the seeds that do not follow from their other printed numbers, found by rules.

Each rule looks at every table (or claim, or equation) that has what it needs, and flags a number only if no numbers that round
to the printed ones make it right.  A displayed equation is compared with its digits as displayed; where inputs that round to
them would give its result, the finding says so. No rule contains the wrong cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from twinbed.published import anova, claims, limits, rounding
from twinbed.published.limits import Finding
from twinbed.published.printed import Equation, Library
from twinbed.published.replay import replay
from twinbed.published.replayed import Replayed, Status
from twinbed.published.rounding import Range


def audit(library: Library) -> list[Finding]:
    """Return all findings, rule by rule, in the order of the tables; facts are numbered in that order."""
    findings = [finding for rule in RULES.values() for finding in rule(library)]
    facts = {
        cause: number
        for number, cause in enumerate(dict.fromkeys((finding.rule, finding.cause) for finding in findings), start=1)
    }
    return [replace(finding, fact=facts[finding.rule, finding.cause]) for finding in findings]


# Half-widths of intervals of a difference of two means.


def _half_width(library: Library) -> Iterator[Finding]:
    for table in library.tables.values():
        if "quantile" not in table.settings:
            continue
        for row in anova.differences(library, table):
            if row.printed_half.span.overlaps(row.half.span):
                continue
            low, high = (rounding.shown(end.value, 2) for end in row.ends)
            half = float(row.printed_half.value)
            made = _made(half / row.scale, row)
            changed = row.significant != row.marked
            names = f"{row.low.labels['against']} -> {row.low.labels['receivers']}"
            now = "significant" if row.significant else "not significant"
            yield Finding(
                rule="interval half-width",
                source=table.source,
                table=table.id,
                cell=row.low.place,
                printed=f"({row.low.printed}, {row.high.printed})",
                follows=f"({low}, {high})",
                arithmetic=f"{row.expression} = {float(row.half.value):.2f}{_by_t(row)}, not {half:.2f}{made}",
                changes=f"{names} becomes {now}" if changed else f"{names} stays {now}",
                cause=f"{table.id}{made}",
            )


def _by_t(row: anova.Difference) -> str:
    """Return the half-width by Student's t, which is a little wider than the normal distribution's."""
    from scipy.special import ndtr, stdtrit

    degrees = row.levels * (row.replications - 1)
    wider = float(stdtrit(degrees, float(ndtr(float(row.quantile)))))
    return f" ({float(row.half.value) * wider / float(row.quantile):.2f} by t)"


def _made(multiple: float, row: anova.Difference) -> str:
    """Return how a wrong half-width may have been computed, of the usual multiples of q s."""
    a, r = row.levels, row.replications
    known: Mapping[str, float] = {
        "sqrt(1/r), of one mean": math.sqrt(1 / r),
        "1, of one observation": 1.0,
        "sqrt(2), of two observations": math.sqrt(2),
        "sqrt((a-1)/(a r)), of an effect": math.sqrt((a - 1) / (a * r)),
        "sqrt(a r/2), the root's fraction upside down with all observations in it": math.sqrt(a * r / 2),
    }
    for name, factor in known.items():
        if math.isclose(multiple, factor, rel_tol=2e-3):
            return f", which is q s x {name}"
    return ""


# Numbers that do not come out again.


def _not_reproduced(library: Library) -> Iterator[Finding]:
    for table in library.tables.values():
        if "quantile" in table.settings:
            continue
        rows = replay(library, table)
        for row in rows:
            if row.status is Status.DIFFERS:
                permuted = _permuted(row, rows)
                yield Finding(
                    rule="does not come out again",
                    source=table.source,
                    table=table.id,
                    cell=f"{row.cell}: {row.quantity}",
                    printed=row.printed or "",
                    follows=_between(row),
                    arithmetic=f"{row.formula} = {row.recomputed}",
                    changes=permuted,
                    cause=f"{table.id} {row.quantity}" if permuted else f"{table.id} {row.cell} {row.quantity}",
                )


def _between(row: Replayed) -> str:
    if row.low is None or row.high is None:
        return row.recomputed
    digits = len(row.recomputed.partition(".")[2])
    return f"{row.low:.{digits}f} to {row.high:.{digits}f}"


def _permuted(row: Replayed, rows: list[Replayed]) -> str:
    """Return whether the number belongs to another wrong row: then rows have changed places."""
    wrong = [other for other in rows if other.status is Status.DIFFERS and other.quantity == row.quantity]
    decimals = len((row.printed or "").partition(".")[2])

    def at_print(replayed: Replayed) -> str:
        return f"{float(replayed.recomputed):.{decimals}f}"

    if len(wrong) > 1 and sorted(str(other.printed) for other in wrong) == sorted(map(at_print, wrong)):
        owner = next(other.cell for other in wrong if at_print(other) == row.printed)
        right = f"the {len(wrong)} values in the column {row.quantity} are right but stand in other rows"
        return f"it is the value that follows for {owner}: {right}"
    return ""


# Sentences.

_INSTEAD: Mapping[str, str] = {
    "all": "not so for {wrong} of {cases} cases",
    "any": "so for none of {cases} cases",
    "none": "so for {wrong} of {cases} excepted cases too",
}


def _claims(library: Library) -> Iterator[Finding]:
    for checked in claims.check_all(library):
        if not checked.wrong:
            continue
        claim = checked.claim
        counts = {"wrong": len(checked.wrong), "cases": len(checked.cases)}
        follows = _INSTEAD.get(claim.quantifier, _INSTEAD["all"]).format(**counts)
        tables = dict.fromkeys(cell.table for case in checked.wrong for cell in case.cells)
        yield Finding(
            rule="claim",
            source=claim.source,
            table=" ".join(tables),
            cell=claim.place,
            printed=claim.quote,
            follows=_length(library, claim.left, claim.right) if claim.measure == "walk" else follows,
            arithmetic="; ".join(case.arithmetic for case in checked.wrong),
            changes=_instead(checked),
            cause=f"{claim.source} {claim.place} {claim.quote}",
        )


def _instead(checked: claims.Checked) -> str:
    """Return the right statement for the sentence."""
    claim, wrong = checked.claim, checked.wrong
    if claim.quantifier == "none":
        return "the exception is none"
    if claim.measure not in ("percent change", "percent apart") or claim.relation == "=":
        return ""
    bound = (min if claim.relation in (">", ">=") else max)(case.value for case in wrong)
    return f"it holds for all {len(checked.cases)} cases with {rounding.significant(bound, 3)} % for {claim.bound} %"


def _length(library: Library, left: str, right: str) -> str:
    table, _, text = left.partition(": ")
    cells = library.tables[table].cells
    first = claims.holds_from(cells, claims.sequence(text), claims.sequence(right.partition(": ")[2]))
    return f"it holds from length {first}" if first else "it holds at no length"


# Equations.


def _equations(library: Library) -> Iterator[Finding]:
    for equation in library.equations:
        exact = rounding.evaluate(equation.expression, rounded=False)
        span = rounding.evaluate(equation.expression, rounded=True)
        printed = rounding.printed_range(equation.value, equation.decimals)
        # An equation is compared by its displayed digits, a statement in words by all numbers that round to them.
        if (exact if equation.relation == "=" else span).overlaps(printed):
            continue
        yield Finding(
            rule="equation",
            source=equation.source,
            table="",
            cell=equation.place,
            printed=f"{equation.expression} = {equation.printed}{equation.unit}",
            follows=f"{rounding.shown(exact.middle, equation.decimals)}{equation.unit}",
            arithmetic=f"{equation.expression} = {rounding.significant(exact.middle)}",
            changes="; ".join(_consequences(library, equation, exact, span)),
            cause=f"{equation.source} {equation.place}",
        )


def _consequences(library: Library, equation: Equation, exact: Range, span: Range) -> Iterator[str]:
    """Yield the results of equations that use this one, and whether inputs before rounding may explain it."""
    result = rounding.shown(exact.middle, equation.decimals)
    for other in library.equations:
        changed = re.sub(rf"(?<![\d.]){re.escape(equation.printed)}(?![\d.])", result, other.expression)
        if "." in equation.printed and changed != other.expression:
            value = rounding.shown(rounding.evaluate(changed, rounded=False).middle, other.decimals)
            yield f"{changed} = {value}{other.unit}, not {other.printed}{other.unit}"
    if span.overlaps(rounding.printed_range(equation.value, equation.decimals)):
        low, high = (rounding.shown(end, equation.decimals) for end in (span.low, span.high))
        yield f"unrounded inputs may have given it: those that round to the printed ones give {low} to {high}"
    elif equation.note:
        yield equation.note


RULES: Mapping[str, Callable[[Library], Iterator[Finding]]] = {
    "goodput above the link": limits.above_link,
    "request cap": limits.request_cap,
    "interval half-width": _half_width,
    "does not come out again": _not_reproduced,
    "claim": _claims,
    "equation": _equations,
}
"""Name -> rule."""
