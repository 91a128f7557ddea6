"""The analysis ``explain``: candidate causes of differences from the reference, by signs of known causes in the same runs.

In: headline metrics, the kernels' counters, captures. Out: for each testbed and cell with a headline that is different, the
causes whose signs differ, the most likely first.  A sign that differs proves nothing.  After a study with the cause switched on
and off, ``proof`` shows how much the cause explains.

The order.  CPUs of another kind come first if programs take twice the time on one of them: they slow down everything else.
Then causes whose own setting was read back as different; with equal settings the signs differ for another reason.  Then
mechanisms that work on one testbed alone, in the order of a packet's way (``causes``): a later one depends on earlier ones.
Then signs that differ by degrees, which may be a consequence, the largest difference first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from scipy.special import stdtr

from twinbed.analyses.explain.causes import CAUSES, CPU, IDLE_CPUS, INITIAL_WINDOW, OF_ALL_HOSTS, Cause
from twinbed.analyses.explain.result import Candidate, Explanation, Pair, Response
from twinbed.analyses.explain.signs import ROLES, Signs, Waits, mean, signs, waits
from twinbed.analyses.explain.words import section
from twinbed.contracts.analysis import Analysis, Judged
from twinbed.metrics.metric import Scale
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.tables import Tables
from twinbed.observations.inside import complete, read
from twinbed.observations.samples import CellRuns, Samples, gather
from twinbed.observations.units import units
from twinbed.show.section import Section
from twinbed.statistics.moments import standard_error
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.ratio import ratio_test

ABSENT = 0.02
"""A cause does not work on a testbed whose sign is less than this share of the other's."""
LEAST_SHARE = 0.01
"""A cause that touches a smaller share explains no headline's difference. One delayed write takes many others with it:
autocorking that touched 5 % of packets left a thirteenth of them."""
LEAST_DEGREES = 0.1
"""The same for signs that differ by degrees."""
TWICE = 0.5
"""The change of a sign that doubles."""


class ExplainAnalysis(Analysis[Judged, Explanation]):
    """Candidate causes of differences."""

    name = "explain"
    params = Judged
    is_in_reports = True

    def run(self, source: Tables, params: Judged | None = None) -> Explanation:
        outline = source.outline
        if outline.reference is None:
            raise TwinbedError(f"{source.shown} has no reference testbed", advice="name one: --reference TESTBED")
        margin, confidence = (params or Judged()).judged_by(outline)
        alpha = round(1 - confidence, 12)
        samples = gather(source)
        differ = _different(source, samples, outline.reference, margin, alpha)
        records = complete(source)
        seen = signs(source, records)
        hardware, states, timed = _hardware(source), states_of(source), waits(source, records)
        tested = {
            (cell, testbed): _tested(seen, samples.groups[cell][testbed], samples.groups[cell][outline.reference])
            for cell, testbed in differ
        }
        adjusted = iter(holm([candidate.p for of_pair in tested.values() for candidate in of_pair]))
        pairs = []
        for (cell, testbed), responses in differ.items():
            names = testbed, outline.reference
            judged = [replace(candidate, p=next(adjusted)) for candidate in tested[cell, testbed]]
            apart = hardware.get(testbed) != hardware.get(outline.reference)
            groups = samples.groups[cell][testbed], samples.groups[cell][outline.reference]
            kept = [
                replace(candidate, states=_states(candidate, names, states), waits=_waits(candidate, groups, timed))
                for candidate in judged
                if candidate.p <= alpha and _matters(candidate) and (apart or candidate.cause is not CPU)
            ]
            possible = _largest_of_roles([candidate for candidate in kept if not _same_window(candidate)])
            pairs.append(Pair(samples.cells[cell], *names, tuple(responses), tuple(sorted(possible, key=_rank))))
        known = {cause for of_run in seen.values() for (cause, _), sign in of_run.items() if sign is not None}
        compared = sum(
            outline.reference in groups and testbed in groups
            for groups in samples.groups.values()
            for testbed in samples.testbeds
            if testbed != outline.reference
        )
        return Explanation(
            tuple(pairs),
            compared,
            outline.reference,
            not_seen={cause.name: _why(source, cause) for cause in CAUSES if cause.name not in known},
            left_out={"runs that failed": failed} if (failed := len(source.records) - len(records)) else {},
        )

    def section(self, result: Explanation) -> Section:
        return section(result)

    def says_something(self, result: Explanation) -> bool:
        return bool(result.pairs)


