"""Write the times of single requests as a section: a sentence, figures, and tables of quantiles."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.tails import draw
from twinbed.analyses.tails.result import Shift, Tails, quantile_name
from twinbed.model.result import Verdict
from twinbed.show.quantities import change, number, ratio_with_interval, share, unit_scale
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns, plain
from twinbed.show.words import at_cell

SYMBOLS = {Verdict.EQUIVALENT: "= equivalent", Verdict.DIFFERENT: "≠ different", Verdict.INCONCLUSIVE: "? inconclusive"}


def section(result: Tails) -> Section:
    """Return the section: the verdicts first, then the whole distribution."""
    verdicts = shifts(result, result.verdicts, "Times of single requests", _caption(result)).for_readers()
    every = Section("quantiles", "All quantiles", items=(shifts(result, result.shifts),), folded=True, in_text=False)
    items = (verdicts, *draw.survival(result), *draw.shift(result), every, quantiles(result))
    return Section("tails", "Tails", sentence(result), items, kicker="The times of single requests")


def shifts(result: Tails, records: Sequence[Shift], title: str = "", caption: str = "") -> Table:
    """Return a row a quantile and testbed but the reference."""
    level = share(round(1 - 2 * (1 - result.confidence), 4))
    columns = (
        *cell_columns(records),
        Column("testbed", "Testbed"),
        Column("reference"),
        Column("share"),
        Column(head="Quantile", value=lambda shift: quantile_name(shift.share)),
        Column("seconds", value="value"),
        Column("reference_seconds", value="reference_value"),
        Column(head=result.reference, format="s", value=lambda shift: _time(shift.reference_value, shift)),
        Column(head="testbed's time", format="s", value=lambda shift: _time(shift.value, shift)),
        Column("ratio"),
        Column("low", value="interval.low"),
        Column("high", value="interval.high"),
        Column(
            head=f"ratio [{level} interval]", format="s", value=lambda shift: ratio_with_interval(shift.ratio, *shift.bounds)
        ),
        Column("paired"),
        Column("p_equivalent"),
        Column("p_different_holm", value="p_different"),
        Column("verdict", value=lambda shift: shift.verdict and str(shift.verdict)),
        Column(head="verdict", format="s", value=lambda shift: SYMBOLS.get(shift.verdict, "")),
    )
    return Table("shifts", title, caption, columns, records)


def _time(seconds: float, shift: Shift) -> str:
    """Return a time in the unit that both times of the row have."""
    scale = unit_scale("s", [shift.value, shift.reference_value])
    return f"{number(seconds / scale.factor)} {scale.unit}"


def quantiles(result: Tails) -> Table:
    """Return a row a quantile, cell and testbed, the reference's too, for programs."""
    rows = [
        {
            **tail.cell,
            "testbed": tail.testbed,
            "runs": tail.runs,
            "requests": tail.requests,
            "fewest_requests": tail.fewest,
            "share": share,
            "seconds": seconds,
        }
        for tail in result.tails
        for share, seconds in tail.quantiles.items()
    ]
    return plain("quantiles", rows)


def _caption(result: Tails) -> str:
    where = {
        "exchanges": "from its first packet to its answer's last, as captured on the clients' links",
        "requests": f"as the load generator wrote it{', in whole milliseconds' if result.step else ''}",
    }[result.source]
    how = "within blocks" if any(shift.paired for shift in result.shifts) else "as independent runs"
    return (
        f"The time of a request: {where}. Each run has its own quantiles. Ratios compare the runs' geometric means {how}, at a "
        f"margin of {share(result.margin)}."
    )


def sentence(result: Tails) -> str:
    """Return the largest difference of each testbed, and how many quantiles differ, match, and stay inconclusive."""
    parts = []
    for testbed in dict.fromkeys(shift.testbed for shift in result.verdicts):
        own = [shift for shift in result.verdicts if shift.testbed == testbed]
        counts = {verdict: sum(shift.verdict is verdict for shift in own) for verdict in Verdict}
        different = [shift for shift in own if shift.verdict is Verdict.DIFFERENT]
        answer = f"no request time is shown to differ from {result.reference}"
        if different:
            most = max(different, key=lambda shift: max(shift.ratio or 1e-300, 1 / (shift.ratio or 1e-300)))
            far = change(most.ratio, most.reference) if most.ratio else f"above 0, unlike {most.reference}"
            answer = f"the {quantile_name(most.share)} request time is {far}{at_cell(most.cell)}"
        parts.append(
            f"{testbed}: {answer} (of {len(own)} quantiles {len(different)} differ by more than {share(result.margin)}, "
            f"{counts[Verdict.EQUIVALENT]} match, {counts[Verdict.INCONCLUSIVE]} cannot tell)"
        )
    return "; ".join(parts) + "." if parts else "Nothing to compare: no quantile has two runs on both testbeds."
