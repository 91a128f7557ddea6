"""The rows that `twinbed published` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinbed.published.finding import Finding
    from twinbed.published.printed import Cell, Library, Table
    from twinbed.published.printed_metrics import Own
    from twinbed.published.verdicts import Held


def about(library: Library, table: Table) -> dict[str, object]:
    """Return everything about a table except its cells."""
    source = library.sources[table.source]
    return {
        "table": table.id,
        "caption": table.caption,
        "source": f"{source.title}; {source.authors}; {source.number or source.date}",
        "page": table.page,
        "n": table.n,
        "n said": table.n_said,
        "note": table.note,
        "settings": dict(table.settings),
    }


def as_text(value: object) -> str:
    """Return a value of ``about`` as text."""
    return ", ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else str(value)


def number(cell: Cell) -> dict[str, object]:
    """Return a number as a row."""
    return {
        **cell.labels,
        "metric": cell.metric,
        "kind": cell.kind,
        "printed": cell.printed,
        "value": None if cell.value is None else float(cell.value),
        "decimals": cell.decimals,
        "significant_digits": cell.significant_digits,
        "unit": cell.unit,
        "note": cell.note,
    }


def short(number: float | None) -> str | None:
    return None if number is None else f"{number:.6g}"


def findings(all_findings: Sequence[Finding]) -> Iterator[str]:
    """Yield lines under a heading for each rule. Text that all places of a fact share is printed once."""
    for rule in dict.fromkeys(finding.rule for finding in all_findings):
        of_rule = [each for each in all_findings if each.rule == rule]
        facts = len({each.fact for each in of_rule})
        yield f"{rule}: {_counted(facts, len(of_rule))}\n"
        for fact in dict.fromkeys(each.fact for each in of_rule):
            yield from _fact([each for each in of_rule if each.fact == fact])
            yield ""
    yield _counted(len({each.fact for each in all_findings}), len(all_findings))


def _counted(facts: int, places: int) -> str:
    return f"{facts} finding{'s' if facts > 1 else ''}" + (f" in {places} places" if places > facts else "")


def _fact(places: Sequence[Finding]) -> Iterator[str]:
    names = ("printed", "follows", "arithmetic", "changes")
    common = [name for name in names if len({getattr(each, name) for each in places}) == 1]
    for each in places:
        yield f"  {' '.join(filter(None, (each.source, each.table)))}, {each.cell}"
        for name in names if len(places) == 1 else [name for name in names if name not in common]:
            if getattr(each, name):
                yield f"    {name:<10} {getattr(each, name)}"
    for name in common if len(places) > 1 else []:
        if getattr(places[0], name):
            yield f"    {name:<10} {getattr(places[0], name)}"


def comparison(row: Held, margin: float, style: str) -> dict[str, object]:
    rounded: Callable[[float | None], object] = ratio_text if style == "text" else lambda value: value
    named = {
        "table": row.table,
        "cell": row.cell,
        "metric": row.metric,
        "printed": row.printed,
        "physical": row.reference,
        "n": row.n,
        "ratio": rounded(row.ratio),
    }
    rule = {True: "yes", False: "no", None: "rounding" if row.ratio else None}[row.within_rule]
    if style == "text":
        interval = None if row.ratio_low is None or row.ratio_high is None else f"[{row.ratio_low:.3f}, {row.ratio_high:.3f}]"
        verdict = str(row.verdict) if row.verdict else row.because
        return {
            **named,
            "interval": interval,
            f"in {margin * 100:g} %": rule,
            "verdict": verdict,
            "cautions": "; ".join(row.cautions),
        }
    return {
        **named,
        "testbed": row.testbed,
        "ratio_low": row.ratio_low,
        "ratio_high": row.ratio_high,
        "within_rule": row.within_rule,
        "intervals_overlap": row.intervals_overlap,
        "p_equivalent": row.p_equivalent,
        "p_different_holm": row.p_different,
        "verdict": None if row.verdict is None else str(row.verdict),
        "because": row.because,
        "cautions": "; ".join(row.cautions),
    }


def ratio_text(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def own_columns(own: Own | None, style: str) -> dict[str, object]:
    rounded: Callable[[float | None], object] = ratio_text if style == "text" else lambda value: value
    return {
        "own_testbed": f"{own.testbed} / {own.reference}" if own else None,
        "own_cell": own.where if own else None,
        "own_ratio": rounded(own.ratio) if own else None,
        "own_low": rounded(own.low) if own else None,
        "own_high": rounded(own.high) if own else None,
        "own_verdict": own.verdict if own else None,
    }
