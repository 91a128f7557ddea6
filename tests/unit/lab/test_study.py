"""The loop over a study's runs, on the fake testbed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.bed import Bed
from twinbed.contracts.site import Installed
from twinbed.hosts.error import HostError, HostLost
from twinbed.hosts.in_process import InProcessProgram
from twinbed.image import Image
from twinbed.lab.study import Ending, Event, PhaseBegan, RunEnded, StudyBegan, carry_out, chosen
from twinbed.model.run import Phase, Status
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.folder import Folder
from twinbed.study.loading import load
from twinbed.testbeds import fake

STUDY = """
study: loop
testbeds: {a: {driver: fake, seed: 1}, b: {driver: fake, seed: 2}}
workload: {kind: planted}
instruments: []
factors: {testbed: [a, b], spread: [0.01, 0.02]}
replicates: 2
"""
Carry = Callable[..., tuple[Ending, list[Event]]]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    nowhere = tmp_path / "nowhere"
    return Installed(nowhere, Image("0", nowhere, nowhere, "erofs", nowhere, nowhere, "6.1", {}))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


@pytest.fixture
def carry(folder: Folder, installed: Installed) -> Carry:
    def call(text: str = STUDY, **options: Any) -> tuple[Ending, list[Event]]:
        study = load(text.replace("spread:", "workload.spread:"), "loop.yaml", catalogue())
        events: list[Event] = []
        with folder.locked():
            ending = carry_out(study, design.runs(study), PLUGINS, folder, installed, events.append, **options)
        return ending, events

    return call


def records(folder: Folder) -> dict[str, dict[str, Any]]:
    return {path.parent.name: json.loads(path.read_text()) for path in folder.runs.glob("*/run.json")}


def stamps(folder: Folder) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.runs.glob("*/run.json")}


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException, times: int = 1_000) -> None:
    """The next clients fail."""
    original, left = fake.FakeHost.start, [times]

    def start(self: Any, argv: Any, **rest: Any) -> Any:
        if argv[0] == "planted-response" and left[0]:
            left[0] -= 1
            raise error
        return original(self, argv, **rest)

    monkeypatch.setattr(fake.FakeHost, "start", start)


def test_a_whole_study(carry: Carry, folder: Folder) -> None:
    ending, events = carry()
    assert ending == Ending(complete=8, failed=0, made=8, left=0)
    assert events[0] == StudyBegan(8, 0)
    ended = [event for event in events if isinstance(event, RunEnded)]
    found = records(folder)
    assert [event.run.id for event in ended] == [run["id"] for run in sorted(found.values(), key=lambda run: run["position"])]
    # Nothing is asked of these links, nothing runs beside the workload, and no host is examined after it.
    made = [phase for phase in Phase if phase not in {Phase.LINK_CHECK, Phase.BACKGROUND, Phase.EXAMINE}]
    phases = [event.phase for event in events if isinstance(event, PhaseBegan) and event.run.id == ended[0].run.id]
    assert phases == made
    run = next(iter(found.values()))
    assert set(run["phases"]) == {str(phase) for phase in made}
    assert {item["path"] for item in run["artifacts"]} == {"artifacts/client/planted.json"}
    planned = json.loads((folder.path / "study.json").read_text())["runs"]
    assert {run["id"] for run in planned} == set(found)
    assert (folder.path / "study.yaml").read_text().startswith("\nstudy: loop")


def test_what_is_there_is_not_made_again(carry: Carry, folder: Folder) -> None:
    ending, _ = carry(only=["testbed=a"])
    assert ending == Ending(4, 0, 4, 0)
    before = stamps(folder)
    ending, events = carry()
    assert ending == Ending(8, 0, 4, 0)
    assert events[0] == StudyBegan(8, 4)
    assert before.items() <= stamps(folder).items()
    assert carry() == (Ending(8, 0, 0, 0), [StudyBegan(8, 8)])


def test_a_study_that_is_complete_needs_nothing_installed(carry: Carry, folder: Folder) -> None:
    carry()
    study = load(STUDY.replace("spread:", "workload.spread:"), "loop.yaml", catalogue())
    with folder.locked():
        assert carry_out(study, design.runs(study), PLUGINS, folder, None, lambda _: None).made == 0


def test_a_study_can_grow(carry: Carry, folder: Folder) -> None:
    carry()
    before = stamps(folder)
    ending, _ = carry(STUDY.replace("replicates: 2", "replicates: 3").replace("0.02]", "0.02, 0.03]"))
    assert (ending.complete, ending.made) == (18, 10)
    assert before.items() <= stamps(folder).items()


def test_a_run_that_fails_is_a_record_and_the_study_goes_on(
    carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, HostLost("client: its agent ended the connection"), times=1)
    ending, events = carry()
    assert ending == Ending(complete=7, failed=1, made=8, left=0)
    failed = next(event for event in events if isinstance(event, RunEnded) and event.status is Status.FAILED)
    assert (failed.failed_phase, failed.reason) == (Phase.WORKLOAD, "client: its agent ended the connection")
    run = records(folder)[failed.run.id]
    assert (run["status"], run["failed_phase"], run["reason"]) == ("failed", "workload", failed.reason)
    assert run["artifacts"] == []
    assert set(run["phases"]) == {"up", "configure", "serve", "warm-up", "instrument", "workload"}
    log = [json.loads(line) for line in (folder.path / "events.jsonl").read_text().splitlines()]
    assert [line["reason"] for line in log if line.get("status") == "failed"] == [failed.reason]


def test_a_failed_run_has_no_values(carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    from twinbed.cli.extraction import extracted

    fails(monkeypatch, HostError("client: no"), times=1)
    carry()
    failed = next(run for run, record in records(folder).items() if record["status"] == "failed")
    values = extracted(folder.path).table("metrics").to_pylist()
    assert failed not in {row["run"] for row in values if row["value"] is not None}
    assert len({row["run"] for row in values}) >= 7


def test_the_first_failure_ends_it_where_asked(carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, HostError("client: no"))
    ending, _ = carry(keep_going=False)
    assert ending == Ending(complete=0, failed=1, made=1, left=7)
    assert len(records(folder)) == 1


def test_failed_runs_are_made_again_only_when_asked(carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        fails(patch, HostError("client: no"), times=2)
        carry()
    failed = {run for run, record in records(folder).items() if record["status"] == "failed"}
    assert carry()[0] == Ending(complete=6, failed=2, made=0, left=0)
    assert carry(retry_failed=True)[0] == Ending(complete=8, failed=0, made=2, left=0)
    kept = {path.parent.name: json.loads(path.read_text()) for path in folder.path.glob("failed/*/run.json")}
    assert set(kept) == {f"{run}-1" for run in failed}
    assert {record["status"] for record in kept.values()} == {"failed"}


@pytest.mark.parametrize("error", [TypeError("a bug"), KeyboardInterrupt()])
def test_a_bug_is_not_swallowed_and_leaves_no_half_run(
    error: BaseException, carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, error)
    with pytest.raises(type(error)):
        carry()
    assert list(folder.runs.iterdir()) == []


def test_what_was_applied_and_disagrees_fails_the_run(carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    original = fake.Applied
    monkeypatch.setattr(fake, "Applied", lambda *arguments: replace(original(*arguments), found=0.5))
    ending, _ = carry(only=["testbed=a"])
    assert ending.failed == 4
    run = next(iter(records(folder).values()))
    assert run["failed_phase"] == "configure"
    assert run["reason"].startswith("client: ratio should be 1.0 but `the driver itself` shows 0.5")
    applied = json.loads((folder.runs / run["id"] / "applied.json").read_text())
    assert {item["found"] for item in applied} == {0.5}


def test_a_testbed_that_does_not_come_up(carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def up(*_: object) -> Bed:
        raise HostError("no namespaces")

    monkeypatch.setattr(fake.Fake, "up", up)
    assert carry()[0].failed == 8
    assert {(run["failed_phase"], run["reason"]) for run in records(folder).values()} == {("up", "no namespaces")}


@pytest.mark.parametrize(
    ("only", "count"),
    [
        ([], 8),
        (["testbed=a"], 4),
        (["testbed=a", "testbed=b"], 8),
        (["testbed=a", "workload.spread=0.01"], 2),
        (["testbed=c"], 0),
        (["nothing=a"], 0),
        (["nothing=None"], 0),
        (["zzz"], 0),
    ],
)
def test_the_runs_that_are_meant(only: list[str], count: int) -> None:
    runs = design.runs(load(STUDY.replace("spread:", "workload.spread:"), "loop.yaml", catalogue()))
    found = chosen(runs, only)
    assert len(found) == count
    assert found == [run for run in runs if run in found], "in the study's order"


def test_runs_by_their_ids() -> None:
    runs = design.runs(load(STUDY.replace("spread:", "workload.spread:"), "loop.yaml", catalogue()))
    assert chosen(runs, [runs[3].id]) == [runs[3]]
    assert runs[3] in chosen(runs, [runs[3].id[:1]])
    assert set(map(id, chosen(runs, [runs[3].id, "testbed=a"]))) == {
        id(run) for run in runs if run is runs[3] or run.levels["testbed"] == "a"
    }


def test_levels_are_named_as_a_study_file_writes_them() -> None:
    text = """
