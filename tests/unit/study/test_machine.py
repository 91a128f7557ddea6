"""``machine`` of a study file: settings of all testbeds on this machine, given once."""

from __future__ import annotations

import pytest

from twinbed import registry
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.study import Study

WORKLOAD = "workload: {kind: http}\n"
LOCAL = "testbeds: {a: {driver: container}, b: {driver: qemu}}\n"
REMOTE = "testbeds: {real: {driver: remote, hosts: {client: root@c1, server: root@s1}}, a: {driver: container}}\n"
MIXED = "testbeds: {m: {driver: mixed, client: {driver: container}, server: {driver: qemu}}}\n"


def read(text: str, *overrides: str) -> Study:
    return load(f"study: cpus\n{WORKLOAD}{text}", "cpus.yaml", registry.catalogue(), overrides)


def of(study: Study, setting: str) -> dict[str, object]:
    return {cell.testbed_name: getattr(cell.testbed.params, setting, None) for cell in study.cells}


def test_it_is_as_if_each_testbed_had_it() -> None:
    once = read(f"{LOCAL}machine: {{idle: busy, cpus: shared}}\n")
    each = read("testbeds: {a: {driver: container, idle: busy, cpus: shared}, b: {driver: qemu, idle: busy, cpus: shared}}\n")
    assert (of(once, "idle"), of(once, "cpus")) == ({"a": "busy", "b": "busy"}, {"a": "shared", "b": "shared"})
    assert [cell.testbed for cell in once.cells] == [cell.testbed for cell in each.cells]
    assert of(read(LOCAL, "machine.idle=normal"), "idle") == {"a": "normal", "b": "normal"}
    assert of(read(LOCAL), "idle") == {"a": "normal", "b": "normal"}


def test_hosts_elsewhere_are_left_as_they_are() -> None:
    assert of(read(f"{REMOTE}machine: {{idle: busy, cpus: shared}}\n"), "idle") == {"real": None, "a": "busy"}


def test_hosts_of_a_mixed_testbed_have_it_each() -> None:
    (cell,) = read(f"{MIXED}machine: {{idle: busy}}\n").cells
    assert {role: kind.idle for role, kind in cell.testbed.params.kinds().items()} == dict.fromkeys(  # type: ignore[attr-defined]
        ("client", "server", "router"), "busy"
    )


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ("testbeds: {a: {driver: container, idle: normal}}\nmachine: {idle: busy}\n", "testbeds.a.idle", "is given twice"),
        (f"{LOCAL}machine: {{idle: often}}\n", "machine.idle", "normal or busy"),
        (f"{LOCAL}machine: {{idel: busy}}\n", "machine.idel", "idle"),
        (f"{LOCAL}machine: busy\n", "machine", "is not a mapping"),
        ("testbeds: {f: {driver: model}}\nmachine: {idle: busy}\n", "machine", "no testbed has any"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(text: str, where: str, told: str) -> None:
    with pytest.raises(StudyError) as error:
        read(text)
    assert [problem.key for problem in error.value.problems] == [where]
    assert told in str(error.value)


def test_hosts_over_ssh_share_no_cpu() -> None:
    with pytest.raises(StudyError, match="cpus: shared is for hosts on one machine"):
        read(REMOTE.replace("server: root@s1}", "server: root@s1}, cpus: shared"))
