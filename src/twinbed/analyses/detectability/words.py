"""What was told, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from twinbed.analyses.detectability.result import Detectability, Detection, Needed, Ranked, Told
from twinbed.show.numbers import joined
from twinbed.show.words import cell_title, metric_name, p_text

WHO = {"passive": "A remote observer", "active": "An active remote observer", "host": "An observer on the host"}
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
"""Of features whose names say less than they could."""
MOST = 3
"""Features that a sentence names."""


def title(feature: str) -> str:
    """``window scale (server)``, ``inter-arrival spread (server to client)``."""
    where, _, name = feature.rpartition(".")
    shown = TITLES.get(name, metric_name(name))
    return f"{shown} ({metric_name(where)})" if where else shown


def area_text(area: float) -> str:
    """``0.99``; 1 only where it is."""
    return f"{area:.2f}" if area in (0, 1) else f"{min(max(area, 0.01), 0.99):.2f}"


def packets_text(packets: float) -> str:
    """To two digits, since lengths are tried in steps: ``40 packets``."""
    digits = math.floor(math.log10(packets)) - 1
    rounded = max(1, round(round(packets, -digits) if digits > 0 else math.ceil(packets - 1e-9)))
    return f"{rounded:,} packet{'s' if rounded > 1 else ''}"


def sentence(of: Detection, alpha: float) -> str:
    """One detection. ``A remote observer tells e1000 from physical with 40 packets (AUC 0.99): window scale; with buffers alike
    with 3,000 packets (AUC 0.71): inter-arrival spread.``"""
    where = f" at {cell_title(of.cell)}" if of.cell else ""
    if of.as_is.p > alpha:
        return f"{WHO[of.observer]} was not shown to tell {of.testbed} from {of.reference}{where} ({_area(of.as_is)})."
    text = f"{WHO[of.observer]} tells {of.testbed} from {of.reference}{where}{_from(of.as_is)}{_by(of.ranked, alpha)}"
    remedies = list(dict.fromkeys(_set(each) for each in of.ranked if each.removable and each.p <= alpha))
    if of.residue is not None and remedies:
        named = joined(remedies)
        text += f"; with {named}"
        if of.residue.p <= alpha:
            text += f"{_from(of.residue)}{_by([each for each in of.ranked if not each.removable], alpha)}"
        else:
            text += f" it was not shown to any more ({_area(of.residue)})"
    return f"{text}."


def sentences(result: Detectability) -> Iterator[str]:
    """What is told first, then what is not."""
    return (sentence(each, result.alpha) for each in sorted(result.detections, key=lambda each: each.as_is.p > result.alpha))


def _set(each: Ranked) -> str:
    assert each.remedy is not None
    return f"{each.remedy.setting} {each.remedy.value or 'the same'}"


def _area(told: Told) -> str:
    return f"AUC {area_text(told.area)} [{told.interval.low:.2f}, {told.interval.high:.2f}], p {p_text(told.p)}"


def _from(told: Told) -> str:
    last = told.lengths[-1].packets
    if told.needed is not None:
        return f" with {packets_text(told.needed.packets)} (AUC {area_text(told.area)})"
    if last is None:
        return f" (AUC {area_text(told.area)})"
    return f", though not 95 % right with {last:,} packets (AUC {area_text(told.area)})"


def _by(ranked: Sequence[Ranked], alpha: float) -> str:
    """The features that tell most alone; all that tell as much as the first are the first."""
    told = [each for each in ranked if each.p <= alpha]
    first = [each for each in told if each.area == told[0].area]
    if not first:
        return ": by several features together, none of them alone"
    more = f" and {len(first) - MOST} more" if len(first) > MOST else ""
    named = [title(each.feature) for each in first[:MOST]]
    return f": {', '.join(named) + more if more else joined(named)}"


def needed_text(needed: Needed | None) -> str | None:
    """``40 [12, 190]``; an end beyond the longest observation is open."""
    if needed is None:
        return None
    low, high = (None if end is None else packets_text(end).split()[0] for end in (needed.low, needed.high))
    return f"{packets_text(needed.packets).split()[0]} [{low or '?'}, {high or 'more'}]"
