"""What may make testbeds differ, as rows for programs, and as tables and sentences for readers."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.explain.causes import BY_NAME, Cause
from twinbed.analyses.explain.result import Candidate, Explanation, Pair, Proof, Proved, Response, candidates_of
from twinbed.analyses.explain.waits import Waits
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import NONE, number, quantity, unit_scale
from twinbed.show.table import Row
from twinbed.show.words import cell_title, heading, metric_title, p_text

CAPTION = (
    "Signs of causes that differ from the reference's, the likeliest first. A cause that works on one testbed alone comes "
    "before what differs by degrees, which may be a consequence of it. p: of equal signs, Welch's test with Holm's correction. "
    "Only a study with the cause switched proves it."
)


def candidate_rows(result: Explanation) -> list[Row]:
    """A row a candidate."""
    return [
        {
            **pair.cell,
            "testbed": pair.testbed,
            "reference": pair.reference,
            "rank": pair.candidates.index(each) + 1,
            "cause": each.cause.name,
            "role": each.role or None,
            "sign": each.here,
            "reference_sign": each.there,
            "p": each.p,
            "alone": each.alone,
            "setting": each.cause.switch.setting if each.cause.switch else None,
            "state": each.states[0],
            "reference_state": each.states[1],
            **_wait_fields("", each.waits[0]),
            **_wait_fields("reference_", each.waits[1]),
        }
        for pair, each in candidates_of(result)
    ]


def _wait_fields(prefix: str, waits: Waits | None) -> Row:
    """Wake-ups of idle CPUs by the work done, what each took, and how long a client took for the work."""
    wake_ups, each_s, work_s = (waits.wake_ups, waits.each_s, waits.work_s) if waits else (None, None, None)
    return {f"{prefix}wake_ups_per_work": wake_ups, f"{prefix}wake_up_s": each_s, f"{prefix}work_s": work_s}


def response_rows(result: Explanation) -> list[Row]:
    """A row a headline that differs."""
    return [
        {
            **pair.cell,
            "testbed": pair.testbed,
            "reference": pair.reference,
            "metric": each.metric,
            "host": each.host,
            "direction": each.direction,
            "ratio": each.ratio,
            "ratio_low": each.interval.low if each.interval else None,
            "ratio_high": each.interval.high if each.interval else None,
            "p_different": each.p,
            "candidates": len(pair.candidates),
        }
        for pair in result.pairs
        for each in pair.responses
    ]


def proof_rows(result: Explanation) -> list[Row]:
    """A row a headline that a study with a cause switched has too."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "reference": each.reference,
            "cause": each.cause.name,
            "metric": each.response.metric,
            "host": each.response.host,
            "direction": each.response.direction,
            "ratio_low": each.as_is.low,
            "ratio_high": each.as_is.high,
            "alike_ratio_low": each.alike.low,
            "alike_ratio_high": each.alike.high,
            "alike": each.level,
            "closed": each.closed,
            "closed_low": each.closed_interval.low if each.closed_interval else None,
            "closed_high": each.closed_interval.high if each.closed_interval else None,
            "p": each.p,
            "says": str(each.says),
        }
        for each in result.proofs
    ]


def sign_text(cause: Cause, value: float) -> str:
    """The sign in its unit: per cent, segments, or CPU time."""
    if cause.share:
        return f"{100 * value:.3g} %"
    if cause.name != "cpu":
        return f"{number(value)} segments"
    scale = unit_scale("s", [value])
    return f"{number(value / scale.factor)} {scale.unit}"


def table(result: Explanation) -> Tabular:
    """A row a candidate."""
    heads = ("Cell", "Testbed", "", "candidate cause", "seen on", "works on", "sign", "reference's", "p")
    lines = [
        (
            cell_title(pair.cell),
            pair.testbed,
            f"{pair.candidates.index(each) + 1}.",
            each.cause.title,
            f"{each.role}s" if each.role else "all hosts",
            _works(pair, each),
            sign_text(each.cause, each.here),
            sign_text(each.cause, each.there),
            p_text(each.p),
        )
        for pair, each in candidates_of(result)
    ]
    return Tabular("What may make testbeds differ", CAPTION, heads, tuple(lines), texts=6)


def _works(pair: Pair, each: Candidate) -> str:
    return f"{pair.testbed if each.here > each.there else pair.reference} alone" if each.alone else "both, by degrees"


