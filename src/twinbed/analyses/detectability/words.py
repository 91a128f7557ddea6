"""Write detectability as a section: sentences, tables of detections, features and costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from twinbed.analyses.detectability import draw
from twinbed.analyses.detectability.result import WHO, Accuracy, Cost, Detectability, Detection, Needed, Ranked, area_text
from twinbed.show.numbers import joined
from twinbed.show.quantities import NONE, quantity, ratio
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns, plain
from twinbed.show.words import at_cell, cell_title, metric_name, p_text

TITLES = {
    "gap_log_mean": "inter-arrival time",
    "gap_log_sd": "inter-arrival spread",
    "gap_p10_s": "short inter-arrival times",
    "gap_p50_s": "median inter-arrival time",
    "gap_p90_s": "long inter-arrival times",
    "burst_share": "bursts",
    "bytes_mean": "packet size",
    "bytes_sd": "spread of packet sizes",
    "full_share": "full-sized packets",
    "push_share": "push flags",
    "ack_share": "pure acknowledgements",
    "retransmitted_share": "retransmissions",
    "turn_p50_s": "median time to answer",
    "turn_p90_s": "long times to answer",
    "window_mean": "advertised window",
    "ip_id_zero_share": "IP identification of 0",
    "timestamp_rate_hz": "rate of timestamps",
    "timer_cost_s": "cost of a timer",
    "syn_window": "window of the SYN",
    "tcp_signature": "signature of the SYN",
    "tcp_options": "TCP options",
    "clock_skew_ppm": "clock skew",
    "syn_ack_delay_sd_s": "spread of times to answer a SYN",
    "arp_delay_mean_s": "time to answer ARP",
    "arp_delay_sd_s": "spread of times to answer ARP",
    "arp_reply_bytes": "length of ARP replies",
    "icmp_delay_mean_s": "time to answer ICMP",
    "icmp_delay_sd_s": "spread of times to answer ICMP",
    "http_time_mean_s": "time to answer HTTP",
    "http_time_sd_s": "spread of times to answer HTTP",
    "cpuid_cost_s": "cost of CPUID",
    "rdtsc_cost_s": "cost of RDTSC",
    "timestamp_hz": "clock of timestamps",
    "net_drivers": "NIC drivers",
    "cpu_model": "CPU model",
    "cpu_vendor": "CPU vendor",
    "cpu_flags": "CPU flags",
    "syn_ack_delay_mean_s": "time to answer a SYN",
    "mac_local": "locally administered MAC",
    "mss": "MSS",
    "ttl": "TTL",
    "df": "do-not-fragment flag",
    "ip_id": "IP identification",
    "mac_vendor": "MAC vendor",
    "icmp_ttl": "TTL of ICMP answers",
    "nmap_os": "system by nmap",
    "ja3": "JA3",
    "ja3s": "JA3S",
    "ja4": "JA4",
    "cpuid_hypervisor": "hypervisor by CPUID",
    "dmi_vendor": "DMI vendor",
    "pci_ids": "PCI devices",
    "http_header_order": "order of HTTP headers",
}
"""Feature -> a title clearer than its name."""
MOST = 3
"""Features that a sentence names."""
MOST_FEATURES = 8
"""Features of each detection in the table for readers."""
CAPTION = (
    "A linear rule classifies pairs of runs that it was not trained on. AUC: the chance that it orders a pair correctly; 0.5 "
    "is guessing. p: the chance of such an AUC between equal testbeds (permutation of labels, Holm's correction over a set of "
    "features). Residue: features that no setting removes. Packets: needed each way to be 95 % right."
)
OF_FEATURES = (
    "Each feature alone, at the longest observation, and the setting that removes it. AUC alone: at least 0.5, by the better "
    "order. p: the chance that any feature of the observer does as well between equal testbeds (permutation of labels)."
)
OF_COSTS = "Best: no other testbed of the cell is both as well hidden and as fast."


@dataclass(frozen=True, slots=True)
class _Set:
    """A detection by one set of features: all, or the residue, which no setting removes."""

    of: Detection
    features: str
    accuracy: Accuracy


@dataclass(frozen=True, slots=True)
class _Feature:
    of: Detection
    rank: int
    ranked: Ranked


def section(result: Detectability) -> Section:
    """Return the section of detectability."""
    first, *others = sentences(result)
    every = [
        _Feature(detection, rank, ranked) for detection in result.detections for rank, ranked in enumerate(detection.ranked, 1)
    ]
    shown = [feature for feature in every if feature.rank <= MOST_FEATURES]
    by_speed = sorted(result.costs, key=lambda cost: (cell_title(cost.cell), cost.observer, -cost.ratio))
    items = (
        tuple(others),
        _accuracies(result),
        *draw.over_length(result),
        _features(shown).for_readers(),
        _features(every).for_programs(),
        _lengths(result),
        _costs(result, by_speed).for_readers(),
        *draw.pareto(result),
        _costs(result, result.costs).for_programs(),
    )
    return Section("detectability", "Can an observer see the difference?", first, items, kicker="Three observers")


def _sets(result: Detectability) -> Iterator[_Set]:
    for detection in result.detections:
        yield _Set(detection, "all", detection.as_is)
        if detection.residue is not None:
            yield _Set(detection, "residue", detection.residue)


def _named() -> tuple[Column, ...]:
    """Return the columns that identify a row's detection."""
    return (
        Column("testbed", "Testbed", value="of.testbed"),
        Column("reference", value="of.reference"),
        Column("observer", "observer", value="of.observer"),
    )


