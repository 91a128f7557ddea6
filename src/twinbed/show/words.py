"""Names of metrics and cells, layers, p-values and cautions in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.model.caution import Caution
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level, level_text
from twinbed.show.quantities import NONE

if TYPE_CHECKING:
    from twinbed.model.interim import InterimAnalysis

LAYERS = {
    "application": "Application: what the user of the service sees",
    "os": "Operating system: what the hosts' kernels did for it",
    "network": "Network: what was on the wire",
    "host": "Hosts and machine: what it cost",
}

SYMBOLS: Mapping[str, str] = {Verdict.EQUIVALENT: "=", Verdict.DIFFERENT: "≠", Verdict.INCONCLUSIVE: "?"}
"""Verdict -> its sign."""
_LABELS = {
    "idle_state_entries": "stops of idle CPUs",
    "idle_state_seconds": "time of idle CPUs stopped",
    "idle_wake_up_latency": "wake-up latency of idle CPUs",
    "idle_wake_up_seconds": "wake-up time of idle CPUs",
    "idle_wake_ups": "wake-ups of idle CPUs",
    "ipdv": "delay variation between probes",
    "kfree_skb_events": "packets dropped by the kernel",
    "kvm_exit_events": "guest exits",
    "kvm_exit_seconds": "time of guest exits",
    "kvm_mmio_events": "guest accesses to device memory",
    "kvm_mmio_seconds": "time of guest accesses to device memory",
    "kvm_port_events": "guest accesses to device ports",
    "kvm_port_seconds": "time of guest accesses to device ports",
    "max_in_flight": "most bytes in flight",
    "mean_in_flight": "mean bytes in flight",
    "napi_poll_events": "polls of network devices",
    "net_dev_queue_events": "packets queued at devices",
    "net_dev_xmit_events": "packets handed to drivers",
    "net_rx_softirqs": "receive softirqs",
    "net_tx_softirqs": "send softirqs",
    "netif_receive_skb_events": "packets received by network stacks",
    "netif_rx_events": "packets received through backlogs",
    "nic_rx_bytes": "bytes received by NICs",
    "nic_rx_dropped": "received packets dropped by NICs",
    "nic_rx_errors": "receive errors of NICs",
    "nic_rx_packets": "packets received by NICs",
    "nic_tx_bytes": "bytes sent by NICs",
    "nic_tx_dropped": "sent packets dropped by NICs",
    "nic_tx_errors": "send errors of NICs",
    "nic_tx_packets": "packets sent by NICs",
    "non_2xx": "answers other than 2xx",
    "pressure_cpu_seconds": "time of tasks waiting for CPUs",
    "pressure_io_seconds": "time of tasks waiting for disks",
    "pressure_memory_seconds": "time of tasks waiting for memory",
    "run_queue_delay_seconds": "run queue delay",
    "rwnd_limited_share": "share of time limited by receive window",
    "sndbuf_limited_share": "share of time limited by send buffer",
    "super_packets": "packets above the MTU",
    "time_taken": "measured time",
    "udp_reordered": "reordered UDP datagrams",
    "wire_packets": "packets on the wire",
}
"""Metrics whose names read badly word by word."""
_WORDS = {
    **{word: word.upper() for word in ("arp", "cpu", "http", "icmp", "kvm", "nic", "tcp", "udp")},
    "acks": "ACKs",
    "cwnd": "congestion window",
    "rtt": "round-trip time",
    "rwnd": "receive window",
    "rx": "received",
    "seconds": "time",
    "sndbuf": "send buffer",
    "srtt": "smoothed round-trip time",
    "tx": "sent",
}
_STATISTICS = {"max": "largest", "mean": "mean", "median": "median", "min": "least", "sd": "standard deviation of"}
_PERCENTILE = re.compile(r"(.+)_p(\d+(?:_\d+)?)")


def metric_name(metric: str) -> str:
    """Return a metric's plain label: ``requests per second``, ``CPU time per request``, ``95th percentile of total time``."""
    base, per, work = metric.partition("_per_")
    if label := _LABELS.get(base):
        return f"{label}{f' per {_spaced(work)}' if per else ''}"
    if match := _PERCENTILE.fullmatch(metric):
        return f"{match[2].replace('_', '.')}th percentile of {_spaced(match[1])}"
    rest, _, last = metric.rpartition("_")
    return f"{_STATISTICS[last]} {_spaced(rest)}" if rest and last in _STATISTICS else _spaced(metric)


def _spaced(metric: str) -> str:
    return (
        " ".join(_WORDS.get(word, word) for word in metric.split("_"))
        .replace("one way", "one-way")
        .replace("wake up", "wake-up")
    )


def place(host: str, direction: str) -> str:
    """Return ``on server``, ``on the machine``, ``client to server``, or nothing."""
    parts = ["on the machine" if host == "machine" else f"on {host}"] if host else []
    return ", ".join([*parts, direction.replace("_", " ")] if direction else parts)


def metric_title(metric: str, host: str = "", direction: str = "") -> str:
    where = place(host, direction)
    return f"{metric_name(metric)} ({where})" if where else metric_name(metric)


def heading(text: str) -> str:
    """Return the text with a capital at its beginning; other letters stay as they are."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def cell_title(cell: Mapping[str, Level]) -> str:
    """``payload 500B, offload on``; ``all runs`` for the one cell of a study without factors."""
    return ", ".join(f"{factor} {level_text(level)}" for factor, level in cell.items()) or "all runs"


def at_cell(cell: Mapping[str, Level]) -> str:
    """Return `` at payload 500B, offload on``; nothing for the one cell of a study without factors."""
    return f" at {cell_title(cell)}" if cell else ""


def _bounds(interval: Interval | None, say: Callable[[float], str]) -> str:
    return f" [{say(interval.low)}, {say(interval.high)}]" if interval else ""


def times(value: float) -> str:
    """Return a ratio of spreads with two digits; nobody knows more of it."""
    return f"{value:#.2g}".removesuffix(".") if value < 99.5 else f"{value:,.0f}"


def p_text(value: float | None) -> str:
    """``< 0.001``, ``0.012``; a dash where there is none."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def other_settings(count: int) -> str:
    """``14 runs here are of other settings: left out``."""
    return f"{count} run{'s' if count > 1 else ''} here {'are' if count > 1 else 'is'} of other settings: left out"


def left_out(counts: Mapping[str, int]) -> Iterator[str]:
    """Reason -> number, of runs or rows that are not in what is shown, one sentence each."""
    return (f"Left out: {count} {reason}." for reason, count in counts.items())


def caution_sentences(cautions: Sequence[Caution]) -> Iterator[str]:
    """Yield what the runs carried, one sentence each: of what, what it means, what to do."""
    for caution in cautions:
        where = ", ".join(part for part in (caution.subject, caution.detail) if part)
        yield f"{heading(caution.kind.meaning)}" + (f" ({where})" if where else "") + f". To do: {caution.kind.advice}."


_ENDS = {
    "": "the study continues",
    "decided": "every headline verdict is reached",
    "most": "no replicates are left",
    "budget": "the budget is spent",
}


def interim_sentence(interim: InterimAnalysis) -> str:
    """Return such as ``Interim analysis 3 of 6, after 15 blocks: 7 of 8 headline verdicts; alpha spent 0.031 of 0.05; ...``."""
    return (
        f"Interim analysis {interim.number} of {interim.planned}, after {interim.blocks} blocks: "
        f"{interim.decided} of {interim.decided + interim.open} headline verdicts; "
        f"alpha spent {interim.spent:.2g} of {interim.alpha:g}; {_ENDS[interim.ended]}."
    )
