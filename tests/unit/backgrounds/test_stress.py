"""A background load: in a study, in a run's identity, what stress-ng is told and what it says, and what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.backgrounds.stress import StressParams, stress
from twinbed.contracts.background import BackgroundPlan
from twinbed.contracts.command import Ready
from twinbed.contracts.place import MACHINE, MACHINE2, Places
from twinbed.lab import preflight
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.study.study import Study
from twinbed.testbeds.container import container

GOLDEN = Path(__file__).parents[2] / "golden" / "stress"
PAIRS = [("client1", "server1", "10.77.0.2"), ("client2", "server2", "10.77.1.2")]
PLACES = Places([MACHINE], PAIRS, [("otherclient1", "otherserver1", "10.77.2.2")])
PLAIN = """
study: loads
testbeds: {a: {driver: container}}
workload: {kind: http}
"""


def read(more: str = "") -> Study:
    return load(PLAIN + more, "loads.yaml", catalogue())


def runs(more: str = "") -> list[Run]:
    return list(design.runs(read(more)))


def problems(more: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        read(more)
    return [str(problem) for problem in caught.value.problems]


def test_a_run_without_one_is_what_it_was() -> None:
    run = runs()[0]
    assert run.backgrounds == {}
    assert "background" not in run.settings()


def test_a_run_with_one_is_another() -> None:
    (run, *_) = runs("background: {kind: stress, cpu: 2, where: hosts}\n")
    assert run.settings()["background"] == {
        "stress": {"kind": "stress", "cpu": 2, "io": 0, "memory": 0, "memory_size": 64 * 2**20, "where": "hosts"}
    }
    assert run.id != runs()[0].id
    assert run.accompanying() == (run.backgrounds["stress"],)


def test_several_kinds_are_a_mapping() -> None:
    """Alone in it, a kind means what it does where ``kind`` names it."""
    study = read("background: {stress: {where: hosts}, traffic: }\nfactors: {background.stress.cpu: [0, 2], http: [0, 1]}\n")
    found = [(cell.backgrounds["stress"].params.cpu, cell.backgrounds["traffic"].params.http) for cell in study.cells]
    assert found == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert list(study.cells[0].backgrounds) == ["stress", "traffic"]
    assert runs("background: {stress: {cpu: 2}}\n")[0].id == runs("background: {kind: stress, cpu: 2}\n")[0].id


def test_its_settings_are_factors() -> None:
    study = read("background: {kind: stress}\nfactors: {background.cpu: [0, 2, 4], where: [machine, servers]}\n")
    assert study.factors == {"testbed": ("a",), "background.cpu": (0, 2, 4), "where": ("machine", "servers")}
    params = [cell.backgrounds["stress"].params for cell in study.cells]
    found = [(each.cpu, each.where) for each in params]
    assert found == [(cpu, where) for cpu in (0, 2, 4) for where in ("machine", "servers")]
    assert len({run.cell for run in design.runs(study)}) == 6


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("background: {kind: strain}\n", "background.kind: 'strain' is not known"),
        ("background: {cpu: 2}\n", "background.kind: is required"),
        ("background: {kind: stress, cpus: 2}\n", "background.cpus"),
        ("background: {kind: stress, cpu: -1}\n", "background.cpu"),
        ("background: [stress]\n", "background: is not a mapping"),
        (
            "background: {strss: {cpu: 2}}\n",
            "background.strss: is not a background load; allowed: stress, traffic; did you mean",
        ),
        ("background: {stress: 2}\n", "background.stress: is not a mapping"),
        ("background: {stress: {cpus: 2}}\n", "background.stress.cpus: is not a setting of stress"),
        ("background: {stress: {cpu: 2}, where: hosts}\n", "background.where: is not a background load"),
        (
            "background: {stress: {cpu: 1}, traffic: }\nfactors: {background.stress.cpu: [1, 2]}\n",
            "background.stress.cpu: is also the factor",
        ),
        ("background: {kind: stress, cpu: 1}\nfactors: {background.cpu: [1, 2]}\n", "is also the factor 'background.cpu'"),
        ("factors: {background.cpu: [1, 2]}\n", "is not a setting of this study"),
        ("background: {kind: stress}\nfactors: {where: [machine, moon]}\n", "factors.where"),
    ],
)
def test_what_is_wrong_is_told(more: str, said: str) -> None:
    assert any(said in problem for problem in problems(more))


@pytest.mark.parametrize(
    ("where", "hosts"),
    [
        ("machine", [MACHINE]),
        ("hosts", ["client1", "client2", "server1", "server2"]),
        ("clients", ["client1", "client2"]),
        ("servers", ["server1", "server2"]),
    ],
)
def test_it_is_put_where_it_was_asked(where: str, hosts: list[str]) -> None:
    commands = stress.plan(StressParams(cpu=2, io=1, memory=3, where=where), PLACES).commands
    assert [command.host for command in commands] == hosts
    for command in commands:
        assert command.argv[0] == "stress-ng"
        assert command.ready == Ready(says=b"dispatching hogs")
        # stress-ng divides --vm-bytes among its workers: three of 64 MiB.
        workers = ("--cpu", "2", "--io", "1", "--vm", "3", "--vm-bytes", str(3 * 64 * 2**20))
        assert command.argv[-len(workers) :] == workers


def test_a_testbed_on_two_machines_loads_both() -> None:
    commands = stress.plan(StressParams(cpu=1), Places([MACHINE, MACHINE2], PAIRS)).commands
    assert [command.host for command in commands] == [MACHINE, MACHINE2]


def test_level_0_of_everything_runs_and_needs_nothing(tmp_path: Path) -> None:
    nothing = StressParams()
    assert stress.plan(nothing, PLACES) == BackgroundPlan()
    assert (nothing.programs(), nothing.machine_programs()) == ((), ())
    assert stress.extract(nothing, tmp_path).values == []


def test_what_the_workers_did_is_read() -> None:
    found = stress.extract(StressParams(cpu=2, io=1, memory=1, where="servers"), GOLDEN)
    assert {(value.host, value.unit) for value in found.values} == {("server", "1/s")}
    values = {value.metric: value.value for value in found.values}
    assert values == {
        "background_cpu_rate": pytest.approx(1218 / 2.05),
        "background_io_rate": pytest.approx(2234 / 2.03),
        "background_memory_rate": pytest.approx(19373 / 2.10),
    }
    own = {"background_cpu_rate": 594.28, "background_io_rate": 1098.16, "background_memory_rate": 9209.77}
    assert values == pytest.approx(own, rel=0.01)


def test_other_workers_than_asked_are_an_error() -> None:
    with pytest.raises(ValueError, match="dispatching hogs: 2 cpu, 1 io, 1 vm"):
        stress.extract(StressParams(cpu=4), GOLDEN)


def test_workers_that_say_nothing_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "stress-ng.out.err").write_text("stress-ng: info:  [7] dispatching hogs: 2 cpu\n")
    with pytest.raises(ValueError, match="no result of the cpu workers"):
        stress.extract(StressParams(cpu=2), tmp_path)


def test_the_machine_must_have_it_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight.shutil, "which", lambda _tool, path=None: None)
    (check,) = preflight.backgrounds(
        [(container, StressParams(cpu=1)), (container, StressParams(cpu=2)), (container, StressParams())]
    )
    assert (check.works, check.required) == (False, True)
    assert check.mend == "sudo apt-get install stress-ng"
    assert preflight.backgrounds([(container, StressParams(cpu=1, where="hosts"))]) == []


def test_hosts_that_are_no_machines_cannot_be_loaded() -> None:
    model: Any = PLUGINS.drivers["model"]
    (check,) = preflight.backgrounds([(model, StressParams(cpu=1, where="hosts")), (model, StressParams())])
    assert (check.works, check.what) == (False, "model: background")
    assert preflight.backgrounds([(model, StressParams())]) == [], "no workers are no load"


def test_where_no_machine_carries_the_hosts_it_cannot_be_loaded() -> None:
    elsewhere: Any = PLUGINS.drivers["remote"]
    (check,) = preflight.backgrounds([(elsewhere, StressParams(cpu=1))])
    assert not check.works
    assert "remote" in check.found and "hosts, clients or servers" in check.mend