study: levels
testbeds: {a: {driver: container}}
workload: {kind: http, duration: 1s}
instruments: []
factors: {testbed: [a], keep_alive: [true, false], offload: [null, on]}
replicates: 1
"""
    runs = design.runs(load(text, "levels.yaml", catalogue()))
    assert [run.levels["keep_alive"] for run in chosen(runs, ["keep_alive=true"])] == [True, True]
    assert [run.levels["offload"] for run in chosen(runs, ["offload=null"])] == [None, None]


def test_clients_that_start_apart_are_a_caution_with_the_share_that_is_common(
    carry: Carry, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of half a second each, the last 0.1 s of the first client is common when the second starts 0.4 s after it."""
    text = STUDY.replace("[a, b]", "[a]").replace("[0.01, 0.02]", "[0.01]").replace("replicates: 2", "replicates: 1")
    text = text.replace("{kind: planted}", "{kind: planted, seconds: 0.5}") + "topology: {pairs: 2}\n"
    release = InProcessProgram.release
    late_s = {"client1": 0.0, "client2": 0.4}
    monkeypatch.setattr(InProcessProgram, "release", lambda program, at_s: release(program, at_s + late_s[program.host]))
    carry(text)
    [record] = records(folder).values()
    assert record["start_skew_s"] == pytest.approx(0.4)
    assert [(each["host"], each["start_s"], each["end_s"]) for each in record["clients"]] == [
        ("client1", 0.0, 0.5),
        ("client2", 0.4, 0.9),
    ]
    [caution] = [each for each in record["cautions"] if each["kind"] == "skewed_start"]
    assert caution["detail"] == "400 ms between the first and the last client; all ran together for 20.0 % of the clients' time"