def _accuracies(result: Detectability) -> Table:
    """Return a row a detection and set of features."""
    sets = list(_sets(result))
    columns = (
        *cell_columns(sets, attrgetter("of.cell")),
        *_named(),
        Column("features", "features"),
        Column("number_of_features", value="accuracy.features"),
        Column("runs", value=lambda of_set: of_set.of.runs[0]),
        Column("reference_runs", value=lambda of_set: of_set.of.runs[1]),
        Column(head="runs", format="s", value=lambda of_set: ", ".join(map(str, of_set.of.runs))),
        Column("auc", "AUC", value="accuracy.area", format=area_text),
        Column("low", value="accuracy.interval.low"),
        Column("high", value="accuracy.interval.high"),
        Column(head="interval", format="s", value=lambda of_set: _interval(of_set.accuracy)),
        Column("p_holm", "p", value="accuracy.p", format=p_text),
        Column("exact", value="accuracy.exact"),
        Column("packets", value="accuracy.needed.packets"),
        Column("packets_low", value="accuracy.needed.low"),
        Column("packets_high", value="accuracy.needed.high"),
        Column(head="packets", value="accuracy.needed", format=needed_text),
        Column("seconds", "time", value="accuracy.needed.seconds", format=lambda value: quantity(value, "s")),
    )
    return Table("detectability", f"Differences from {result.reference}", CAPTION, columns, sets)


def _features(features: Sequence[_Feature]) -> Table:
    """Return a row for each feature, the most revealing of each detection first."""
    columns = (
        *cell_columns(features, attrgetter("of.cell")),
        *_named(),
        Column("rank"),
        Column("feature", value="ranked.feature"),
        Column(head="feature", value=lambda feature: title(feature.ranked.feature)),
        Column(head="removed by", value=lambda feature: _removed_by(feature.ranked)),
        Column("auc_alone", "AUC alone", value="ranked.area", format=area_text),
        Column("p", "p", value="ranked.p", format=p_text),
        Column("removed_by", value=lambda feature: feature.ranked.remedy and str(feature.ranked.remedy)),
        Column("applied", value=lambda feature: feature.ranked.applied if feature.ranked.remedy else None),
    )
    return Table("features", "What gives testbeds away", OF_FEATURES, columns, features)


def _removed_by(ranked: Ranked) -> str:
    return NONE if ranked.remedy is None else f"{ranked.remedy}{' (applied)' if ranked.applied else ''}"


def _lengths(result: Detectability) -> Table:
    """Return a row a length of observation, for programs."""
    rows = [
        {
            **of_set.of.cell,
            "testbed": of_set.of.testbed,
            "reference": of_set.of.reference,
            "observer": of_set.of.observer,
            "features": of_set.features,
            "packets": length.packets,
            "seconds": length.seconds,
            "auc": length.area,
            "balanced_accuracy": length.accuracy,
        }
        for of_set in _sets(result)
        for length in of_set.accuracy.lengths
    ]
    return plain("lengths", rows)


