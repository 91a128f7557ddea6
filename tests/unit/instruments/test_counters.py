"""The instrument ``counters``: its plan, and what it makes of snapshots.  These are written here in the formats of the kernel
(Documentation/filesystems/proc.rst) with round numbers, so that expected values are arithmetic on two numbers side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from twinbed.contracts.command import Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.place import MACHINE, Target
from twinbed.instruments.counters import CountersParams, counters
from twinbed.metrics.metric import Layer
from twinbed.model.caution import Kind

GOLDEN = Path(__file__).parents[2] / "golden" / "counters"
SOFTNET = "/proc/net/softnet_stat"
NOTHING: dict[str, str | None] = {SOFTNET: None}
IDLE_SETTINGS = "driver haltpoll\ngovernor haltpoll\nguest_halt_poll_ns 200000\n"


def cpu(user: int = 0, system: int = 0, idle: int = 0, softirq: int = 0, steal: int = 0) -> list[int]:
    """A CPU's ticks in the order of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice."""
    return [user, 0, system, idle, 0, 0, softirq, steal, 0, 0]


def stat(first: list[int], second: list[int], interrupts: int = 0, switches: int = 0, softirqs: int = 0) -> str:
    """/proc/stat of two CPUs; the first line is the kernel's own sum of theirs."""
    both = [one + other for one, other in zip(first, second, strict=True)]
    rows = [f"{name} {' '.join(map(str, ticks))}\n" for name, ticks in (("cpu ", both), ("cpu0", first), ("cpu1", second))]
    others = f"ctxt {switches}\nbtime 1700000000\nprocesses 500\nsoftirq {softirqs} 0 0\n"
    return f"{''.join(rows)}intr {interrupts} 0 0 {interrupts}\n{others}"


def interrupts(device: int, timer: int) -> str:
    return (
        "           CPU0       CPU1\n"
        f" 24:  {device}  {2 * device}  PCI-MSI 1-edge  eth0-rx\n"
        f"LOC:  {timer}  {timer}  Local timer interrupts\n"
        "ERR:  0\n"
    )


def softirqs(received: int) -> str:
    return f"          CPU0   CPU1\n  NET_TX:  1  1\n  NET_RX:  {received}  {received + 5}\n"


def schedstat(first_ns: int, second_ns: int, version: int = 15) -> str:
    """Two CPUs: the eighth number is how long tasks waited, the others are not asked for."""
    cpus = "".join(f"cpu{cpu} 0 0 9 9 9 9 777 {ns} 5\ndomain0 3 1 1 1\n" for cpu, ns in enumerate((first_ns, second_ns)))
    return f"version {version}\ntimestamp 4294893229\n{cpus}"


def net_dev(**devices: tuple[int, int]) -> str:
    heading = "Inter-|   Receive |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes ...\n"
    rows = [f"{name}: {rx * 100} {rx} 0 0 0 0 0 0 {tx * 100} {tx} 0 0 0 0 0 0\n" for name, (rx, tx) in devices.items()]
    return heading + "".join(rows)


def snmp(retransmitted: int) -> str:
    return f"Tcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 1000 2000 {retransmitted}\n"


def snapshot(index: int, at: float, sources: dict[str, str | None]) -> bytes:
    parts = [f"@ {index} {at:.9f} {1.7e9 + at:.9f}\n".encode()]
    for name, content in sources.items():
        if content is None:
            parts.append(f"# {name} -\n".encode())
        else:
            parts.append(f"# {name} {len(content.encode())}\n".encode() + content.encode() + b"\n")
    return b"".join(parts)


def write(folder: Path, place: str, *snapshots: dict[str, str | None], times: tuple[float, ...] | None = None) -> None:
    (folder / place).mkdir()
    times = times or tuple(float(i) for i in range(len(snapshots)))
    content = [snapshot(i, 100 + at, sources) for i, (at, sources) in enumerate(zip(times, snapshots, strict=True))]
    (folder / place / "counters.snap").write_bytes(b"".join(content))


def extract(folder: Path) -> Extracted:
    return counters.extract(CountersParams(), folder)


def numbers(found: Extracted, host: str) -> dict[str, float | None]:
    return {value.metric: value.value for value in found.values if value.host == host}


def argv(target: Target, **settings: object) -> tuple[str, ...]:
    (command,) = counters.plan(CountersParams(**settings), target)
    assert (command.host, command.ready, command.stop) == (target.name, Ready(says=b"ready"), 15)
    return tuple(command.argv)


