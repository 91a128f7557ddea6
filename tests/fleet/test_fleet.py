"""Studies on three machines: every run once, whole blocks on each, whatever dies on the way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from benchmarks.machines import Fleet, events, made, meanwhile, wait_until

from plugin_packages import forget, unpacked
from twinbed.cli.main import run as main
from twinbed.image import build
from twinbed.model.image import Added
from twinbed.results.folder import Folder

pytestmark = pytest.mark.privileged

FAKE = """
study: spread
testbeds:
  a: {driver: fake, seed: 1}
  b: {driver: fake, seed: 2, ratio: 1.5}
workload: {kind: planted, seconds: SECONDS}
factors: {testbed: [a, b]}
replicates: 8
order: randomized-blocks
seed: 3
"""


def written(folder: Path, seconds: str = "0s", text: str = FAKE) -> str:
    study = folder / "study.yaml"
    study.write_text(text.replace("SECONDS", seconds))
    return str(study)


def run(study: str, results: Path, fleet: Fleet) -> int:
    return main(["run", study, "-o", str(results), "--on", fleet.address, "--no-report", "-q"])


def machines_of_blocks(results: Path) -> dict[int, set[str]]:
    """Of the runs that are there; each of those planned is there once, complete."""
    folder = Folder(results)
    planned = json.loads((results / "study.json").read_text())["runs"]
    assert {path.name for path in folder.runs.iterdir()} == {each["id"] for each in planned}
    machines: dict[int, set[str]] = defaultdict(set)
    for each in planned:
        record = folder.record(each["id"])
        assert record is not None and record.status == "complete"
        machines[record.block].add(record.machine)
    return machines


def values(results: Path) -> set[tuple[object, ...]]:
    import twinbed

    table = twinbed.open(results).table("metrics")
    return set(zip(*(table[name].to_pylist() for name in ("run", "metric", "host", "value")), strict=True))


def test_every_run_is_made_once_and_says_what_it_would_say_here(fleet: Fleet, tmp_path: Path) -> None:
    study, results = written(tmp_path), tmp_path / "results"
    assert run(study, results, fleet) == 0
    blocks = machines_of_blocks(results)
    assert len(blocks) == 8 and all(len(machines) == 1 for machines in blocks.values())
    assert sorted(made(results)) == sorted(path.name for path in (results / "runs").iterdir())
    assert main(["run", study, "-o", str(tmp_path / "here"), "--no-report", "-q"]) == 0
    assert values(results) == values(tmp_path / "here")
    kept = json.loads((results / "fleet.json").read_text())
    assert set(kept["machines"]) <= {"m1", "m2", "m3"} and all(about["kernel"] for about in kept["machines"].values())
    # Nothing stays on the machines.
    assert not [path for name in kept["machines"] for path in (fleet.folder / f"cache-{name}/fleet").glob("*/runs/*")]


def test_less_is_kept_of_what_machines_made(fleet: Fleet, tmp_path: Path) -> None:
    """And all is said of it that is said where everything is kept."""
    study, results = written(tmp_path, text=f"{FAKE}keep: tables\n"), tmp_path / "results"
    assert run(study, results, fleet) == 0
    machines_of_blocks(results)
    assert not list((results / "runs").glob("*/artifacts/*/planted.json"))
    assert len(list((results / "runs").glob("*/kept.json"))) == 16
    assert main(["run", written(tmp_path), "-o", str(tmp_path / "here"), "--no-report", "-q"]) == 0
    assert values(results) == values(tmp_path / "here")


def test_containers_and_a_machine_that_dies_among_them(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.fleet.controller.AWAY_S", 0.5)
    text = FAKE.replace("fake, seed: 1", "container").replace("fake, seed: 2, ratio: 1.5", "container")
    text = text.replace("planted, seconds: SECONDS", "http, duration: 1s, threads: 1").replace("replicates: 8", "replicates: 4")
    study, results = written(tmp_path, text=text), tmp_path / "results"
    with meanwhile(lambda: bool(made(results, "m2")), lambda: fleet.kill("m2")):
        assert run(study, results, fleet) == 0
    assert all(len(machines) == 1 for machines in machines_of_blocks(results).values())
    (gone,) = (each for each in events(results) if "left" in each)
    assert (gone["machine"], gone["left"]) == ("m2", "its worker is gone")


def test_machines_make_runs_with_the_software_that_a_workload_adds(fleet: Fleet, tmp_path: Path) -> None:
    added = Added(("redis-server", "redis-tools"))
    image = build(added=added)
    workload = {
        "kind": "command",
        "packages": list(added.packages),
        "server": {"run": ["redis-server", "--port", "6379", "--protected-mode", "no"], "ready": {"listening": 6379}},
        "client": {"run": ["redis-cli", "-h", "{server}", "INCR", "key"]},
        "metrics": {"answers": {"regex": "^(1)$"}},
    }
    text = f"study: spread\ntestbeds: {{a: {{driver: container}}}}\nworkload: {json.dumps(workload)}\nreplicates: 2\n"
    study, results = written(tmp_path, text=text), tmp_path / "results"
    assert run(study, results, fleet) == 0
    passports = [json.loads(path.read_text()) for path in (results / "runs").glob("*/passport.json")]
    assert [passport["image"]["layer"] for passport in passports] == [image.layer] * 2


def test_a_block_of_a_machine_that_is_gone_is_begun_again_whole(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinbed.fleet.controller.AWAY_S", 0.5)
    # A second and a half for whoever kills it to come in time, before its second run of a block is over.
    text = FAKE.replace("replicates: 8", "replicates: 4")
    study, results = written(tmp_path, "1.5s", text), tmp_path / "results"
    with meanwhile(lambda: len(made(results, "m1")) % 2 == 1, lambda: fleet.kill("m1")):
        assert run(study, results, fleet) == 0
    blocks = machines_of_blocks(results)
    assert all(len(machines) == 1 for machines in blocks.values())
    aside = [each["run"] for each in events(results) if "set aside" in each]
    assert len(aside) == 1 and (results / "failed" / f"{aside[0]}-1").is_dir()
    assert made(results).count(str(aside[0])) == 2


def test_workers_without_a_lab_are_no_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("twinbed.fleet.controller.ANSWER_S", 1.0)
    monkeypatch.setattr("twinbed.fleet.controller.AWAY_S", 0.5)
    one = Fleet(tmp_path)
    try:
        one.scheduler()
        one.machine("m1", lab=False, image=False)
        assert run(written(tmp_path), tmp_path / "results", one) == 3
    finally:
        one.end()
    said = capsys.readouterr().err
    assert "its worker offers no lab" in said and "--resources lab=1" in said
    assert not list((tmp_path / "results/runs").iterdir())


SLOWER = """
import json
import socket
import time
from pathlib import Path
from twinbed.testbeds.fake import FakeHost

