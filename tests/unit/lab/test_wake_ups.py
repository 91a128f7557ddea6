"""How long programs waited for idle CPUs: counts times what each takes, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from twinbed.contracts.bed import WakeUp
from twinbed.contracts.place import MACHINE
from twinbed.hosts.error import HostError
from twinbed.lab.preflight import load_note
from twinbed.lab.watch import stops, waited
from twinbed.model.caution import Kind
from twinbed.model.clients import ClientTimes
from twinbed.model.usage import ProgramUsage, Role, Usage
from twinbed.model.wake_ups import IDLE_WAKE_UPS, ON_ONE_CPU_S, WAITED_S, WAITED_SHARE, WAKE_UP_S

CPUIDLE = "/sys/devices/system/cpu/cpu{}/cpuidle/state{}/{}"


class Machine:
    """Answers reads from a mapping."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise HostError(f"no {path}")
        return self.files[path].encode()

    def run(self, argv: list[str]) -> SimpleNamespace:
        assert argv[0] == "cat"
        return SimpleNamespace(text="".join(self.read(path).decode() for path in argv[1:]))


def bed(files: dict[str, str] | None = None, *, awake: bool = False, apart_s: float = 42e-6) -> Any:
    """Two CPUs; a wake-up takes 42 us, of which 2 us have nothing to do with idle CPUs."""
    return SimpleNamespace(hosts={MACHINE: Machine(files or {})}, wake_up=WakeUp((0, 1), awake, apart_s, 2e-6))


def programs(switches: int) -> list[ProgramUsage]:
    """A client and a server with half of the switches each, and an instrument that does not count."""
    half = Usage(1.0, switches // 2, 7)
    return [
        ProgramUsage("client", "ab", Role.WORKLOAD, half),
        ProgramUsage("server", "nginx", Role.WORKLOAD, half),
        ProgramUsage(MACHINE, "tcpdump", Role.INSTRUMENT, Usage(1.0, 10**9, 0)),
    ]


CLIENT = [ClientTimes("client", 0.0, 2.0)]


def cpuidle(*counts: tuple[int, int]) -> dict[str, str]:
    """Of each CPU how often it polled, and how often it stopped."""
    files = {}
    for cpu, (polled, stopped) in enumerate(counts):
        for state, (name, count) in enumerate((("POLL", polled), ("haltpoll idle", stopped))):
            files[CPUIDLE.format(cpu, state, "name")] = f"{name}\n"
            files[CPUIDLE.format(cpu, state, "usage")] = f"{count}\n"
    return files


def test_stops_are_summed_over_cpus_without_polling() -> None:
    assert stops(bed(cpuidle((500, 30), (600, 12)))) == 42


def test_without_cpuidle_or_where_cpus_are_not_alike_nothing_is_known() -> None:
    assert stops(bed()) is None
    assert stops(bed(cpuidle((500, 30)))) is None, "the second CPU has no such state"
    assert stops(SimpleNamespace(wake_up=None)) is None  # type: ignore[arg-type]


def test_the_wait_is_the_number_of_wake_ups_times_what_each_takes() -> None:
    """20,000 times 40 us are 0.8 s of 2 s."""
    facts, (caution,) = waited(bed(), 20_000, programs(30_000), CLIENT)
    assert facts == {
        WAKE_UP_S: 42e-6,
        ON_ONE_CPU_S: 2e-6,
        IDLE_WAKE_UPS: 20_000,
        WAITED_S: pytest.approx(0.8),
        WAITED_SHARE: pytest.approx(0.4),
    }
    assert (caution.kind, caution.detail) == (Kind.IDLE_WAKE_UPS, "40% of the run's time: 10,000 wake-ups/s of 40 us each")


def test_programs_wait_no_more_often_than_they_gave_their_cpu_away() -> None:
    """CPUs of a machine stop for others too: of 20,000 stops 1,000 were the workload's, 2 % of its time."""
    facts, cautions = waited(bed(), 20_000, programs(1_000), CLIENT)
    assert (facts[WAITED_SHARE], cautions) == (pytest.approx(0.02), [])


def test_where_the_kernel_counts_no_stops_it_is_an_upper_bound() -> None:
    facts, (caution,) = waited(bed(), None, programs(20_000), CLIENT)
    assert (facts[IDLE_WAKE_UPS], facts[WAITED_SHARE]) == (None, pytest.approx(0.4))
    assert caution.detail.startswith("at most 40% of the run's time")


def test_cpus_that_are_kept_awake_never_have_to_be_woken() -> None:
    facts, cautions = waited(bed(awake=True), None, programs(20_000), CLIENT)
    assert (facts[WAITED_S], facts[WAITED_SHARE], cautions) == (0.0, 0.0, [])


def test_programs_on_one_cpu_wait_for_none() -> None:
    assert waited(bed(apart_s=1.9e-6), 20_000, programs(20_000), CLIENT)[0][WAITED_SHARE] == 0.0


def test_what_is_not_known_is_null() -> None:
    facts, cautions = waited(bed(), 20_000, [], CLIENT)
    assert (facts[WAITED_S], facts[WAITED_SHARE], cautions) == (None, None, [])
    assert waited(SimpleNamespace(wake_up=None), None, programs(2), CLIENT) == ({}, [])  # type: ignore[arg-type]


def test_a_machine_that_works_has_no_idle_cpu_to_measure() -> None:
    assert load_note(2, 0.1) == ""
    assert load_note(2, 1.5) == "; other work runs here (load 1.5): check again on a quiet machine"
