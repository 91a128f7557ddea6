"""The analysis ``anatomy``: the steps that a request consists of, and which of them make a testbed slower or faster.

In: the table ``steps`` of captures, a row an exchange and link.  Out: each step's mean and quantiles by testbed and cell, its
difference and ratio to the reference's, and the patterns of packets.  Runs are the unit: a run has one mean of each step, and
those of runs are compared as any other metric is.

The difference of two testbeds' mean times is the sum of the differences of their steps' means.  Each request has all steps, and
means are linear (a Shapley value of a sum is the term itself).  The time between requests is added where a run's clients worked
in a closed loop, as all of twinbed's do.  The sum is then the time that one request costs a client: the number of clients over
the rate.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from twinbed.analyses.anatomy import parts, patterns, steps, waits, words
from twinbed.analyses.anatomy.ladders import Ladder, ladder
from twinbed.analyses.anatomy.parts import PARTS, Group, Split
from twinbed.analyses.anatomy.patterns import Counts
from twinbed.analyses.anatomy.result import BETWEEN, SPECIAL, TOTAL, Anatomy, Difference, Requests, StepTimes
from twinbed.analyses.anatomy.sampled import samples
from twinbed.analyses.anatomy.stations import Host
from twinbed.analyses.anatomy.steps import STEPS, Seconds, Seen
from twinbed.contracts.analysis import Analysis, Judged
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.result import Interval, Pairing, Verdict
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.show.section import Section
from twinbed.statistics.moments import standard_error
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.ratio import ratio_test

if TYPE_CHECKING:
    import pyarrow as pa

SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.99)
CLIENT, SERVER = "client", "server"
SAMPLED_FROM = 2**17
"""Exchanges of a link; from this number on the core keeps a sample, in which the time between requests is unknown."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One run's requests, over all its links."""

    record: Record
    requests: int
    means: Mapping[str, float]
    quantiles: Mapping[str, Mapping[float, float]]
    patterns: Counts
    waits: waits.Counts
    bounds: Mapping[str, float]
    """Part -> the largest error that hosts' clocks make."""
    split: int
    """Requests whose steps all have their parts."""