WAITED_FOR = {"m1": 12, "m2": 12, "m3": 12, "m4": 6}
\"\"\"Machine -> its runs that the others wait for: m4 makes no more where it is left out as soon as it is slow.\"\"\"


def made(machine):
    file = Path(FOLDER, f"made-{machine}")
    return file.stat().st_size if file.exists() else 0


def slower(respond):
    def slow(self, arguments):
        me = socket.gethostname()
        mine = made(me)
        others = ("m1", "m2", "m3") if me == "m4" else ("m4",)
        while any(made(other) < min(mine - (me == "m4"), WAITED_FOR[other]) for other in others):
            time.sleep(0.01)
        answer = json.loads(respond(self, arguments))
        answer["requests_per_second"] *= 0.6 if me == "m4" and mine >= 4 else 1.0
        with Path(FOLDER, f"made-{me}").open("a") as file:
            file.write(".")
        return json.dumps(answer).encode()

    return slow


if FakeHost._respond.__name__ != "slow":  # a worker loads it more than once
    FakeHost._respond = slower(FakeHost._respond)
"""


def test_a_machine_that_drifts_away_from_its_peers_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It makes four runs as the others do, and all later ones at 60 % of their speed. All wait for each other until it has made
    some blocks so: it is not a matter of which machine is the fastest. Of three peers the noise decides, so there is little."""
    monkeypatch.setattr("twinbed.fleet.controller.AWAY_S", 0.5)
    (tmp_path / "slower.py").write_text(f"FOLDER = {str(tmp_path)!r}\n{SLOWER}")
    one = Fleet(tmp_path)
    text = FAKE.replace("replicates: 8", "replicates: 28").replace("{kind: planted,", "{kind: planted, spread: 0.001,")
    study, results = written(tmp_path, "0.1s", text), tmp_path / "results"
    try:
        one.scheduler()
        for name in ("m1", "m2", "m3", "m4"):
            one.machine(name, image=False, preload=tmp_path / "slower.py")
        one.wait_for(4)
        assert run(study, results, one) == 0
    finally:
        one.end()
    blocks = machines_of_blocks(results)
    assert len(blocks) == 28 and all(len(machines) == 1 for machines in blocks.values())
    machines = json.loads((results / "fleet.json").read_text())["machines"]
    assert [name for name, about in machines.items() if "left out" in about] == ["m4"]
    assert "it drifted away from its peers: in its last 3 blocks a is" in machines["m4"]["left out"]
    capsys.readouterr()
    main(["compare", str(results)])
    assert "A machine of the fleet was left out after it had made runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("order: randomized-blocks", "order: random", "machines run whole blocks"),
        ("driver: fake, seed: 1", "driver: remote, hosts: {client: root@c, server: root@s}", "cannot share these hosts"),
    ],
)
def test_a_study_that_is_none_for_a_fleet_is_refused(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    assert run(written(tmp_path, text=FAKE.replace(old, new)), tmp_path / "results", fleet) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("spread", "ended"), [(0.002, "decided"), (2.0, "most")])
def test_a_study_ends_as_soon_as_it_is_decided(fleet: Fleet, tmp_path: Path, spread: float, ended: str) -> None:
    """Half as fast again is seen at the first look, where runs are alike; where they differ sevenfold it is not decided. Both
    are so whichever machines make which blocks."""
    text = FAKE.replace("replicates: 8", "replicates: {least: 4, most: 8}")
    text = text.replace("kind: planted", f"kind: planted, spread: {spread}")
    study, results = written(tmp_path, text=text), tmp_path / "results"
    assert run(study, results, fleet) == 0
    looks = json.loads((results / "looks.json").read_text())["looks"]
    assert looks[-1]["ended"] == ended
    blocks = machines_of_blocks(results)
    assert sorted(blocks) == list(range(4 if ended == "decided" else 8))
    assert all(len(machines) == 1 for machines in blocks.values())
    # The same command finds nothing to do.
    before = len(made(results))
    assert run(study, results, fleet) == 0
    assert len(made(results)) == before


