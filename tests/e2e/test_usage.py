"""What programs of a run used: the workload's own from the start of the workload on, and apart from them the instruments'."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.site import Site
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.lab.execution import Outcome, execute
from twinbed.model.usage import Role, Usage
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

SLEEPS = 100
WORKS = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
SLEEPS_OFTEN = f"i=0; while [ $i -lt {SLEEPS} ]; do sleep 0.001; i=$((i+1)); done"
STUDY = """
study: usage
testbeds: {bed: {driver: container}}
workload: {kind: http, duration: 1s, max_requests: 1000}
instruments: [latency]
replicates: 1
"""


class Known(Workload[Any]):
    """Its server works before the workload begins and sleeps while it runs; its client does what WORKS is, and sleeps."""

    def plan(self, params: Any, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        serve = ("sh", "-c", f"{WORKS}; echo ready; exec sleep 60")
        ask = ("sh", "-c", f"{WORKS}; {SLEEPS_OFTEN}")
        return WorkloadPlan(
            servers=[Command("server", serve, "server.txt", Ready(says=b"ready"))],
            clients=[Command("client", ask, "client.txt")],
        )

    def parse(self, params: Any, artifacts: Path) -> Extracted:
        return Extracted()


def test_programs_count_for_what_they_are_and_from_the_start_of_the_workload(
    site: Callable[..., Site], leaves_nothing: None
) -> None:
    run = design.runs(load(STUDY, "usage.yaml", catalogue()))[0]
    outcome = Outcome()
    execute(run, replace(PLUGINS, workloads={"http": Known()}), site(), outcome, lambda _: None)  # type: ignore[dict-item]
    used = {(each.host, each.program, each.role): each.usage for each in outcome.programs}
    client, server = used.pop(("client", "sh", Role.WORKLOAD)), used.pop(("server", "sh", Role.WORKLOAD))
    # A shell waits for each sleep, and each sleep sleeps.
    assert client.voluntary_switches >= 2 * SLEEPS
    assert server.voluntary_switches < SLEEPS / 10
    assert server.cpu_s < client.cpu_s / 10
    assert {role for _, _, role in used} == {Role.INSTRUMENT}
    assert {program for _, program, _ in used} == {"irtt", "twinbed-probe"}
    assert used["client", "irtt", Role.INSTRUMENT].voluntary_switches > 0
    assert all(usage != Usage(0.0, 0, 0) for usage in used.values())
