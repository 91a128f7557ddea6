"""Statements of the seeds' text about their tables, checked cell by cell.

A claim takes cells from the left and the right selection (``printed.Library.select``) that agree in every label for which both
selections have common values.  It computes its measure for each such case, and compares the result with its bound:

* ``value`` of the left; ``difference`` left - right; ``percent change`` from left to right; ``percent apart``, the size of that
  change; ``farther``, how much farther left is from a third cell than right is;
* ``walk``, the probability of one sequence along a printed chain less that of another; ``most probable``, the length at which a
  sequence is the most probable of its length.

``all``, ``any``, ``none`` or ``all but N`` of the cases must satisfy it.  A case counts as broken only if no numbers that round
to the printed ones make it true, and as true beyond doubt only if all do.  Bounds of ``percent apart``, and of < and >, are
exact; others mean all numbers that round to them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from twinbed.published import rounding
from twinbed.published.printed import Cell, Claim, Library
from twinbed.published.rounding import HUNDRED, Range


@dataclass(frozen=True, slots=True)
class Case:
    """One instance: its cells, the measure of the printed numbers and of all that round to them."""

    cells: Sequence[Cell]
    value: Fraction
    span: Range
    possible: bool
    certain: bool
    arithmetic: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A claim with its cases; ``wrong`` are the cases that break it, empty where it holds."""

    claim: Claim
    cases: Sequence[Case]
    wrong: Sequence[Case]


def check_all(library: Library) -> list[Checked]:
    return [check(library, claim) for claim in library.claims]


def check(library: Library, claim: Claim) -> Checked:
    """Check a claim. Raises LookupError for a claim about missing cells."""
    cases = list(_walk_cases(library, claim) if ":" in claim.left else _cases(library, claim))
    return Checked(claim, cases, _wrong(claim.quantifier, cases))


def _wrong(quantifier: str, cases: Sequence[Case]) -> Sequence[Case]:
    broken = [case for case in cases if not case.possible]
    sure = [case for case in cases if case.certain]
    if quantifier == "all":
        return broken
    if quantifier == "any":
        return broken if len(broken) == len(cases) else []
    if quantifier == "none":
        return sure
    exceptions = int(quantifier.removeprefix("all but "))
    if len(broken) > exceptions:
        return broken
    return sure if len(sure) > len(cases) - exceptions else []


def _cases(library: Library, claim: Claim) -> Iterator[Case]:
    left = library.select(claim.left)
    right = library.select(claim.right) if claim.right else []
    third = library.select(claim.third) if claim.third else []
    for first in left:
        if not right:
            yield _case(claim, [first])
        for second in right:
            if not _belong(first, second, left, right):
                continue
            if not third:
                yield _case(claim, [first, second])
            for reference in third:
                if _belong(first, reference, left, third):
                    yield _case(claim, [first, second, reference])


def _belong(first: Cell, second: Cell, firsts: Sequence[Cell], seconds: Sequence[Cell]) -> bool:
    """Return whether two cells have the same metric, and the same value of each label with common values."""
    if first.metric != second.metric:
        return False
    for name in first.labels.keys() & second.labels.keys():
        common = {cell.labels.get(name) for cell in firsts} & {cell.labels.get(name) for cell in seconds}
        if common and first.labels[name] != second.labels[name]:
            return False
    return True


def _case(claim: Claim, cells: Sequence[Cell]) -> Case:
    value = measure(claim.measure, [Range.exactly(cell.number) for cell in cells]).middle
    span = measure(claim.measure, [cell.range for cell in cells])
    possible, certain = _held(claim, span)
    return Case(cells, value, span, possible, certain, _arithmetic(claim.measure, cells, value))


def measure(name: str, values: Sequence[Range]) -> Range:
    """Return the measure of two or three numbers, or of all within ranges."""
    match name, values:
        case "value", [first]:
            return first
        case "difference", [first, second]:
            return first - second
        case "percent change", [first, second]:
            return (second / first - Range.exactly(1)) * HUNDRED
        case "percent apart", [first, second]:
            return abs((second / first - Range.exactly(1)) * HUNDRED)
        case "farther", [first, second, reference]:
            return abs(first - reference) - abs(second - reference)
    raise ValueError(f"no measure {name!r} of {len(values)} numbers")