def _different(
    source: Tables, samples: Samples, reference: str, margin: float, alpha: float
) -> dict[tuple[str, str], list[Response]]:
    """Return (cell, testbed) -> the headlines that are different there, as in ``compare``: by the ratio of means, within blocks
    where the study says so, with Holm's correction over all headlines."""
    by = units(source, None)
    tested: list[tuple[str, str, Response]] = []
    for key in (key for key in samples.keys() if samples.is_headline(key)):  # noqa: SIM118 -- not a mapping
        declared = samples.metrics[key[0]]
        if declared.scale != Scale.RATIO:
            continue
        for cell, groups in samples.groups.items():
            for testbed in (name for name in samples.testbeds if name != reference and name in groups and reference in groups):
                arranged = by.arrange(key, (groups[testbed], groups[reference]))
                if min(len(arranged.own), len(arranged.reference)) < 2:
                    continue
                steps = groups[testbed].steps.get(key, 0.0), groups[reference].steps.get(key, 0.0)
                test = ratio_test(arranged.own, arranged.reference, margin, alpha, steps=steps, paired=arranged.paired)
                if test is not None:
                    interval = Interval(*test.wide) if test.wide else None
                    tested.append((cell, testbed, Response(*key, test.ratio, interval, test.p_different)))
    differ: dict[tuple[str, str], list[Response]] = defaultdict(list)
    for (cell, testbed, response), p in zip(tested, holm([own.p for *_, own in tested]), strict=True):
        if p <= alpha:
            differ[cell, testbed].append(replace(response, p=p))
    return differ


def _tested(seen: Mapping[str, Signs], own: CellRuns, reference: CellRuns) -> list[Candidate]:
    """Return every sign that both testbeds have in at least two runs. P-values are not yet corrected."""
    candidates = []
    for cause in CAUSES:
        for role in ("",) if cause in OF_ALL_HOSTS else ROLES:
            x, y = (
                [sign for run in group.complete if (sign := seen[run].get((cause.name, role))) is not None]
                for group in (own, reference)
            )
            if min(len(x), len(y)) < 2 or not any(x) | any(y):
                continue
            own_mean, reference_mean = fmean(x), fmean(y)
            alone = cause.mechanism and min(own_mean, reference_mean) <= ABSENT * max(own_mean, reference_mean)
            candidates.append(Candidate(cause, role, own_mean, reference_mean, _p(x, y), alone))
    return candidates