def _costs(result: Detectability, costs: Sequence[Cost]) -> Table:
    """Return a row a testbed, cell and observer."""
    columns = (
        *cell_columns(costs),
        Column("testbed", "Testbed"),
        Column("observer", "observer"),
        Column(head=" ", value=lambda cost: "best" if cost.best else ""),
        Column("auc", "AUC", value="area", format=area_text),
        Column("low", value="interval.low"),
        Column("high", value="interval.high"),
        Column("metric", value=lambda _: result.metric),
        Column("ratio", f"{metric_name(result.metric)}, relative to {result.reference}", format=ratio),
        Column("best"),
    )
    return Table("costs", "What hiding costs", OF_COSTS, columns, costs)


def title(feature: str) -> str:
    """Return ``window scale (server)``, ``inter-arrival spread (server to client)``."""
    where, _, name = feature.rpartition(".")
    shown = TITLES.get(name, metric_name(name))
    return f"{shown} ({metric_name(where)})" if where else shown


def packets_text(packets: float) -> str:
    """Return ``40 packets``, with two digits, since lengths are tried in steps."""
    digits = math.floor(math.log10(packets)) - 1
    rounded = max(1, round(round(packets, -digits) if digits > 0 else math.ceil(packets - 1e-9)))
    return f"{rounded:,} packet{'s' if rounded > 1 else ''}"


def sentence(of: Detection, alpha: float) -> str:
    """Return one detection in a sentence: ``A remote observer tells e1000 from physical with 40 packets (AUC 0.99): window
    scale; with buffers alike with 3,000 packets (AUC 0.71): inter-arrival spread.``"""
    where = at_cell(of.cell)
    if of.as_is.p > alpha:
        return f"{WHO[of.observer]} is not shown to tell {of.testbed} from {of.reference}{where} ({_area(of.as_is)})."
    text = f"{WHO[of.observer]} tells {of.testbed} from {of.reference}{where}{_from(of.as_is)}{_by(of.ranked, alpha)}"
    remedies = list(dict.fromkeys(_set(feature) for feature in of.ranked if feature.removable and feature.p <= alpha))
    if of.residue is not None and remedies:
        named = joined(remedies)
        text += f"; with {named}"
        if of.residue.p <= alpha:
            text += f"{_from(of.residue)}{_by([feature for feature in of.ranked if not feature.removable], alpha)}"
        else:
            text += f" no longer shown ({_area(of.residue)})"
    return f"{text}."


def sentences(result: Detectability) -> Iterator[str]:
    """Return the detections that show a difference, then the others."""
    return (
        sentence(detection, result.alpha)
        for detection in sorted(result.detections, key=lambda shown: shown.as_is.p > result.alpha)
    )


def _set(feature: Ranked) -> str:
    assert feature.remedy is not None
    return f"{feature.remedy.setting} {feature.remedy.value or 'the same'}"


def _area(own: Accuracy) -> str:
    return f"AUC {area_text(own.area)} {_interval(own)}, p {p_text(own.p)}"


def _interval(own: Accuracy) -> str:
    return f"[{own.interval.low:.2f}, {own.interval.high:.2f}]"


def _from(own: Accuracy) -> str:
    last = own.lengths[-1].packets
    if own.needed is not None:
        return f" with {packets_text(own.needed.packets)} (AUC {area_text(own.area)})"
    if last is None:
        return f" (AUC {area_text(own.area)})"
    return f", but is less than 95 % right with {last:,} packets (AUC {area_text(own.area)})"


def _by(ranked: Sequence[Ranked], alpha: float) -> str:
    """Return the most revealing features; all with the same AUC as the first."""
    shown = [feature for feature in ranked if feature.p <= alpha]
    first = [feature for feature in shown if feature.area == shown[0].area]
    if not first:
        return ": by several features together, no single one"
    more = f" and {len(first) - MOST} more" if len(first) > MOST else ""
    named = [title(feature.feature) for feature in first[:MOST]]
    return f": {', '.join(named) + more if more else joined(named)}"


def needed_text(needed: Needed) -> str:
    """Return ``40 [12, 190]``; an end beyond the longest observation is open."""
    low, high = (None if end is None else packets_text(end).split()[0] for end in (needed.low, needed.high))
    return f"{packets_text(needed.packets).split()[0]} [{low or '?'}, {high or 'more'}]"
