"""Write the differences between testbeds or results as a section: a table for each pair, the most suspicious facts first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from operator import attrgetter

from twinbed.analyses.passport.result import Passports
from twinbed.observations.passports import Difference, Differences, sentence
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Table, plain


def section(result: Passports) -> Section:
    """Return the differences of each pair."""
    alone = len(result.pairs) == 1
    items = [item for pair in result.pairs for item in _pair(pair, is_alone=alone)]
    rows = [{"between": pair.left, "and": pair.right, **asdict(row)} for pair in result.pairs for row in pair.differences]
    programs = plain("differences", rows), plain("summary", [pair.summary for pair in result.pairs])
    counts = [f"{pair.left} and {pair.right}: {sentence(pair)}" for pair in result.pairs]
    answer = f"{sentence(result.pairs[0]) if alone else '; '.join(counts)}."
    kicker = "What each side recorded of itself, most suspicious first"
    return Section("passport", "How the passports differ", answer, (*items, *programs), kicker=kicker)


def _pair(pair: Differences, *, is_alone: bool) -> Iterator[Item]:
    title, counts = f"{pair.left} and {pair.right}", "" if is_alone else f"{sentence(pair)}. "
    if counts and not pair.differences:
        yield f"{title}: {counts}".strip()
    columns = (
        Column(head="kind", value="kind"),
        Column(head="where", value="place"),
        Column(head="fact", value="fact"),
        Column(head=pair.left, value=partial(_values, "left")),
        Column(head=pair.right, value=partial(_values, "right")),
    )
    yield Table("passport", title, f"{counts}Most suspicious first; empty: not recorded.", columns, pair.differences)


def _values(side: str, row: Difference) -> str | None:
    return " | ".join(attrgetter(side)(row)) or None
