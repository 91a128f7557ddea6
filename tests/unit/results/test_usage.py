"""What programs used, apart by what they were for."""

from __future__ import annotations

import pytest

from twinbed.model.usage import ProgramUsage, Role, Usage
from twinbed.results.extract.derived import usage

PROGRAMS = [
    ProgramUsage("client", "ab", Role.WORKLOAD, Usage(1.5, 40, 2)),
    ProgramUsage("server", "nginx", Role.WORKLOAD, Usage(3.0, 20, 4)),
    ProgramUsage("client", "irtt", Role.INSTRUMENT, Usage(0.25, 1000, 10)),
    ProgramUsage("client", "twinbed-probe", Role.INSTRUMENT, Usage(0.5, 7, 1)),
]


def test_a_hosts_programs_are_added_up_by_role() -> None:
    values = {(value.metric, value.host): value.value for value in usage(PROGRAMS)}
    assert values == {
        ("workload_cpu_seconds", "client"): 1.5,
        ("workload_context_switches", "client"): 42,
        ("workload_voluntary_context_switches", "client"): 40,
        ("workload_involuntary_context_switches", "client"): 2,
        ("workload_cpu_seconds", "server"): 3.0,
        ("workload_context_switches", "server"): 24,
        ("workload_voluntary_context_switches", "server"): 20,
        ("workload_involuntary_context_switches", "server"): 4,
        ("instrument_cpu_seconds", "client"): 0.75,
        ("instrument_context_switches", "client"): 1018,
    }


def test_a_host_without_instruments_has_no_value_for_them() -> None:
    assert {value.metric for value in usage(PROGRAMS[:1])} == {
        "workload_cpu_seconds",
        "workload_context_switches",
        "workload_voluntary_context_switches",
        "workload_involuntary_context_switches",
    }
    assert list(usage([])) == []


def test_a_record_keeps_them() -> None:
    assert [ProgramUsage.from_json(program.to_json()) for program in PROGRAMS] == PROGRAMS
    with pytest.raises(ValueError, match="waiter"):
        ProgramUsage.from_json({**PROGRAMS[0].to_json(), "role": "waiter"})
