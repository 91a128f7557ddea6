"""What may run in labs alone: refused wherever a host is on another network, one end of a mixed testbed too."""

from __future__ import annotations

import pytest

from twinbed import design
from twinbed.lab.execution import is_in_a_lab
from twinbed.lab.preflight import confined
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

HYBRID = "driver: mixed, client: {driver: container}, server: {driver: remote, uplink: eth1, hosts: {server: root@s1}}"
HALF = "driver: mixed, client: {driver: container}, server: {driver: qemu}"


@pytest.mark.parametrize(
    ("bed", "inside"),
    [("driver: container", True), ("driver: qemu", True), (HALF, True), (HYBRID, False), ("driver: model", False)],
)
def test_a_replay_stays_in_labs(bed: str, inside: bool) -> None:
    text = f"study: s\ntestbeds: {{bed: {{{bed}}}}}\nworkload: {{kind: replay}}\nreplicates: 1\n"
    (run,) = design.runs(load(text, "s.yaml", catalogue()))
    assert is_in_a_lab(run, PLUGINS.drivers) is inside
    assert [check.works for check in confined([run], PLUGINS.drivers)] == ([] if inside else [False])


def test_a_replay_through_routers_is_a_problem_of_the_study() -> None:
    text = "study: s\ntestbeds: {bed: {driver: container}}\ntopology: {routers: 1}\nworkload: {kind: replay}\nreplicates: 1\n"
    with pytest.raises(Exception, match="cannot be used"):
        load(text, "s.yaml", catalogue())