class AnatomyAnalysis(Analysis[Judged, Anatomy]):
    """Where does the time of a request go, and which step makes a testbed slower?

    Packets split each request of RESULTS into steps: handshake, request, the server's answer, the way back, the transfer, the
    end. The steps add up. The difference between two testbeds is therefore the sum of the differences of steps.

    \b
      twinbed anatomy results/
      twinbed anatomy results/ --format csv --table steps
      twinbed anatomy results/ -o anatomy.html                     as a page, with the waterfall of each difference
      twinbed anatomy results/ --ladder                            a request of every testbed, packet by packet
      twinbed anatomy results/ --format mermaid                    the same as a sequence diagram
      twinbed anatomy client.pcap server.pcap                      two captures of one path, the client's first
      twinbed anatomy client.pcap                                  one capture: everything behind it is one step
    """

    name = "anatomy"
    params = Judged
    epilog = "docs/anatomy.md explains the steps with a worked example."
    table_names = ("differences", "steps", "groups", "patterns", "timers")
    is_against_a_reference = True
    is_in_reports = True

    def run(self, source: Tables, params: Judged | None = None) -> Anatomy:
        outline = source.outline
        margin, confidence = (params or Judged()).judged_by(outline)
        complete = {record.id: record for record in source.records if record.status is Status.COMPLETE}
        links = _links(source.table("steps"), complete)
        if not links:
            raise TwinbedError(
                f"{source.shown} has no steps of requests",
                advice="run the study with instruments: [packets] and HTTP, or a command with work and a listening port",
            )
        seen = _seen(links, complete)
        left_out: Counter[str] = Counter()
        waiting, hosts = _links(source.table("step_waits"), complete), _hosts(source)
        read = ((complete[id], tables, waiting.get(id, {}), hosts.get(id, {})) for id, tables in links.items())
        runs = [run for of_run in read if (run := _run(*of_run, seen, left_out)) is not None]
        if not runs:
            raise TwinbedError(f"{source.shown} has no run with a whole request", advice="use HTTP as the workload")
        left_out["runs without a whole request"] = len(complete) - len(runs)
        groups: dict[str, dict[str, list[_Run]]] = defaultdict(lambda: defaultdict(list))
        cells: dict[str, Mapping[str, Level]] = {}
        for run in sorted(runs, key=lambda run: run.record.block):
            levels = {factor: level for factor, level in run.record.levels.items() if factor != "testbed"}
            cell = json.dumps(levels, sort_keys=True)
            cells.setdefault(cell, levels)
            groups[cell][str(run.record.settings["testbed"]["name"])].append(run)
        paired = outline.data.get("comparison") == Pairing.PAIRED
        names = [*(step.name for step in STEPS[seen]), TOTAL, BETWEEN]
        of_steps = {step: tuple(parts.name(step, part) for part in step_parts) for step, step_parts in PARTS[seen].items()}
        finer = [name for step_parts in of_steps.values() for name in step_parts]
        part_differences = list[Difference]()
        sampled = samples(source.table("step_packets"))
        requests, differences, ladders = list[Requests](), list[Difference](), list[Ladder]()
        factors = outline.data.get("factors", {})
        for cell, of_cell in sorted(groups.items(), key=lambda item: _rank(cells[item[0]], factors)):
            for testbed in (name for name in outline.testbeds if name in of_cell):
                requests.append(_requests(cells[cell], testbed, of_cell[testbed], names, finer))
                ids = [run.record.id for run in of_cell[testbed]]
                if (drawn := ladder(cells[cell], testbed, ids, links, sampled, seen)) is not None:
                    ladders.append(drawn)
                if testbed != outline.reference and outline.reference in of_cell:
                    pair = of_cell[testbed], of_cell[outline.reference]
                    where = cells[cell], testbed, outline.reference
                    differences += _differences(where, pair, names, margin, confidence, paired)
                    part_differences += _differences(where, pair, finer, margin, confidence, paired)
        titles = {step.name: step.title for step in STEPS[seen]} | SPECIAL
        return Anatomy(
            seen=seen,
            titles=titles,
            where={step.name: step.where for step in STEPS[seen]} | {BETWEEN: CLIENT} | dict(parts.groups(seen, of_parts=True)),
            reference=outline.reference,
            margin=margin,
            confidence=confidence,
            requests=tuple(requests),
            differences=tuple(_decided(differences, 1 - confidence)),
            ladders=tuple(ladders),
            parts=of_steps if any(group.parts for group in requests) else {},
            part_titles=parts.titles(seen),
            part_differences=tuple(_decided(part_differences, 1 - confidence)),
            cautions=(*_cautions(runs), *_clock_cautions(requests)),
            left_out={reason: count for reason, count in left_out.items() if count},
        )

    def section(self, result: Anatomy) -> Section:
        return words.section(result)


def _links(table: pa.Table, complete: Mapping[str, Record]) -> dict[str, dict[str, pa.Table]]:
    """Return run -> link -> its rows."""
    if not table.num_rows:
        return {}
    keys = table.select(["run", "link"]).combine_chunks()
    names = [f"{run}/{link}" for run, link in zip(keys["run"].to_pylist(), keys["link"].to_pylist(), strict=True)]
    unique, codes = np.unique(np.array(names), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(unique) + 1))
    ordered = table.take(order)
    links: dict[str, dict[str, pa.Table]] = {}
    for at, name in enumerate(unique.tolist()):
        run, _, link = name.partition("/")
        if run in complete:
            links.setdefault(run, {})[link] = ordered.slice(bounds[at], bounds[at + 1] - bounds[at])
    return links


def _rank(cell: Mapping[str, Level], factors: Mapping[str, Sequence[Level]]) -> tuple[int, ...]:
    """Return what sorts cells in the order of the study file."""
    return tuple(list(factors[name]).index(cell[name]) for name in factors if cell.get(name) in factors[name])


def _server_of(link: str) -> str:
    return link.replace(CLIENT, SERVER, 1)


def _seen(links: Mapping[str, Mapping[str, pa.Table]], complete: Mapping[str, Record]) -> Seen:
    """Return the finest view that every run allows: compared runs need the same steps."""
    for tables in links.values():
        if not all(_server_of(link) in tables for link in tables if link.startswith(CLIENT)):
            return Seen.CLIENT
    for run in links:
        if any(caution.kind is Kind.CAPTURED_AT_HOSTS for caution in complete[run].cautions):
            return Seen.APART
    return Seen.BOTH