def _p(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Welch's two-sided p-value of equal means."""
    error, df = standard_error(x, y, paired=False)
    difference = abs(fmean(x) - fmean(y))
    if not error:
        return 0.0 if difference else 1.0
    return 2 * float(stdtr(df, -difference / error))


def _matters(candidate: Candidate) -> bool:
    if not candidate.cause.share:
        return candidate.change >= LEAST_DEGREES
    if candidate.alone:
        return max(candidate.own, candidate.reference) >= LEAST_SHARE
    return abs(candidate.own - candidate.reference) >= LEAST_DEGREES


def _largest_of_roles(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates; if clients and servers show a cause, only the side that shows it more."""
    largest: dict[str, Candidate] = {}
    for candidate in candidates:
        known = largest.get(candidate.cause.name)
        if known is None or (candidate.alone, abs(candidate.own - candidate.reference)) > (
            known.alone,
            abs(known.own - known.reference),
        ):
            largest[candidate.cause.name] = candidate
    return list(largest.values())


def _rank(candidate: Candidate) -> tuple[int, float]:
    """Return what sorts the most likely first."""
    place = CAUSES.index(candidate.cause)
    if candidate.cause is CPU and candidate.change >= TWICE:
        return 0, 0
    if candidate.set_apart:
        return 1 if candidate.alone else 2, place
    if candidate.alone or not candidate.cause.share:
        return 3 + (candidate.cause is CPU), place
    return 5, -candidate.change * max(candidate.own, candidate.reference)


def _testbeds(source: Tables) -> Mapping[str, str]:
    """Return run -> its testbed."""
    return {record.id: str(record.settings["testbed"]["name"]) for record in source.records}


def _hardware(source: Tables) -> Mapping[str, frozenset[tuple[str, str]]]:
    """Return testbed -> the models and numbers of its hosts' CPUs."""
    of_run = _testbeds(source)
    by_testbed: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for run, place, fact, value in read(source, "facts", "run", "place", "fact", "value"):
        if fact in ("cpu", "cpus") and run in of_run and place.startswith(ROLES):
            by_testbed[of_run[run]].add((fact, value))
    return {testbed: frozenset(facts) for testbed, facts in by_testbed.items()}


def states_of(source: Tables) -> Mapping[tuple[str, str], str | None]:
    """Return (testbed, factor that switches a cause) -> the state read back from all its hosts; None where hosts differ."""
    of_run = _testbeds(source)
    switches = [cause.switch for cause in CAUSES if cause.switch]
    applied = {switch.applied: switch for switch in switches if switch.applied}
    by_factor: dict[tuple[str, str], set[str]] = defaultdict(set)
    for record in source.records:
        for switch in switches:
            state = None if switch.applied else record.settings[switch.section].get(switch.setting)
            if isinstance(state, str):
                by_factor[of_run[record.id], switch.factor].add(state)
    for table, *columns in (("applied", "subject", "setting", "found"), ("facts", "place", "fact", "value")):
        for run, at, setting, value in read(source, table, "run", *columns):
            known = applied.get(setting.replace(" ", "_"))
            if known is not None and run in of_run and at.startswith(ROLES):
                words = {"1": "on", "0": "off"} if known.on in ("on", "off") else {}
                by_factor[of_run[run], known.factor].add(words.get(value, value))
    return {key: next(iter(values)) if len(values) == 1 else None for key, values in by_factor.items()}


def _states(
    candidate: Candidate, names: tuple[str, str], states: Mapping[tuple[str, str], str | None]
) -> tuple[str | None, str | None]:
    if candidate.cause.switch is None:
        return None, None
    own_state, reference_state = (states.get((name, candidate.cause.switch.factor)) for name in names)
    return own_state, reference_state


def _waits(candidate: Candidate, groups: Sequence[CellRuns], timed: Mapping[str, Waits]) -> tuple[Waits | None, Waits | None]:
    """Return the wake-ups of idle CPUs on the testbed and on the reference, for the cause idle_cpus alone."""
    if candidate.cause is not IDLE_CPUS:
        return None, None
    own_waits, reference_waits = (mean([timed[run] for run in group.complete if run in timed]) for group in groups)
    return own_waits, reference_waits


def _same_window(candidate: Candidate) -> bool:
    """Return whether the cause is the initial window and it is set alike on both. The sign then differs by chance, since
    acknowledgements come back at once."""
    return candidate.cause is INITIAL_WINDOW and candidate.states[0] is not None and candidate.states[0] == candidate.states[1]


def _why(source: Tables, cause: Cause) -> str:
    """Return why no run has a sign of a cause."""
    if cause.needs and not any(cause.needs in record.settings["instruments"] for record in source.records):
        return f"needs the instrument {cause.needs}"
    return "not measured, or nothing to work on"


analysis = ExplainAnalysis()
