"""Write causes of differences as a section: a sentence for each difference, the candidate causes, and proofs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

from twinbed.analyses.explain.causes import BY_NAME, Cause
from twinbed.analyses.explain.result import Candidate, Explanation, Pair, Proof, Proved, Response, candidates_of, switchable
from twinbed.model.amount import amount
from twinbed.show.numbers import joined
from twinbed.show.quantities import number, quantity, unit_scale
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Of, Table, cell_columns
from twinbed.show.words import cell_title, heading, metric_title, p_text

Found: TypeAlias = Of[Pair, Candidate]


def section(result: Explanation) -> Section:
    """Return the section of differences and their causes."""
    first, *rest = sentences(result)
    items: list[Item] = [*rest, candidates(result), responses(result), proofs(result)]
    if not result.proofs and (causes := switchable(result)):
        items.append(f"Next: prove {causes[0].title} with twinbed explain RESULTS --study proof.yaml")
    return Section("explain", "Why testbeds differ", first, items, kicker="Causes")


def candidates(result: Explanation) -> Table:
    """Return a row a candidate."""
    records = [Of(*found) for found in candidates_of(result)]
    columns = (
        *cell_columns(records, lambda of: of.group.cell),
        Column("testbed", "Testbed", value="group.testbed"),
        Column("reference", value="group.reference"),
        Column("rank", "rank", value=lambda of: of.group.candidates.index(of.each) + 1),
        Column("cause", value="each.cause.name"),
        Column(head="candidate cause", value="each.cause.title"),
        Column("role", value=lambda of: of.each.role or None),
        Column(head="seen on", value=lambda of: f"{of.each.role}s" if of.each.role else "all hosts"),
        Column(head="works on", value=_works),
        Column("sign", value="each.here"),
        Column(head="sign", format="s", value=lambda of: sign_text(of.each.cause, of.each.here)),
        Column("reference_sign", value="each.there"),
        Column(head="reference's sign", format="s", value=lambda of: sign_text(of.each.cause, of.each.there)),
        Column("p", "p", format=p_text, value="each.p"),
        Column("alone", value="each.alone"),
        Column("setting", value="each.cause.switch.setting"),
        Column("state", value=lambda of: of.each.states[0]),
        Column("reference_state", value=lambda of: of.each.states[1]),
        *_waited("", 0),
        *_waited("reference_", 1),
    )
    return Table("causes", "Candidate causes", CAPTION, columns, records)


CAPTION = (
    "Signs of causes that differ from the reference's, most likely first. A mechanism active on only one testbed ranks above "
    "one that differs by degrees, which may be its consequence. p: the signs are equal (Welch's test, Holm's correction). Only "
    "a study that switches the cause proves it."
)


def _works(of: Found) -> str:
    pair, each = of
    return f"{pair.testbed if each.here > each.there else pair.reference} only" if each.alone else "both, by degrees"


def _waited(prefix: str, side: int) -> Iterator[Column]:
    """Yield the wake-ups of idle CPUs by the work done, what each took, and how long a client took for the work."""

    def value(name: str, of: Found) -> float | None:
        waits = of.each.waits[side]
        return getattr(waits, name) if waits else None

    for key, name in (("wake_ups_per_work", "wake_ups"), ("wake_up_s", "each_s"), ("work_s", "work_s")):
        yield Column(prefix + key, value=partial(value, name))


def responses(result: Explanation) -> Table:
    """Return a row a headline that differs, for programs."""
    records = [Of(pair, each) for pair in result.pairs for each in pair.responses]
    columns = (
        *cell_columns(records, lambda of: of.group.cell),
        Column("testbed", value="group.testbed"),
        Column("reference", value="group.reference"),
        *(Column(name, value=f"each.{name}") for name in ("metric", "host", "direction", "ratio")),
        Column("ratio_low", value="each.interval.low"),
        Column("ratio_high", value="each.interval.high"),
        Column("p_different", value="each.p"),
        Column("candidates", value=lambda of: len(of.group.candidates)),
    )
    return Table("responses", "", "", columns, records).for_programs()


def proofs(result: Explanation) -> Table:
    """Return a row a headline that a study with a cause switched has too."""
    columns = (
        *cell_columns(result.proofs),
        Column("testbed", "Testbed"),
        Column("reference"),
        Column("cause", value="cause.name"),
        Column(head="cause", value="cause.title"),
        Column(head="metric", value=lambda each: _metric(each.response)),
        *(Column(name, value=f"response.{name}") for name in ("metric", "host", "direction")),
        Column(head="outcome", value="says"),
        *_range("ratio as found", "as_is", "ratio"),
        *_range("ratio alike", "alike", "alike_ratio"),
        Column("alike", value="level"),
        Column("closed"),
        Column(head="explained", format="s", value=_gone),
        Column("closed_low", value="closed_interval.low"),
        Column("closed_high", value="closed_interval.high"),
        Column("p"),
        Column(head="p", format="s", value=lambda each: None if each.says is Proved.GONE else p_text(each.p)),
        Column("says", value=lambda each: str(each.says)),
    )
    caption = "The ratio to the reference with each cause as found, and with it alike on both testbeds."
    return Table("proofs", "Causes switched on and off", caption, columns, result.proofs)


def _range(head: str, name: str, key: str) -> Iterator[Column]:
    yield Column(head=head, format=lambda of: f"{number(of.low)} to {number(of.high)}", value=name)
    yield Column(f"{key}_low", value=f"{name}.low")
    yield Column(f"{key}_high", value=f"{name}.high")


def sign_text(cause: Cause, value: float) -> str:
    """Return the sign in its unit: per cent, segments, or CPU time."""
    if cause.share:
        return f"{100 * value:.3g} %"
    if cause.name != "cpu":
        return f"{number(value)} segments"
    scale = unit_scale("s", [value])
    return f"{number(value / scale.factor)} {scale.unit}"


def sentences(result: Explanation) -> Iterator[str]:
    """Yield each difference with its first candidate, then the proofs, then causes that were not looked for."""
    if not result.pairs and not result.compared:
        yield f"Nothing to explain: no testbed was compared with {result.reference}."
    elif not result.pairs:
        count = amount(result.compared, "comparison")
        yield f"Nothing to explain: no headline is different in {count} with {result.reference}."
    advised: set[str] = set()
    for pair in result.pairs:
        yield " ".join(_of_pair(pair, advised))
    for each in _first_proofs(result):
        yield _proof(each)
    if result.not_seen:
        by_reason: dict[str, list[str]] = defaultdict(list)
        for name, why in result.not_seen.items():
            by_reason[why].append(BY_NAME[name].title)
        yield f"Cannot tell: {'; '.join(f'{joined(names)} ({why})' for why, names in by_reason.items())}."


def _of_pair(pair: Pair, advised: set[str]) -> Iterator[str]:
    """Yield sentences on one testbed and cell. ``advised`` collects the causes that were described, so that each is once."""
    first = pair.responses[0]
    more = len(pair.responses) - 1
    others = f" and in {more} other headline{'s' if more > 1 else ''}" if more else ""
    where = f"{cell_title(pair.cell)}: " if pair.cell else ""
    ratio = f" ({number(first.ratio)} times as much)" if first.ratio is not None else ""
    yield heading(f"{where}{pair.testbed} differs from {pair.reference} in {_metric(first)}{ratio}{others}.")
    if not pair.candidates:
        yield "No candidate cause was found."
        return
    one = pair.candidates[0]
    here, there = sign_text(one.cause, one.here), sign_text(one.cause, one.there)
    if one.cause.name in advised:
        yield f"Most likely cause: {one.cause.title}, {here} compared with {there}."
        return
    advised.add(one.cause.name)
    yield f"Most likely cause: {one.cause.title}, {here} compared with {there} ({one.cause.sign})."
    yield from _waits(pair, one)
    yield f"Try {one.cause.advice}."


def _waits(pair: Pair, one: Candidate) -> Iterator[str]:
    """Yield the part of a request's time that the waits take."""
    for name, waits in zip((pair.testbed, pair.reference), one.waits, strict=True):
        if waits is not None:
            took, each, waited = (quantity(seconds, "s") for seconds in (waits.work_s, waits.each_s, waits.waited_s))
            wake_ups = f"{number(waits.wake_ups)} wake-ups of {each} each"
            yield f"{name}: a {waits.work} takes {took}, including {waited} for {wake_ups}."