def _held(claim: Claim, span: Range) -> tuple[bool, bool]:
    """Return whether some, and whether all, of the span satisfy the claim's relation to its bound."""
    number = rounding.parse(claim.bound)
    if number is None:
        raise ValueError(f"{claim.id}: the bound {claim.bound!r} is not a number")
    exact = claim.measure in ("percent apart", "walk") or claim.relation in ("<", ">")
    bound = Range.exactly(number[0]) if exact else rounding.printed_range(*number)
    match claim.relation:
        case "<":
            return span.low < bound.low, span.high < bound.low
        case ">":
            return span.high > bound.high, span.low > bound.high
        case "<=":
            return span.low <= bound.high, span.high <= bound.high
        case ">=":
            return span.high >= bound.low, span.low >= bound.low
        case "=":
            return span.overlaps(bound), bound.low <= span.low and span.high <= bound.high
    raise ValueError(f"{claim.id}: no relation {claim.relation!r}")


def _arithmetic(name: str, cells: Sequence[Cell], value: Fraction) -> str:
    """Return the case in figures, after their place."""
    where = f"{cells[-1].table} {(cells[1] if len(cells) > 1 else cells[0]).place}:"
    first, *others = (cell.printed for cell in cells)
    match name, others:
        case "difference", [second]:
            return f"{where} {first} - {second} = {rounding.significant(value, 4)}"
        case "farther", [second, third]:
            return f"{where} |{first} - {third}| - |{second} - {third}| = {rounding.significant(value, 4)}"
        case (("percent change" | "percent apart"), [second]):
            sign = "+" if name == "percent change" and value > 0 else ""
            return f"{where} {first} -> {second}, {sign}{rounding.significant(value, 3)} %"
    return f"{where} {first}"


# Walks along a printed chain.


def sequence(text: str) -> list[str]:
    """Return ``open read*16`` as seventeen calls."""
    calls: list[str] = []
    for item in text.split():
        call, _, times = item.partition("*")
        calls += [call] * int(times or 1)
    return calls


def walk(cells: Sequence[Cell], calls: Sequence[str]) -> Fraction:
    """Return the probability of the sequence from its first call on; 0 where a transition is not in the chain."""
    edges = {(cell.labels["from"], cell.labels["to"]): cell.number for cell in cells}
    product = Fraction(1)
    for step in itertools.pairwise(calls):
        product *= edges.get(step, Fraction(0))
    return product


def greatest(cells: Sequence[Cell], start: str, length: int) -> Fraction:
    """Return the probability of the most probable sequence of this length from ``start`` (Viterbi's recursion)."""
    best = {start: Fraction(1)}
    for _ in range(length - 1):
        following: dict[str, Fraction] = {}
        for cell in cells:
            came = best.get(cell.labels["from"], Fraction(0)) * cell.number
            following[cell.labels["to"]] = max(came, following.get(cell.labels["to"], Fraction(0)))
        best = following
    return max(best.values(), default=Fraction(0))


def _walk_cases(library: Library, claim: Claim) -> Iterator[Case]:
    table, _, text = claim.left.partition(": ")
    cells, calls = library.tables[table].cells, sequence(text)
    own = walk(cells, calls)
    if claim.measure == "most probable":
        best = greatest(cells, calls[0], len(calls))
        so = own == best and Fraction(claim.bound) == len(calls)
        arithmetic = (
            f"P({text}) = {rounding.significant(own, 4)}, the largest of length {len(calls)} {rounding.significant(best, 4)}"
        )
        yield Case(cells, own - best, Range.exactly(own - best), so, so, arithmetic)
        return
    other_text = claim.right.partition(": ")[2]
    other = walk(cells, sequence(other_text))
    span = Range.exactly(own - other)
    arithmetic = "; ".join(
        f"P({text_of}) = {product(cells, sequence(text_of))} = {rounding.significant(probability, 4)}"
        for text_of, probability in ((text, own), (other_text, other))
    )
    yield Case(cells, own - other, span, *_held(claim, span), arithmetic)


def product(cells: Sequence[Cell], calls: Sequence[str]) -> str:
    """Return the multiplication, equal factors as a power."""
    printed = {(cell.labels["from"], cell.labels["to"]): f"{float(cell.number):g}" for cell in cells}
    factors = [printed.get(step, "0") for step in itertools.pairwise(calls)]
    counts = {factor: factors.count(factor) for factor in factors}
    return " x ".join(factor if times == 1 else f"{factor}^{times}" for factor, times in counts.items())


def holds_from(cells: Sequence[Cell], calls: Sequence[str], other: Sequence[str], longest: int = 1000) -> int | None:
    """Return the length from which the sequence, its last call repeated, is less probable; None to ``longest``."""
    bound = walk(cells, other)
    head = list(calls)
    while len(head) > 1 and head[-1] == head[-2]:
        head.pop()
    while len(head) <= longest:
        if walk(cells, head) < bound:
            return len(head)
        head.append(head[-1])
    return None