def _hosts(source: Tables) -> dict[str, dict[str, Host]]:
    """Return run -> host -> the records of its kernel and programs, for runs with the instrument ``stations``."""
    return parts.hosts_of(*(source.table(name) for name in ("stations", "station_connections", "station_probes")))


def _run(
    record: Record,
    tables: Mapping[str, pa.Table],
    waiting: Mapping[str, pa.Table],
    hosts: Mapping[str, Host],
    seen: Seen,
    left_out: Counter[str],
) -> _Run | None:
    of_links, counts, met, splits = [], list[Counts](), list[waits.Counts](), list[Split]()
    for link, table in tables.items():
        if link.startswith(CLIENT):
            server = tables.get(_server_of(link))
            requests = steps.requests(table, server, seen)
            left_out["requests that lack a step, such as an answer or a packet in a capture"] += requests.incomplete
            left_out["requests with a step that ends before it begins"] += requests.disordered
            if len(requests):
                of_links.append(requests)
                counts.append(patterns.counted(table, requests))
                peer = _server_of(link)
                rows = {CLIENT: waiting.get(link), SERVER: None if seen is Seen.CLIENT else waiting.get(peer)}
                known_waits = {end: each_end for end, each_end in rows.items() if each_end is not None}
                met.append(waits.counted(table, server, requests, known_waits, seen))
                if PARTS[seen] and link in hosts and peer in hosts:
                    ends = {CLIENT: hosts[link], SERVER: hosts[peer]}
                    splits.append(parts.split(table, tables[peer], requests, ends, seen))
    count = sum(map(len, of_links))
    if not count:
        return None
    durations = {name: np.concatenate([of_link.durations[name] for of_link in of_links]) for name in of_links[0].durations}
    durations[TOTAL] = np.concatenate([of_link.total for of_link in of_links])
    means = {name: float(seconds.mean()) for name, seconds in durations.items()}
    between = [steps.between_s(of_link) for of_link in of_links]
    known = [(of_link, seconds) for of_link, seconds in zip(of_links, between, strict=True) if seconds is not None]
    if len(known) == len(of_links) and all(table.num_rows < SAMPLED_FROM for table in tables.values()):
        means[BETWEEN] = sum(len(of_link) * seconds for of_link, seconds in known) / count
    finer = _together(splits) if len(splits) == len(of_links) else {}
    means |= {name: float(seconds.mean()) for name, seconds in finer.items()}
    quantiles = {
        name: dict(zip(SHARES, np.quantile(seconds, SHARES).tolist(), strict=True))
        for name, seconds in (durations | finer).items()
    }
    bounds = {name: max(link_split.bounds[name] for link_split in splits) for name in (splits[0].bounds if splits else ())}
    for link_split in splits:
        left_out["requests without a record of a kernel or program: their steps on hosts have no parts"] += (
            link_split.incomplete
        )
        left_out["requests with stations in the wrong order"] += link_split.disordered
        left_out["hosts whose clock offset the packets do not bound"] += link_split.unbounded
    split = sum(int(np.isfinite(next(iter(link_split.whole.values()))).sum()) for link_split in splits)
    return _Run(record, count, means, quantiles, patterns.together(counts), waits.together(met), bounds, split)


def _together(splits: Sequence[Split]) -> dict[str, Seconds]:
    """Return part or group -> the times of the requests that have it, over all links."""
    times: dict[str, Seconds] = {}
    for kind in ("seconds", "whole"):
        for name in getattr(splits[0], kind) if splits else ():
            seconds = np.concatenate([getattr(link_split, kind)[name] for link_split in splits])
            if len(known := seconds[np.isfinite(seconds)]):
                times[name] = known
    return times


def _requests(
    cell: Mapping[str, Level], testbed: str, runs: Sequence[_Run], names: Sequence[str], finer: Sequence[str]
) -> Requests:
    return Requests(
        cell,
        testbed,
        len(runs),
        sum(run.requests for run in runs),
        tuple(_times(runs, names)),
        patterns.occurring([run.patterns for run in runs]),
        tuple(_times(runs, finer)),
        tuple(_times(runs, [str(group) for group in Group])),
        sum(run.split for run in runs),
        waits.timers([run.waits for run in runs]),
    )


