"""Write contention as a section: sentences, figures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from twinbed.analyses.contention import draw
from twinbed.analyses.contention.result import Alarms, Contention, Curve, DetectorResult, LevelContention, Scored, Step, Turn
from twinbed.model.amount import amount
from twinbed.model.run import Level
from twinbed.show.figure import Figure
from twinbed.show.numbers import figure, joined, percent
from twinbed.show.quantities import share
from twinbed.show.section import Section
from twinbed.show.table import Column, Of, Table, cell_columns, plain
from twinbed.show.words import cell_title, heading, metric_name

MOST_CURVES = 4
"""Metrics in a figure: the rate, and those that bend most."""
MOST_GROUPS = 6
"""Combinations of levels that are drawn."""


def section(contention: Contention) -> Section:
    """Return the sentences, figures for each combination of levels, and the tables."""
    (first, *rest), rate = sentences(contention), metric_name(contention.rate)
    undrawn = len(contention.groups) - MOST_GROUPS
    more = f"The first {MOST_GROUPS} of {len(contention.groups)} combinations are drawn."
    return Section(
        "contention",
        f"Contention: {rate} over {contention.noun}s",
        first,
        (
            (*rest, more) if undrawn > 0 else tuple(rest),
            *(curve for group in contention.groups[:MOST_GROUPS] for curve in _figures(contention, group)),
            _curves(contention),
            _inflections(contention),
            _detectors(contention),
            _alarms(contention),
            _scores(contention),
            _roc(contention),
        ),
        kicker=f"Was a run contended? {heading(rate)} of a {contention.noun}, and the machine's metrics",
    )


def _where(group: LevelContention) -> str:
    return f"{cell_title(group.levels)}: " if group.levels else ""


def _figures(contention: Contention, group: LevelContention) -> Iterator[Figure]:
    where, many = _where(group), f"{contention.noun}s"
    curves, turns = drawn(group)
    if curves:
        undrawn = len(group.curves) - len(curves)
        cut = f"the rate and the {len(curves) - 1} of {len(group.curves) - 1} metrics that bend most. " if undrawn else ""
        order = "; ".join(f"{at}. {metric_name(turn.metric)} at {turn.n:.3g}" for at, turn in enumerate(turns, 1))
        caption = (
            f"{where}{cut}Above: each metric by LOESS, scaled to its range. Below: its second difference. Idle time is"
            f" mirrored. Triangles mark turns of a slope (pointing up: it begins to rise), numbered by N: {order or 'none'}."
            " If the rate turns first, the machine's metrics come too late."
        )
        yield Figure("bends", spec=partial(draw.bends, curves, turns, many), caption=heading(caption))
    detector = group.detector
    if detector is None:
        return
    tested = [step.n for step in detector.steps]
    caption = (
        f"{where}the score of each test run, from the machine's metrics alone. The detector alarms above the dashed line."
        f" Contended: the run, and the mean at its N, lost at least {share(contention.drop)} of the rate."
    )
    yield Figure("scores", spec=partial(draw.scores, detector, tested, many), caption=heading(caption))
    caption = (
        f"{where}the share of runs that alarm, and the remaining rate. Most runs alarm from the dotted line on. Shaded: the"
        f" rate has fallen by {share(contention.fallen)}. Bars: 95 % intervals."
    )
    yield Figure("alarms", spec=partial(draw.early, contention, detector), caption=heading(caption))
    caption = (
        f"{where}ROC curve of {sum(run.tested for run in detector.runs)} test runs: contended runs found and false alarms, for"
        " every threshold."
    )
    yield Figure("roc", spec=partial(draw.roc, detector), caption=heading(caption))


def drawn(group: LevelContention) -> tuple[Sequence[Curve], Sequence[Turn]]:
    """Return the rate and the metrics that bend most, with their turns."""
    rate, rest = group.curves[:1], group.curves[1:]
    curves = [*rate, *sorted(rest, key=lambda curve: -curve.bent)[: MOST_CURVES - 1]]
    kept = {curve.metric for curve in curves}
    return curves, [turn for turn in group.turns if turn.metric in kept]


def _curves(contention: Contention) -> Table:
    rows = [
        {
            **group.levels,
            "metric": curve.metric,
            "mirrored": curve.mirrored,
            "n": n,
            "smoothed": smoothed,
            "curvature": curvature,
            "bent": curve.bent,
        }
        for group in contention.groups
        for curve in group.curves
        for n, smoothed, curvature in zip(curve.n, curve.smoothed, curve.curvature, strict=True)
    ]
    return plain("curves", rows)


def _inflections(contention: Contention) -> Table:
    records = [Of(group, turn) for group in contention.groups for turn in group.turns]
    bent = {(id(group), curve.metric): curve.bent for group in contention.groups for curve in group.curves}
    columns = (
        *cell_columns(records, _levels),
        Column("metric", value="item.metric"),
        Column(head="metric", value=lambda record: metric_name(record.item.metric)),
        Column("n", "N", format=lambda n: figure(n, 4), value="item.n"),
        Column("slope", value=lambda record: "rises" if record.item.rises else "falls"),
        Column(head="slope begins to", format="s", value=lambda record: "rise" if record.item.rises else "fall"),
        Column(head="bend", format=percent, value=lambda record: bent[id(record.group), record.item.metric]),
    )
    caption = (
        "Ordered by N. Idle time is mirrored. Bend: the share of a straight line's residuals that the curve explains. Turns of"
        " a small bend are noise."
    )
    return Table("inflections", "Inflection points", caption, columns, records)


def _detectors(contention: Contention) -> Table:
    facts = ("threshold", "false_alarms", "detected", "unclear", "alarms_from", "fallen_from")
    before = {"runs": "of", "alarms": "count", "share": "share", "low": "interval.low", "high": "interval.high"}
    columns = (
        *(column for column in cell_columns(contention.groups, lambda group: group.levels) if column.key),
        Column("area", value="detector.area"),
        Column("low", value="detector.interval.low"),
        Column("high", value="detector.interval.high"),
        *(Column(name, value=f"detector.{name}") for name in facts),
        *(Column(f"before_{name}", value=f"detector.before.{place}") for name, place in before.items()),
        Column("reason"),
    )
    return Table("detectors", "", "", columns, contention.groups)


def _alarms(contention: Contention) -> Table:
    records = [Of(group, step) for group in contention.groups if group.detector for step in group.detector.steps]
    columns = (
        *cell_columns(records, _levels),
        Column("n", "N", format="d", value="item.n"),
        Column("lost", "rate lost", format=percent, value="item.lost"),
        Column("runs", value="item.alarms.of"),
        Column("alarms", "alarm", format="d", value="item.alarms.count"),
        Column(head="of", format="d", value="item.alarms.of"),
        Column("share", "share", format=rough, value="item.alarms.share"),
        Column("low", value="item.alarms.interval.low"),
        Column("high", value="item.alarms.interval.high"),
        Column(head="interval", format="s", value=_interval),
    )
    caption = "Test runs at each N. Rate lost: compared with the mean at the least N, made monotone."
    return Table("alarms", "How early it alarms", caption, columns, records)


def _interval(record: Of[LevelContention, Step]) -> str | None:
    alarms = record.item.alarms
    return None if alarms is None else f"{rough(alarms.interval.low)} to {rough(alarms.interval.high)}"


def _scores(contention: Contention) -> Table:
    records = [Of(group, run) for group in contention.groups if group.detector for run in group.detector.runs]

    def alarms(record: Of[LevelContention, Scored]) -> bool:
        return record.group.detector is not None and record.item.score > record.group.detector.threshold

    columns = (
        *(column for column in cell_columns(records, _levels) if column.key),
        *(Column(name, value=f"item.{name}") for name in ("run", "replicate", "n")),
        Column("part", value=lambda record: "test" if record.item.tested else "training"),
        Column("kind", value="item.kind"),
        Column("score", value="item.score"),
        Column("alarms", value=alarms),
    )
    return Table("scores", "", "", columns, records)


def _roc(contention: Contention) -> Table:
    records = [Of(group, point) for group in contention.groups if group.detector for point in group.detector.curve]
    columns = (
        *(column for column in cell_columns(records, _levels) if column.key),
        *(Column(name, value=f"item.{name}") for name in ("threshold", "false_alarms", "detected")),
    )
    return Table("roc", "", "", columns, records)


def _levels(record: Of[LevelContention, object]) -> Mapping[str, Level]:
    return record.group.levels


def rough(value: float) -> str:
    """Return a share to the whole percent: ``88 %``."""
    return f"{value * 100:.0f} %"


def sentences(contention: Contention) -> Iterator[str]:
    """Yield how well contended runs are detected for each combination of levels, and how early; or why there is no detector."""
    for group in contention.groups:
        if group.detector is None:
            yield heading(f"{_where(group)}no detector of contended runs: {group.reason}.")
        else:
            yield heading(f"{_where(group)}{_quality(contention, group.detector)}")
            yield heading(f"{_where(group)}{_timeliness(contention, group.detector)}")


def _quality(contention: Contention, detector: DetectorResult) -> str:
    """Return how well contended runs are detected."""
    interval = "" if detector.interval is None else f" ({detector.interval.low:.3f} to {detector.interval.high:.3f})"
    unclear = f"; {detector.unclear} more {'is' if detector.unclear == 1 else 'are'} unclear" if detector.unclear else ""
    contended, free = (sum(run.tested and run.kind == kind for run in detector.runs) for kind in ("contended", "free"))
    return (
        f"the machine's metrics alone show {rough(detector.detected)} of contended runs (at least {share(contention.drop)}"
        f" slower), with false alarms in {rough(detector.false_alarms)} of the others. Tested on {contended} contended and"
        f" {free} other runs that the detector was not trained on{unclear}. Area under the ROC curve: {detector.area:.3f}"
        f"{interval}."
    )


def _timeliness(contention: Contention, detector: DetectorResult) -> str:
    """Return whether the detector alarms before the rate has fallen too far, and in how many runs."""
    return f"{_from(contention, detector)}. {heading(_before(contention, detector))}."


def _from(contention: Contention, detector: DetectorResult) -> str:
    noun, fell = contention.noun, share(contention.fallen)
    fallen = f"the rate has fallen by {fell} from {detector.fallen_from} on"
    if detector.alarms_from is None:
        return f"most runs alarm at no number of {noun}s" + ("" if detector.fallen_from is None else f"; {fallen}")
    alarms = f"most runs alarm from {amount(detector.alarms_from, noun)} on"
    if detector.fallen_from is None:
        return f"{alarms}; the rate falls by {fell} nowhere"
    steps = sum(detector.alarms_from <= step.n < detector.fallen_from for step in detector.steps)
    if steps:
        return f"{alarms}; {fallen}, {amount(steps, 'tested number')} later"
    return f"{alarms}; {fallen}: most do not alarm earlier"


def _before(contention: Contention, detector: DetectorResult) -> str:
    span = f"{share(contention.drop)} to {share(contention.fallen)}"
    tested = [
        str(step.n) for step in detector.steps if contention.drop <= step.lost < contention.fallen and step.alarms is not None
    ]
    if detector.before is not None:
        return f"while the rate has lost {span} (at {joined(tested)}), {_counted(detector.before)}"
    above = next((at for at, step in enumerate(detector.steps) if step.lost >= contention.fallen), None)
    if not above:
        return f"the rate lost {span} at no tested number"
    low, high = detector.steps[above - 1], detector.steps[above]
    gap = f"{rough(max(low.lost, 0.0))} at {low.n} and {rough(high.lost)} at {high.n}"
    return f"cannot tell how early it alarms: the rate lost {gap}; test numbers between them"


def _counted(alarms: Alarms) -> str:
    """Return ``7 of 8 runs alarm (88 %, 47 to 100 %)``."""
    low, high = rough(alarms.interval.low).removesuffix(" %"), rough(alarms.interval.high)
    return f"{alarms.count} of {alarms.of} runs alarm ({rough(alarms.share)}, {low} to {high})"