def _metric(response: Response) -> str:
    return metric_title(response.metric, response.host, response.direction)


def _first_proofs(result: Explanation) -> list[Proof]:
    """Return the first headline of each cause, testbed and cell that differs in the study too."""
    first: dict[tuple[str, str, str], Proof] = {}
    for each in sorted(result.proofs, key=lambda proof: proof.says is Proved.GONE):
        first.setdefault((each.cause.name, each.testbed, repr(each.cell)), each)
    return list(first.values())


def _gone(each: Proof) -> str | None:
    """Return ``62 % [48, 79]``: the removed share of the difference, with its interval; None where nothing differed."""
    if each.says is Proved.GONE:
        return None
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
            f"{what}{title}: neither proved nor disproved. In the study that switches it, {each.testbed} and {each.reference} "
            f"do not differ in {metric} as found (ratio {before})."
        )
    share = {
        Proved.PROVED: f"proved: {100 * each.closed:.0f} % of the difference in {metric} is gone",
        Proved.IN_PART: f"proved in part: {_gone(each)} of the difference in {metric} is gone",
        Proved.OVERSHOT: f"no proof: something else changed too. The difference in {metric} is reversed",
        Proved.NOT_PROVED: f"not proved: the difference in {metric} remains",
    }[each.says]
    return heading(f"{what}{title}: {share} with {state} on both (ratio {before} before, {after} after).")