def proof_table(result: Explanation) -> Tabular:
    """A row a headline."""
    heads = ("Cell", "Testbed", "cause", "metric", "says", "ratio as found", "ratio alike", "gone", "p")
    lines = [
        (
            cell_title(each.cell),
            each.testbed,
            each.cause.title,
            metric_title(each.response.metric, each.response.host, each.response.direction),
            str(each.says),
            f"{number(each.as_is.low)} to {number(each.as_is.high)}",
            f"{number(each.alike.low)} to {number(each.alike.high)}",
            NONE if each.says is Proved.GONE else _gone(each),
            NONE if each.says is Proved.GONE else p_text(each.p),
        )
        for each in result.proofs
    ]
    caption = "The ratio to the reference with each cause as it was found, and with it alike on both testbeds."
    return Tabular("What switching a cause shows", caption, heads, tuple(lines), texts=5)


def sentences(result: Explanation) -> Iterator[str]:
    """What is different, and why it may be."""
    if not result.pairs:
        count = f"{result.compared} comparison{'s' if result.compared != 1 else ''} with {result.reference}"
        yield f"No headline is different in {count}: there is nothing to explain."
    advised: set[str] = set()
    for pair in result.pairs:
        yield " ".join(_of_pair(pair, advised))
    for each in _told(result):
        yield _proof(each)
    if result.not_seen:
        names = "; ".join(f"{BY_NAME[name].title} ({why})" for name, why in result.not_seen.items())
        yield f"Nothing is known of: {names}."


def _of_pair(pair: Pair, advised: set[str]) -> Iterator[str]:
    """``advised``: causes of which it was said what they are and what to try; said once."""
    first = pair.responses[0]
    more = len(pair.responses) - 1
    others = f" and in {more} other headline{'s' if more > 1 else ''}" if more else ""
    where = f"{cell_title(pair.cell)}: " if pair.cell else ""
    ratio = f" (ratio {number(first.ratio)})" if first.ratio is not None else ""
    yield heading(f"{where}{pair.testbed} is different from {pair.reference} in {_metric(first)}{ratio}{others}.")
    if not pair.candidates:
        yield "None of the causes that are looked for shows."
        return
    one = pair.candidates[0]
    here, there = sign_text(one.cause, one.here), sign_text(one.cause, one.there)
    if one.cause.name in advised:
        yield f"First candidate: {one.cause.title}, {here} against {there}."
        return
    advised.add(one.cause.name)
    yield f"First candidate: {one.cause.title}, {here} against {there} ({one.cause.sign})."
    yield from _waits(pair, one)
    yield f"What to try: {one.cause.advice}."


def _waits(pair: Pair, one: Candidate) -> Iterator[str]:
    """Say what the waits make of the time that a request takes."""
    for name, waits in zip((pair.testbed, pair.reference), one.waits, strict=True):
        if waits is not None:
            took, each, waited = (quantity(seconds, "s") for seconds in (waits.work_s, waits.each_s, waits.waited_s))
            wake_ups = f"{number(waits.wake_ups)} wake-ups of {each} each"
            yield f"{name}: a {waits.work} takes {took}, {waited} of it are {wake_ups}."


def _metric(response: Response) -> str:
    return metric_title(response.metric, response.host, response.direction)


def _told(result: Explanation) -> list[Proof]:
    """Of each cause, testbed and cell the first headline that differs in the study too."""
    first: dict[tuple[str, str, str], Proof] = {}
    for each in sorted(result.proofs, key=lambda proof: proof.says is Proved.GONE):
        first.setdefault((each.cause.name, each.testbed, repr(each.cell)), each)
    return list(first.values())


def _gone(each: Proof) -> str:
    """``62 % [48, 79]``: the share of the difference that is gone, with its interval."""
    known = each.closed_interval
    bounds = f" [{100 * known.low:.0f}, {100 * known.high:.0f}]" if known else ""
    return f"{100 * each.closed:.0f} %{bounds}"


def _proof(each: Proof) -> str:
    what = f"{cell_title(each.cell)}: " if each.cell else ""
    before, after = (f"{number(bounds.low)} to {number(bounds.high)}" for bounds in (each.as_is, each.alike))
    title, state = each.cause.title, f"{each.cause.switch.setting if each.cause.switch else ''}: {each.level}"
    metric = _metric(each.response)
    if each.says is Proved.GONE:
        return heading(
            f"{what}{title}: neither proved nor disproved. In the study that switches it {each.testbed} and {each.reference} "
            f"do not differ in {metric} as they are (ratio {before})."
        )
    share = {
        Proved.PROVED: f"proved: {100 * each.closed:.0f} % of the difference in {metric} are gone",
        Proved.IN_PART: f"proved in part: {_gone(each)} of the difference in {metric} are gone",
        Proved.OVERSHOT: f"no proof: something else changed too. The difference in {metric} is there the other way round",
        Proved.NOT_PROVED: f"not proved: the difference in {metric} stays",
    }[each.says]
    return heading(f"{what}{title}: {share} with {state} on both (ratio {before} before, {after} then).")