def test_ctrl_c_ends_the_command_and_leaves_machines_free(fleet: Fleet, tmp_path: Path) -> None:
    """Runs in flight are given up, so that the next command has the machines at once. A run may be there of which the command
    was kept from saying so."""
    study, results = written(tmp_path, "2s", FAKE.replace("replicates: 8", "replicates: 12")), tmp_path / "results"
    argv = [sys.executable, "-m", "twinbed.cli.main", "run", study, "-o", str(results), "--on", fleet.address, "--no-report"]
    command = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: bool(made(results)))
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=60)
    assert command.returncode == 130
    assert "stopping" in said
    there = {path.name for path in (results / "runs").iterdir()}
    assert 0 < len(there) < 24 and set(made(results)) <= there
    unsaid = there - set(made(results))
    assert len(unsaid) <= 1
    assert run(study, results, fleet) == 0
    assert all(len(machines) == 1 for machines in machines_of_blocks(results).values())
    assert sorted([*made(results), *unsaid]) == sorted(path.name for path in (results / "runs").iterdir())


def test_a_scheduler_that_is_lost_ends_the_command_and_the_next_one_goes_on(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One machine is enough to go on."""
    study, results = written(tmp_path, "0.5s"), tmp_path / "results"
    with meanwhile(lambda: len(made(results)) >= 3, lambda: fleet.kill("scheduler")):
        assert run(study, results, fleet) == 1
    assert f"the scheduler {fleet.address} was lost" in capsys.readouterr().err
    before = made(results)
    fleet.end()
    fleet.scheduler()
    fleet.machine("m1")
    fleet.wait_for(1)
    assert run(study, results, fleet) == 0
    assert all(len(machines) == 1 for machines in machines_of_blocks(results).values())
    assert set(before) <= {path.name for path in (results / "runs").iterdir()}


SONG = """
from twinbed.workloads.planted import Planted, PlantedParams

class SongParams(PlantedParams):
    pass

class Song(Planted):
    name, params = "song", SongParams

workload = Song()
"""


def test_machines_without_a_package_are_left_out_before_they_run(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("twinbed.fleet.controller.ANSWER_S", 1.0)
    unpacked(
        monkeypatch, tmp_path, "twinbed-made", "[twinbed.workloads]\nsong = twinbed_made:workload", {"twinbed_made.py": SONG}
    )
    study, results = written(tmp_path, text=FAKE.replace("kind: planted", "kind: song")), tmp_path / "results"
    try:
        assert run(study, results, fleet) == 3
    finally:
        forget()
    text = capsys.readouterr().err
    assert text.count("it lacks the workload song of twinbed-made==1.0") == 3
    assert not list((results / "runs").glob("*"))
