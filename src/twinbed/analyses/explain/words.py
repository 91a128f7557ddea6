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
    records = [Of(*entry) for entry in candidates_of(result)]
    columns = (
        *cell_columns(records, lambda of: of.group.cell),
        Column("testbed", "Testbed", value="group.testbed"),
        Column("reference", value="group.reference"),
        Column("rank", "rank", value=lambda of: of.group.candidates.index(of.item) + 1),
        Column("cause", value="item.cause.name"),
        Column(head="candidate cause", value="item.cause.title"),
        Column("role", value=lambda of: of.item.role or None),
        Column(head="seen on", value=lambda of: f"{of.item.role}s" if of.item.role else "all hosts"),
        Column(head="works on", value=_works),
        Column("sign", value="item.own"),
        Column(head="sign", format="s", value=lambda of: sign_text(of.item.cause, of.item.own)),
        Column("reference_sign", value="item.reference"),
        Column(head="reference's sign", format="s", value=lambda of: sign_text(of.item.cause, of.item.reference)),
        Column("p", "p", format=p_text, value="item.p"),
        Column("alone", value="item.alone"),
        Column("setting", value="item.cause.switch.setting"),
        Column("state", value=lambda of: of.item.states[0]),
        Column("reference_state", value=lambda of: of.item.states[1]),
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
    pair, candidate = of
    return (
        f"{pair.testbed if candidate.own > candidate.reference else pair.reference} only"
        if candidate.alone
        else "both, by degrees"
    )


def _waited(prefix: str, side: int) -> Iterator[Column]:
    """Yield the wake-ups of idle CPUs by the work done, what each took, and how long a client took for the work."""

    def value(name: str, of: Found) -> float | None:
        waits = of.item.waits[side]
        return getattr(waits, name) if waits else None

    for key, name in (("wake_ups_per_work", "wake_ups"), ("wake_up_s", "each_s"), ("work_s", "work_s")):
        yield Column(prefix + key, value=partial(value, name))


def responses(result: Explanation) -> Table:
    """Return a row a headline that differs, for programs."""
    records = [Of(pair, response) for pair in result.pairs for response in pair.responses]
    columns = (
        *cell_columns(records, lambda of: of.group.cell),
        Column("testbed", value="group.testbed"),
        Column("reference", value="group.reference"),
        *(Column(name, value=f"item.{name}") for name in ("metric", "host", "direction", "ratio")),
        Column("ratio_low", value="item.interval.low"),
        Column("ratio_high", value="item.interval.high"),
        Column("p_different", value="item.p"),
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
        Column(head="metric", value=lambda proof: _metric(proof.response)),
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
        Column(head="p", format="s", value=lambda proof: None if proof.says is Proved.GONE else p_text(proof.p)),
        Column("says", value=lambda proof: str(proof.says)),
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
    for proof in _first_proofs(result):
        yield _proof(proof)
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
    likeliest = pair.candidates[0]
    own_sign, reference_sign = sign_text(likeliest.cause, likeliest.own), sign_text(likeliest.cause, likeliest.reference)
    if likeliest.cause.name in advised:
        yield f"Most likely cause: {likeliest.cause.title}, {own_sign} compared with {reference_sign}."
        return
    advised.add(likeliest.cause.name)
    yield f"Most likely cause: {likeliest.cause.title}, {own_sign} compared with {reference_sign} ({likeliest.cause.sign})."
    yield from _waits(pair, likeliest)
    yield f"Try {likeliest.cause.advice}."


def _waits(pair: Pair, candidate: Candidate) -> Iterator[str]:
    """Yield the part of a request's time that the waits take."""
    for name, waits in zip((pair.testbed, pair.reference), candidate.waits, strict=True):
        if waits is not None:
            took, each_wait, waited = (quantity(seconds, "s") for seconds in (waits.work_s, waits.each_s, waits.waited_s))
            wake_ups = f"{number(waits.wake_ups)} wake-ups of {each_wait} each"
            yield f"{name}: a {waits.work} takes {took}, including {waited} for {wake_ups}."


def _metric(response: Response) -> str:
    return metric_title(response.metric, response.host, response.direction)


def _first_proofs(result: Explanation) -> list[Proof]:
    """Return the first headline of each cause, testbed and cell that differs in the study too."""
    first: dict[tuple[str, str, str], Proof] = {}
    for proof in sorted(result.proofs, key=lambda shown: shown.says is Proved.GONE):
        first.setdefault((proof.cause.name, proof.testbed, repr(proof.cell)), proof)
    return list(first.values())


def _gone(proof: Proof) -> str | None:
    """Return ``62 % [48, 79]``: the removed share of the difference, with its interval; None where nothing differed."""
    if proof.says is Proved.GONE:
        return None
    known = proof.closed_interval
    bounds = f" [{100 * known.low:.0f}, {100 * known.high:.0f}]" if known else ""
    return f"{100 * proof.closed:.0f} %{bounds}"


def _proof(proof: Proof) -> str:
    what = f"{cell_title(proof.cell)}: " if proof.cell else ""
    before, after = (f"{number(bounds.low)} to {number(bounds.high)}" for bounds in (proof.as_is, proof.alike))
    title, state = proof.cause.title, f"{proof.cause.switch.setting if proof.cause.switch else ''}: {proof.level}"
    metric = _metric(proof.response)
    if proof.says is Proved.GONE:
        return heading(
            f"{what}{title}: neither proved nor disproved. In the study that switches it, {proof.testbed} and "
            f"{proof.reference} do not differ in {metric} as found (ratio {before})."
        )
    share = {
        Proved.PROVED: f"proved: {100 * proof.closed:.0f} % of the difference in {metric} is gone",
        Proved.IN_PART: f"proved in part: {_gone(proof)} of the difference in {metric} is gone",
        Proved.OVERSHOT: f"no proof: something else changed too. The difference in {metric} is reversed",
        Proved.NOT_PROVED: f"not proved: the difference in {metric} remains",
    }[proof.says]
    return heading(f"{what}{title}: {share} with {state} on both (ratio {before} before, {after} after).")
