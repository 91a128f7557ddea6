"""The metrics of the instrument ``counters``, and the kernel's keys that each is the sum of."""

from __future__ import annotations

from dataclasses import dataclass

from twinbed.metrics.metric import Layer, Metric

TICK_S = 0.01
"""USER_HZ is 100 on every Linux that twinbed runs on."""
MICROSECOND_S = 1e-6
NANOSECOND_S = 1e-9


@dataclass(frozen=True, slots=True)
class CounterMetric:
    """A metric that is the sum of the differences of all keys that ``pattern`` matches in full, times ``factor``."""

    metric: Metric
    pattern: str
    factor: float = 1.0
    source: str = "/proc/stat"


def _count(
    name: str,
    layer: Layer,
    description: str,
    pattern: str,
    *,
    source: str = "/proc/stat",
    unit: str = "1",
    factor: float = 1.0,
    headline: bool = False,
) -> CounterMetric:
    metric = Metric(name, unit, layer, description, extensive=True, headline=headline)
    return CounterMetric(metric, pattern, factor, source)


def _cpu(name: str, description: str, states: str, *, headline: bool = False) -> CounterMetric:
    pattern = rf"cpu\.({states})_ticks"
    return _count(name, Layer.HOST, description, pattern, unit="s", factor=TICK_S, headline=headline)


def _interrupts(name: str, description: str, labels: str) -> CounterMetric:
    return _count(name, Layer.HOST, description, rf"intr\.({labels})(\(.*\))?(\.cpu\d+)?", source="/proc/interrupts")


def _softirqs(name: str, description: str, kind: str) -> CounterMetric:
    return _count(name, Layer.HOST, description, rf"softirqs:{kind}\.cpu\d+", source="/proc/softirqs")


def _block(name: str, description: str, key: str) -> CounterMetric:
    """Declare a count of the kernel's in KiB."""
    return _count(name, Layer.OS, description, f"vmstat:{key}", source="/proc/vmstat", unit="bytes", factor=1024)


def _pressure(resource: str) -> CounterMetric:
    description = f"time in which some task waited for {resource}"
    pattern = rf"pressure:{resource}\.some\.total_us"
    name, source = f"pressure_{resource}_seconds", f"/proc/pressure/{resource}"
    return _count(name, Layer.HOST, description, pattern, source=source, unit="s", factor=MICROSECOND_S)


def _tcp(name: str, description: str, key: str, source: str = "snmp") -> CounterMetric:
    group = "Tcp" if source == "snmp" else "TcpExt"
    return _count(name, Layer.NETWORK, description, rf"{source}:{group}\.{key}", source=f"/proc/net/{source}")


def _kvm(name: str, description: str, file: str) -> CounterMetric:
    return _count(name, Layer.HOST, description, f"kvm:{file}", source=f"/sys/kernel/debug/kvm/{file}")


_STOPPED = r"cpuidle:cpu\d+\.state\d+\((?!POLL\)).*\)"
"""In POLL a CPU keeps running while it waits."""

WAKE_UPS = _count(
    "idle_wake_ups",
    Layer.HOST,
    "times that a task was woken and ran on an idle CPU",
    r"wake_ups:cpu\d+\.count",
    source="wake-ups",
)
WAKE_UP_TIME = _count(
    "idle_wake_up_seconds",
    Layer.HOST,
    "time from waking a task until it ran on an idle CPU, the sum over these wake-ups",
    r"wake_ups:cpu\d+\.latency_ns",
    source="wake-ups",
    unit="s",
    factor=NANOSECOND_S,
)