def _times(runs: Sequence[_Run], names: Sequence[str]) -> Iterator[StepTimes]:
    for name in names:
        if not all(name in run.means for run in runs):
            continue
        of_runs = tuple(run.means[name] for run in runs)
        shares = {share: fmean(run.quantiles[name][share] for run in runs) for share in SHARES if name in runs[0].quantiles}
        yield StepTimes(name, fmean(of_runs), of_runs, shares, max(run.bounds.get(name, 0.0) for run in runs))


def _differences(
    where: tuple[Mapping[str, Level], str, str],
    pair: tuple[Sequence[_Run], Sequence[_Run]],
    names: Sequence[str],
    margin: float,
    confidence: float,
    paired: bool,
) -> Iterator[Difference]:
    own, reference = pair
    blocks = [[run.record.block for run in runs] for runs in pair]
    in_pairs = paired and blocks[0] == blocks[1] and len(set(blocks[0])) == len(blocks[0])
    alpha = round(1 - confidence, 12)
    for name in names:
        if not all(name in run.means for run in (*own, *reference)):
            continue
        x, y = ([run.means[name] for run in runs] for runs in pair)
        seconds, enough = fmean(x) - fmean(y), min(len(x), len(y)) >= 2
        interval = None
        if enough:
            error, df = standard_error(x, y, in_pairs)
            half = float(stdtrit(df, 1 - alpha / 2)) * error
            interval = Interval(seconds - half, seconds + half, confidence)
        test = ratio_test(x, y, margin, alpha, paired=in_pairs) if enough else None
        verdict = None
        if test is not None and any(x) | any(y):
            verdict = Verdict.EQUIVALENT if test.p_equivalent <= alpha else Verdict.INCONCLUSIVE
        yield Difference(
            *where,
            name,
            seconds,
            interval,
            ratio=test.ratio if test else None,
            ratio_interval=Interval(*test.interval) if test and test.interval else None,
            p_equivalent=test.p_equivalent if test else None,
            p_different=test.p_different if test else None,
            verdict=verdict,
            paired=in_pairs,
        )


def _decided(differences: Sequence[Difference], alpha: float) -> Iterator[Difference]:
    """Yield the differences with Holm's correction over all verdicts."""
    family = [
        difference.p_different
        for difference in differences
        if difference.verdict is not None and difference.p_different is not None
    ]
    adjusted = iter(holm(family))
    for difference in differences:
        if difference.verdict is None or difference.p_different is None:
            yield difference
            continue
        p = next(adjusted)
        yield replace(difference, p_different=p, verdict=Verdict.DIFFERENT if p <= alpha else difference.verdict)


_TOUCHED = {
    Kind.CAPTURE_DROPS: "requests with a missing packet lack a step and are left out, slow requests more often than fast ones",
    Kind.SOFTWARE_CPU: "every step of a client or server shows the emulator's speed",
    Kind.STATIONS_LOST: "requests that lack a station have no parts of that step",
    Kind.CPU_EXHAUSTED: "steps of clients and servers include waiting for a CPU",
}
"""The effect of runs' cautions on steps."""


def _cautions(runs: Sequence[_Run]) -> Iterator[Caution]:
    """Yield the runs' cautions that matter for steps, with the steps concerned."""
    counts: dict[tuple[str, Kind], int] = Counter()
    for run in runs:
        for kind in dict.fromkeys(caution.kind for caution in run.record.cautions if caution.kind in _TOUCHED):
            counts[str(run.record.settings["testbed"]["name"]), kind] += 1
    for (testbed, kind), count in counts.items():
        whole = sum(run.record.settings["testbed"]["name"] == testbed for run in runs)
        yield Caution(kind, f"{count} of {whole} runs: {_TOUCHED[kind]}", testbed)


WIDE = 0.1
"""Share of a part from which the bound of a clock is a caution."""


def _clock_cautions(requests: Sequence[Requests]) -> Iterator[Caution]:
    """Yield hosts' clocks that are known too badly for the parts that reach from them to the captures."""
    worst: dict[str, dict[str, float]] = {}
    for group in requests:
        for part in group.parts:
            if part.bound > WIDE * part.mean:
                of_testbed = worst.setdefault(group.testbed, {})
                of_testbed[part.step] = max(of_testbed.get(part.step, 0.0), part.bound)
    for testbed, bounds in worst.items():
        detail = f"± {1e6 * max(bounds.values()):.3g} µs in {', '.join(bounds)}; other parts and all steps are free of it"
        yield Caution(Kind.CLOCK_BOUND, detail, testbed)


analysis = AnatomyAnalysis()