def test_the_machine_and_guests_show_their_kernel():
    base = ("twinbed-probe", "counters", "--out", "{artifacts}/counters.snap", "--interval", "1")
    base += ("--net", "--kernel", "--softnet", "--kmsg")
    machine = Target(MACHINE, {"lab-s": "server", "lab-c": "client"})
    assert argv(machine) == (*base, "--wake-ups", "--ethtool", "lab-c", "--ethtool", "lab-s")
    assert argv(Target("client", {"eth0": "client"}, own_kernel=True)) == (*base, "--wake-ups", "--ethtool", "eth0")
    assert argv(Target("client", {"eth0": "client"}, own_kernel=True), wake_ups=False) == (*base, "--ethtool", "eth0")


def test_a_container_shows_its_network_only_since_the_rest_is_the_machines():
    assert argv(Target("client", {"eth0": "client"})) == (
        *("twinbed-probe", "counters", "--out", "{artifacts}/counters.snap", "--interval", "1", "--net"),
        *("--ethtool", "eth0"),
    )


def test_the_interval_is_in_seconds():
    found = argv(Target("client", {}), interval="250ms")
    assert found[found.index("--interval") + 1] == "0.25"


@pytest.mark.parametrize("settings", [{"interval": 0}, {"interval": "1 fortnight"}, {"period": "1s"}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ValidationError):
        CountersParams(**settings)


def test_values_are_differences_never_since_boot(tmp_path):
    before = {
        "/proc/stat": stat(cpu(700, 200, 9000, 100), cpu(5000, 0, 9000), interrupts=70000, switches=400, softirqs=60),
        "/proc/interrupts": interrupts(1000, 5000),
        "/proc/softirqs": softirqs(100),
        "/proc/schedstat": schedstat(10**18, 5),
        "/sys/kernel/debug/kvm/exits": "800\n",
        "/sys/kernel/debug/kvm/halt_exits": "300\n",
        "/sys/kernel/debug/kvm/halt_wakeup": "200\n",
        "wake-ups": "cpu0 100 1000000\ncpu1 7 9000\nmissed 0\n",
        "idle-states": IDLE_SETTINGS + "cpu0 state0 5 50 POLL\ncpu0 state1 100 7000 haltpoll idle\n",
        "/proc/vmstat": "pgpgin 100\npgpgout 40\npgfault 7000\npgmajfault 5\n",
        "/proc/meminfo": "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n",
        SOFTNET: "00000010 00000001 00000002 0 0 0 0 0 0 0 0 0 00000000\n",
        "/proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
        "/proc/net/dev": net_dev(lo=(10, 10), eth0=(100, 200)),
        "/proc/net/snmp": snmp(7),
    }
    after = {
        "/proc/stat": stat(cpu(750, 230, 9040, 120), cpu(5060, 0, 9000), interrupts=70500, switches=900, softirqs=300),
        "/proc/interrupts": interrupts(1010, 5100),
        "/proc/softirqs": softirqs(130),
        "/proc/schedstat": schedstat(10**18 + 250_000_000, 1_000_000_005),
        "/sys/kernel/debug/kvm/exits": "845\n",
        "/sys/kernel/debug/kvm/halt_exits": "330\n",
        "/sys/kernel/debug/kvm/halt_wakeup": "220\n",
        "wake-ups": "cpu0 140 2500000\ncpu1 17 509000\nmissed 0\n",
        "idle-states": IDLE_SETTINGS + "cpu0 state0 9 90 POLL\ncpu0 state1 160 1007000 haltpoll idle\n",
        "/proc/vmstat": "pgpgin 108\npgpgout 40\npgfault 7090\npgmajfault 5\n",
        "/proc/meminfo": "MemTotal: 2000 kB\nMemAvailable: 500 kB\n",
        SOFTNET: "00000020 00000004 00000002 0 0 0 0 0 0 0 0 0 00000000\n",
        "/proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1250000\n",
        "/proc/net/dev": net_dev(lo=(99, 99), eth0=(150, 290)),
        "/proc/net/snmp": snmp(9),
    }
    write(tmp_path, MACHINE, before, after, times=(0.0, 4.0))
    found = numbers(extract(tmp_path), MACHINE)
    expected = {
        "cpu_seconds": (50 + 30 + 20 + 60) / 100,
        "cpu_user_seconds": (50 + 60) / 100,
        "cpu_system_seconds": 30 / 100,
        "cpu_softirq_seconds": 20 / 100,
        "cpu_idle_seconds": 40 / 100,
        "cpu_steal_seconds": 0.0,
        "cpu_busy_share": 160 / 200,
        "cpu_idle_share": 40 / 200,
        "cpu_steal_share": 0.0,
        "run_queue_delay_seconds": 1.25,
        "kvm_exits": 45,
        "kvm_halt_exits": 30,
        "kvm_halt_wakeups": 20,
        "idle_wake_ups": 40 + 10,
        "idle_wake_up_seconds": 0.0015 + 0.0005,
        "idle_wake_up_latency": 0.002 / 50,
        "idle_state_entries": 60,
        "idle_state_seconds": 1.0,
        "softirqs": 240,
        "softirq_rate": 240 / 4,
        "interrupt_rate": 500 / 4,
        "context_switch_rate": 500 / 4,
        "interrupts": 500,
        "device_interrupts": 10 + 20,
        "timer_interrupts": 200,
        "net_rx_softirqs": 60,
        "net_tx_softirqs": 0,
        "context_switches": 500,
        "processes_started": 0,
        "page_faults": 90,
        "major_page_faults": 0,
        "block_read_bytes": 8 * 1024,
        "block_written_bytes": 0,
        "backlog_drops": 3,
        "backlog_squeezes": 0,
        "pressure_cpu_seconds": 0.25,
        "memory_available_bytes": 750 * 1024,
        "nic_rx_packets": 50,
        "nic_tx_packets": 90,
        "nic_rx_bytes": 5000,
        "nic_rx_dropped": 0,
        "tcp_retransmitted_segments": 2,
        "tcp_segments_in": 0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_snapshots_that_the_probe_wrote_while_2000_requests_were_made():
    found = numbers(extract(GOLDEN), MACHINE)
    expected = {
        "cpu_user_seconds": (164477 - 164454) / 100,
        "cpu_system_seconds": (74209 - 74196) / 100,
        "cpu_softirq_seconds": (15435 - 15429) / 100,
        "cpu_seconds": (23 + 13 + 6) / 100,
        "cpu_idle_seconds": (448652 - 448651) / 100,
        "cpu_steal_seconds": (1193 - 1192) / 100,
        "interrupts": 8948648 - 8948462,
        "device_interrupts": 1106954 - 1106951,
        "timer_interrupts": (570236 - 570137) + (728041 - 727982),
        "rescheduling_interrupts": (762625 - 762608) + (803019 - 803013) + (2688898 - 2688896),
        "net_rx_softirqs": 8613601 - 8601601,
        "context_switches": 20989050 - 20983209,
        "processes_started": 3,
        "page_faults": 56949653 - 56948796,
        "major_page_faults": 3,
        "backlog_drops": 0,
        "pressure_cpu_seconds": (632318816 - 632253627) / 1e6,
        "memory_available_bytes": 1024 * (23964024 + 23958052) / 2,
        "nic_rx_packets": 10000,
        "nic_tx_packets": 10000,
        "nic_rx_bytes": 19411922957 - 19409778957,
        "tcp_segments_in": 10000,
        "tcp_segments_out": 10000,
        "tcp_retransmitted_segments": 0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["interrupts"] == found["device_interrupts"] + found["timer_interrupts"] + found["rescheduling_interrupts"]


def test_a_guest_whose_four_workers_waited_for_two_cpus(tmp_path):
    first, second = ((GOLDEN / f"schedstat.{which}").read_text() for which in ("first", "second"))
    write(tmp_path, MACHINE, {"/proc/schedstat": first, **NOTHING}, {"/proc/schedstat": second, **NOTHING})
    waited_ns = (1704603681 - 427125525) + (1248502303 - 288729104)
    assert numbers(extract(tmp_path), MACHINE)["run_queue_delay_seconds"] == pytest.approx(waited_ns / 1e9)


def test_a_version_of_schedstat_whose_fields_are_not_known_is_missing(tmp_path):
    sources = {"/proc/schedstat": schedstat(1, 2, version=99), **NOTHING}
    write(tmp_path, MACHINE, sources, sources)
    assert numbers(extract(tmp_path), MACHINE)["run_queue_delay_seconds"] is None


def test_what_a_place_does_not_have_is_missing_not_zero(tmp_path):
    sources = {"/proc/stat": stat(cpu(), cpu()), "/proc/pressure/cpu": None, "/proc/net/dev": net_dev(eth0=(1, 1)), **NOTHING}
    write(tmp_path, MACHINE, sources, sources)
    found = numbers(extract(tmp_path), MACHINE)
    assert found["pressure_cpu_seconds"] is None
    assert found["run_queue_delay_seconds"] is None and found["kvm_exits"] is None
    assert found["page_faults"] is None and found["backlog_drops"] is None and found["tcp_timeouts"] is None
    assert found["nic_rx_packets"] == 0


def test_wake_ups_that_the_kernel_refuses_are_missing_and_the_reason_is_kept(tmp_path):
    sources = {"wake-ups": "refused load a BPF program: Operation not permitted\n", "idle-states": None, **NOTHING}
    write(tmp_path, MACHINE, sources, sources)
    found = extract(tmp_path)
    names = ("idle_wake_ups", "idle_wake_up_seconds", "idle_wake_up_latency", "idle_state_entries", "idle_state_seconds")
    assert {name: numbers(found, MACHINE)[name] for name in names} == dict.fromkeys(names)
    reasons = [row for row in found.tables["counters"].to_pylist() if row["key"] == "wake_ups:refused"]
    assert [row["first_text"] for row in reasons] == ["load a BPF program: Operation not permitted"]


def test_a_latency_of_no_wake_ups_is_missing_and_their_number_is_0(tmp_path):
    sources = {"wake-ups": "cpu0 8 9000\nmissed 0\n", **NOTHING}
    write(tmp_path, MACHINE, sources, sources)
    found = numbers(extract(tmp_path), MACHINE)
    assert (found["idle_wake_ups"], found["idle_wake_up_seconds"], found["idle_wake_up_latency"]) == (0, 0, None)


def test_a_host_without_a_kernel_of_its_own_gives_its_network_only(tmp_path):
    """A container's /proc/stat is the machine's; softnet_stat is not asked for there."""
    write(
        tmp_path,
        "client",
        {"/proc/stat": stat(cpu(0), cpu(0)), "/proc/net/dev": net_dev(eth0=(0, 0)), "/proc/net/snmp": snmp(0)},
        {"/proc/stat": stat(cpu(99), cpu(99)), "/proc/net/dev": net_dev(eth0=(8, 6)), "/proc/net/snmp": snmp(1)},
    )
    found = extract(tmp_path)
    values = numbers(found, "client")
    assert values["nic_rx_packets"] == 8 and values["tcp_retransmitted_segments"] == 1
    assert "cpu_seconds" not in values and "interrupts" not in values
    sources = set(
        found.tables["counters"].filter(found.tables["counters"]["kind"].to_numpy() == "counter")["source"].to_pylist()
    )
    assert sources == {"/proc/net/dev", "/proc/net/snmp"}
    assert found.cautions == [], "the machine's CPUs are the machine's to report"


def test_interfaces_are_those_that_were_named(tmp_path):
    """A bridge counts the same packets again."""
    features = {"ethtool -k lab-c": "Features for lab-c:\nrx-checksumming: on\n", "ethtool -k lab-s": None}
    write(
        tmp_path,
        MACHINE,
        {"/proc/net/dev": net_dev(br0=(0, 0), **{"lab-c": (0, 0), "lab-s": (0, 0)}), **features},
        {"/proc/net/dev": net_dev(br0=(9, 9), **{"lab-c": (4, 3), "lab-s": (3, 4)}), **features},
    )
    assert numbers(extract(tmp_path), MACHINE)["nic_rx_packets"] == 7


def test_tables_hold_what_moved_and_the_kernels_log(tmp_path):
    log = "6,339,5140900,-;NET: Registered PF_PACKET protocol family\n SUBSYSTEM=net\n"
    write(
        tmp_path,
        "client",
        {"/proc/net/dev": net_dev(eth0=(1, 2))},
        {"/proc/net/dev": net_dev(eth0=(5, 2)), "/dev/kmsg": log},
    )
    tables = extract(tmp_path).tables
    moved = tables["counters"].to_pylist()
    assert [(row["host"], row["key"], row["difference"]) for row in moved] == [
        ("client", "net/dev:eth0.rx_bytes", 400),
        ("client", "net/dev:eth0.rx_packets", 4),
    ]
    assert [(row["host"], row["level"], row["text"]) for row in tables["kernel_log"].to_pylist()] == [
        ("client", "info", "NET: Registered PF_PACKET protocol family")
    ]


def seconds(*busy: int, steal: int = 0) -> list[dict[str, str | None]]:
    """Snapshots a second apart; in each second the first CPU is busy for so many ticks, the second for half a second."""
    used, states = 0, [stat(cpu(), cpu())]
    for i, ticks in enumerate(busy, start=1):
        used += ticks
        states.append(stat(cpu(used, idle=100 * i - used - steal * i, steal=steal * i), cpu(50 * i, idle=50 * i)))
    return [{"/proc/stat": state, **NOTHING} for state in states]


def test_a_cpu_that_is_never_idle_is_a_caution(tmp_path):
    """Start and end of a run are idle; the median second is what counts."""
    write(tmp_path, MACHINE, *seconds(10, 100, 99, 100, 100, 20))
    (caution,) = extract(tmp_path).cautions
    assert caution.kind is Kind.CPU_EXHAUSTED
    assert caution.detail == "busy on the machine: cpu0 99.5%"


def test_a_short_last_interval_says_nothing_about_a_cpu(tmp_path):
    write(tmp_path, MACHINE, *seconds(50, 100), times=(0.0, 1.0, 1.1))
    assert extract(tmp_path).cautions == []


def test_a_cpu_with_idle_time_is_no_caution(tmp_path):
    write(tmp_path, MACHINE, *seconds(97, 97, 97))
    assert extract(tmp_path).cautions == []


@pytest.mark.parametrize(("steal", "cautions"), [(2, 0), (3, 1)])
def test_more_than_one_per_cent_of_stolen_time_is_a_caution(tmp_path, steal, cautions):
    """Of two CPUs: 2 of 200 ticks a second are 1 %, 3 are 1.5 %."""
    write(tmp_path, "client", *seconds(50, 50, steal=steal))
    found = extract(tmp_path)
    assert [caution.kind for caution in found.cautions] == [Kind.STEAL] * cautions
    assert all(caution.detail == "1.5% of the CPU time of client" for caution in found.cautions)
    assert numbers(found, "client")["cpu_steal_seconds"] == pytest.approx(2 * steal / 100)


@pytest.mark.parametrize(
    "said",
    [
        "NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out 5123 ms",
        "e1000 0000:00:03.0 eth0: Reset adapter",
        "e1000: eth0 NIC Link is Down",
        "e1000 0000:00:03.0 eth0: Detected Tx Unit Hang",
    ],
)
def test_nic_trouble_in_the_kernels_log_is_a_caution(tmp_path, said):
    network = {"/proc/net/dev": net_dev(eth0=(0, 0))}
    log = f"6,1,100,-;NIC Link is Up 1000 Mbps\n4,2,200,-;{said}\n4,3,300,-;{said}\n"
    write(tmp_path, "server", network, {**network, "/dev/kmsg": log})
    (caution,) = extract(tmp_path).cautions
    assert caution.kind is Kind.NIC_RESET
    assert caution.detail == f"server: {said} (and 1 more)"


def test_a_harmless_log_is_no_caution(tmp_path):
    network = {"/proc/net/dev": net_dev(eth0=(0, 0))}
    log = "6,1,100,-;e1000: eth0 NIC Link is Up 1000 Mbps Full Duplex\n"
    write(tmp_path, "server", network, {**network, "/dev/kmsg": log})
    assert extract(tmp_path).cautions == []


def test_records_that_the_kernel_overwrote_are_a_caution(tmp_path):
    network = {"/proc/net/dev": net_dev(eth0=(0, 0))}
    write(tmp_path, MACHINE, network, {**network, "/dev/kmsg": "lost 12\n"})
    (caution,) = extract(tmp_path).cautions
    assert caution.kind is Kind.UNREADABLE and "12 records" in caution.detail


def test_a_file_with_one_snapshot_has_no_differences_and_says_so(tmp_path):
    write(tmp_path, MACHINE, {"/proc/stat": stat(cpu(10), cpu(90)), **NOTHING})
    found = extract(tmp_path)
    assert numbers(found, MACHINE)["cpu_seconds"] is None
    assert [caution.kind for caution in found.cautions] == [Kind.UNREADABLE]


def test_a_file_that_was_cut_off_gives_what_it_has_and_says_so(tmp_path):
    write(tmp_path, MACHINE, *seconds(50, 50, 50))
    file = tmp_path / MACHINE / "counters.snap"
    file.write_bytes(file.read_bytes()[:-10])
    found = extract(tmp_path)
    assert numbers(found, MACHINE)["cpu_seconds"] == pytest.approx((50 + 50) * 2 / 100)
    (caution,) = found.cautions
    assert caution.kind is Kind.UNREADABLE and "not whole" in caution.detail


def test_a_file_that_is_none_is_an_error(tmp_path):
    (tmp_path / MACHINE).mkdir()
    (tmp_path / MACHINE / "counters.snap").write_bytes(b"ready\n")
    with pytest.raises(ValueError, match=r"counters\.snap"):
        extract(tmp_path)


def test_no_file_at_all_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        extract(tmp_path)


def test_metrics_are_declared_once_with_their_layer():
    names = [metric.name for metric in counters.metrics]
    assert len(names) == len(set(names))
    layers = {metric.name: metric.layer for metric in counters.metrics}
    assert layers["interrupts"] is Layer.HOST and layers["context_switches"] is Layer.OS
    assert layers["tcp_retransmitted_segments"] is Layer.NETWORK
    assert {metric.name for metric in counters.metrics if metric.headline} == {"cpu_seconds", "interrupts", "context_switches"}


def test_every_value_is_declared_in_its_unit_and_given_once(tmp_path):
    write(tmp_path, MACHINE, *seconds(50, 50))
    found = extract(tmp_path).values
    declared = {metric.name: metric.unit for metric in counters.metrics}
    assert all(declared[value.metric] == value.unit for value in found)
    assert len({value.metric for value in found}) == len(found)


def test_every_setting_says_what_it_is():
    assert all(field.description for field in CountersParams.model_fields.values())


def test_interrupts_are_given_by_line_and_name_over_all_cpus(tmp_path: Path) -> None:
    """24: 40 and 80 more on the two CPUs; LOC: 7 each; ERR has one number for all, and none came."""
    write(
        tmp_path,
        MACHINE,
        {**NOTHING, "/proc/interrupts": interrupts(10, 100)},
        {**NOTHING, "/proc/interrupts": interrupts(50, 107)},
    )
    write(tmp_path, "client", {"/proc/interrupts": interrupts(1, 1)}, {"/proc/interrupts": interrupts(2, 2)})
    assert extract(tmp_path).tables["interrupts"].to_pylist() == [
        {"host": MACHINE, "line": "PCI-MSI 1-edge eth0-rx", "count": 120.0},
        {"host": MACHINE, "line": "LOC", "count": 14.0},
        {"host": MACHINE, "line": "ERR", "count": 0.0},
    ]


def test_the_time_of_threads_that_keep_cpus_awake_is_idle_time(tmp_path):
    """Two CPUs for 1 s: 30 and 10 ticks of work, 60 and 90 of such threads, 10 and 0 idle. Without the mark they are busy."""
    before = {**NOTHING, "/proc/stat": stat(cpu(), cpu()), "/proc/pressure/cpu": "some avg10=0 avg60=0 avg300=0 total=0\n"}
    first, second = cpu(user=30, idle=10), cpu(user=10)
    first[1], second[1] = 60, 90
    after = {**NOTHING, "/proc/stat": stat(first, second), "/proc/pressure/cpu": "some avg10=0 avg60=0 avg300=0 total=900000\n"}
    write(tmp_path, MACHINE, before, after)
    busy = extract(tmp_path)
    found = numbers(busy, MACHINE)
    assert (found["cpu_seconds"], found["pressure_cpu_seconds"]) == pytest.approx((1.9, 0.9))
    assert Kind.CPU_EXHAUSTED in [caution.kind for caution in busy.cautions]
    (tmp_path / MACHINE / "kept-awake.json").write_text("[0, 1]\n")
    awake = extract(tmp_path)
    found = numbers(awake, MACHINE)
    assert (found["cpu_seconds"], found["cpu_idle_seconds"], found["cpu_user_seconds"]) == pytest.approx((0.4, 1.6, 0.4))
    assert found["cpu_busy_share"] == pytest.approx(0.2)
    assert found["pressure_cpu_seconds"] is None, "such a thread waits for a CPU whenever something else runs"
    assert Kind.CPU_EXHAUSTED not in [caution.kind for caution in awake.cautions]