KERNEL = (
    _cpu("cpu_seconds", "CPU time spent on anything", "user|nice|system|irq|softirq", headline=True),
    _cpu("cpu_user_seconds", "CPU time in user mode, guests' included", "user|nice"),
    _cpu("cpu_system_seconds", "CPU time in the kernel, interrupts excluded", "system"),
    _cpu("cpu_interrupt_seconds", "CPU time in interrupt handlers", "irq"),
    _cpu("cpu_softirq_seconds", "CPU time in softirqs", "softirq"),
    _cpu("cpu_steal_seconds", "CPU time that the hypervisor gave to others", "steal"),
    _cpu("cpu_idle_seconds", "CPU time idle, waiting for disks included", "idle|iowait"),
    _count("interrupts", Layer.HOST, "interrupts of every kind", "intr", headline=True),
    _interrupts("device_interrupts", "interrupts with a number: devices'", r"\d+"),
    _interrupts("timer_interrupts", "local timer interrupts", "LOC"),
    _interrupts("rescheduling_interrupts", "interrupts from CPU to CPU: rescheduling and function calls", "RES|CAL"),
    _count("softirqs", Layer.HOST, "softirqs of every kind", "softirq"),
    _softirqs("net_rx_softirqs", "softirqs that received packets", "NET_RX"),
    _softirqs("net_tx_softirqs", "softirqs that completed sending", "NET_TX"),
    _count("context_switches", Layer.OS, "context switches", "ctxt", headline=True),
    _count("processes_started", Layer.OS, "processes and threads started", "processes"),
    _count("page_faults", Layer.OS, "page faults", "vmstat:pgfault", source="/proc/vmstat"),
    _count("major_page_faults", Layer.OS, "page faults that read from a disk", "vmstat:pgmajfault", source="/proc/vmstat"),
    _block("block_read_bytes", "bytes read from block devices", "pgpgin"),
    _block("block_written_bytes", "bytes written to block devices", "pgpgout"),
    _count(
        "backlog_drops",
        Layer.NETWORK,
        "packets dropped because a CPU's backlog was full",
        r"softnet:cpu\d+\.dropped",
        source="/proc/net/softnet_stat",
    ),
    _count(
        "backlog_squeezes",
        Layer.NETWORK,
        "times that packets had to wait because the budget for receiving was used up",
        r"softnet:cpu\d+\.time_squeeze",
        source="/proc/net/softnet_stat",
    ),
    _count(
        "run_queue_delay_seconds",
        Layer.HOST,
        "time that tasks which could run waited for a CPU, the sum over tasks",
        r"schedstat:cpu\d+\.run_delay_ns",
        source="/proc/schedstat",
        unit="s",
        factor=NANOSECOND_S,
    ),
    WAKE_UPS,
    WAKE_UP_TIME,
    _count(
        "idle_state_entries",
        Layer.HOST,
        "times that CPUs stopped: entries into idle states other than POLL",
        rf"{_STOPPED}\.usage",
        source="idle-states",
    ),
    _count(
        "idle_state_seconds",
        Layer.HOST,
        "time for which CPUs were stopped: in idle states other than POLL, the sum over CPUs",
        rf"{_STOPPED}\.time_us",
        source="idle-states",
        unit="s",
        factor=MICROSECOND_S,
    ),
    _kvm("kvm_exits", "times that guests left hardware virtualisation for the kernel", "exits"),
    _kvm(
        "kvm_halt_exits",
        "times that virtual CPUs left hardware virtualisation as they had nothing to run (HLT)",
        "halt_exits",
    ),
    _kvm("kvm_halt_wakeups", "times that a virtual CPU that had nothing to run was woken", "halt_wakeup"),
    _pressure("cpu"),
    _pressure("io"),
    _pressure("memory"),
)
"""Metrics of a kernel: read on the machine and on hosts with a kernel of their own."""

NETWORK = (
    _tcp("tcp_segments_in", "TCP segments received", "InSegs"),
    _tcp("tcp_segments_out", "TCP segments sent, without retransmissions", "OutSegs"),
    _tcp("tcp_retransmitted_segments", "TCP segments sent again", "RetransSegs"),
    _tcp("tcp_timeouts", "TCP retransmission timeouts", "TCPTimeouts", "netstat"),
    _tcp("tcp_listen_drops", "connections that a listening socket dropped", "ListenDrops", "netstat"),
)
"""Metrics of a network namespace."""

NIC_COUNTS = {
    "packets": "packets",
    "bytes": "bytes, link headers included",
    "errors": "erroneous packets",
    "dropped": "packets dropped",
}
NIC_METRICS = {
    f"nic_{way}_{what}": Metric(
        f"nic_{way}_{what}",
        "bytes" if what == "bytes" else "1",
        Layer.NETWORK,
        f"{meaning}, {'received' if way == 'rx' else 'sent'} by the NICs",
        extensive=True,
    )
    for way in ("rx", "tx")
    for what, meaning in NIC_COUNTS.items()
}

CPU_BUSY = Metric("cpu_busy_share", "1", Layer.HOST, "share of CPU time not idle, of all CPUs")
CPU_IDLE = Metric("cpu_idle_share", "1", Layer.HOST, "share of CPU time idle, waiting for disks included, of all CPUs")
CPU_STEAL = Metric("cpu_steal_share", "1", Layer.HOST, "share of CPU time that the hypervisor gave to others, of all CPUs")
RATES = {
    "interrupts": Metric("interrupt_rate", "1/s", Layer.HOST, "interrupts of every kind per second"),
    "softirqs": Metric("softirq_rate", "1/s", Layer.HOST, "softirqs of every kind per second"),
    "context_switches": Metric("context_switch_rate", "1/s", Layer.OS, "context switches per second"),
}
"""Counts a second: the machine's load, whatever the work done."""
WAKE_UP_LATENCY = Metric(
    "idle_wake_up_latency", "s", Layer.HOST, "time from waking a task until it ran on an idle CPU, mean over these wake-ups"
)
MEMORY_AVAILABLE = Metric("memory_available_bytes", "bytes", Layer.HOST, "memory available without swapping, mean of snapshots")

LOST = Metric("lost_packets", "1", Layer.NETWORK, "UDP packets that were sent and not read by the receiving program")
UNEXPLAINED = Metric(
    "unexplained_loss", "1", Layer.NETWORK, "share of the lost packets that no counter on the path accounts for"
)

METRICS = (
    *(counter.metric for counter in KERNEL),
    CPU_BUSY,
    CPU_IDLE,
    CPU_STEAL,
    *RATES.values(),
    WAKE_UP_LATENCY,
    MEMORY_AVAILABLE,
    *(counter.metric for counter in NETWORK),
    *NIC_METRICS.values(),
    LOST,
    UNEXPLAINED,
)
