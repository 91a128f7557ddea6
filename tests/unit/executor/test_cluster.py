"""Tasks on dask's own scheduler and workers, in processes of their own, on the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from benchmarks.machines import wait_until
from distributed.comm.core import CommClosedError

from twinbed import _core
from twinbed.analyses.compare import judging
from twinbed.executor import Executor, Here, NoExecutor, WorkerLost, opened
from twinbed.executor.answers import program
from twinbed.executor.cluster import Cluster
from twinbed.fleet.controller import _Loop
from twinbed.model.error import TwinbedError
from twinbed.readers.flow_shares import counted
from unit.analyses.compare.test_judging import cases
from unit.executor.test_local import dies, dies_once, refuses, square


class Dask:
    """dask's scheduler and workers, as its own commands start them: this process unpickles nothing, so they are in others."""

    def __init__(self, folder: Path, workers: int, *, protocol: str = "tcp", **environment: str) -> None:
        self.folder, self.protocol = folder, protocol
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.address = f"{protocol}://127.0.0.1:{one.getsockname()[1]}"
        self.scheduler = self._start("scheduler", ["--host", self.address, "--no-dashboard"])
        wait_until(lambda: "Scheduler at:" in (folder / "scheduler.log").read_text())
        self.workers: list[subprocess.Popen[bytes]] = []
        self.dead = 0
        self.start_workers(workers)

    def start_workers(self, number: int) -> None:
        """Have so many workers alive, that the scheduler knows and no others."""
        alive = [worker for worker in self.workers if worker.poll() is None]
        self.dead += len(self.workers) - len(alive)
        where = [self.address, "--host", f"{self.protocol}://127.0.0.1", "--local-directory", str(self.folder)]
        options = [*where, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.workers = [*alive, *(self._start("worker", options) for _ in range(number - len(alive)))]
        wait_until(
            lambda: self._said("Register worker addr") == self.dead + number and self._said("Remove worker") == self.dead
        )

    def _said(self, words: str) -> int:
        return (self.folder / "scheduler.log").read_text().count(words)

    def _start(self, what: str, options: list[str]) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options]
        with (self.folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, env=self.environment)

    def kill_scheduler(self) -> None:
        self.scheduler.kill()
        self.scheduler.wait()

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (*self.workers, self.scheduler):
            one.kill()
            one.wait()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """Two, and their scheduler. A task is given up when its second worker has died."""
    with Dask(tmp_path_factory.mktemp("dask"), 2, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1") as cluster:
        yield cluster


@pytest.fixture
def executor(workers: Dask) -> Iterator[Executor]:
    """Workers that a test ended are there again."""
    workers.start_workers(2)
    with opened(workers.address) as executor:
        yield executor


def test_results_come_in_the_order_of_arguments(executor: Executor) -> None:
    assert executor.workers == 2
    assert list(executor.map(square, range(50))) == [number * number for number in range(50)]


def test_comparisons_are_judged_as_they_are_here(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "BATCH", 20_000)
    many = [*cases(40, 30), *cases(10, 30, skewed=True)]
    assert list(judging.judged(many, executor)) == list(judging.judged(many, Here()))


def test_connections_are_counted_as_they_are_here(executor: Executor) -> None:
    capture = str(Path(__file__).parents[2] / "golden" / "captures" / "http-short.pcap")
    with counted(
        [capture], {"tunnels": False, "port": 80, "host": None, "from_ns": None, "until_ns": None}, executor
    ) as shared:
        assert (_core.flows_joined(shared[0]), shared[1]) == _core.flows([capture], port=80)


def test_a_worker_that_dies_costs_its_own_task(executor: Executor, tmp_path: Path) -> None:
    marks = [tmp_path / f"{number}{'.deadly' if number == 2 else ''}" for number in range(8)]
    assert list(executor.map(dies_once, marks)) == [mark.name for mark in marks]


def test_a_task_that_ends_every_worker_is_said(executor: Executor) -> None:
    with pytest.raises(WorkerLost):
        list(executor.map(dies, [0]))


def test_what_a_task_raises_is_raised_with_all_that_it_says(executor: Executor) -> None:
    with pytest.raises(TwinbedError, match="not three") as caught:
        list(executor.map(refuses, range(10)))
    assert (caught.value.advice, caught.value.exit_code) == ("take four", 7)


def test_a_worker_with_another_program_refuses(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    other = type(program())("0.0.0", "other", "here")
    monkeypatch.setattr("twinbed.executor.cluster.program", lambda: other)
    with pytest.raises(TwinbedError, match=r"a worker has twinbed .*, this is twinbed 0.0.0 \(other\)"):
        list(executor.map(square, [1]))


def test_a_scheduler_that_is_lost_is_said(tmp_path: Path) -> None:
    with Dask(tmp_path, 1) as cluster, opened(cluster.address) as executor:
        results = executor.map(square, range(1000))
        assert next(results) == 0
        cluster.kill_scheduler()
        with pytest.raises(NoExecutor, match="was lost") as caught:
            list(results)
    assert caught.value.exit_code == 1


class _Gone:
    """A client whose scheduler was killed just now."""

    status = "running"
    deaf = False

    def nthreads(self) -> None:
        raise CommClosedError

    def result(self, timeout: float) -> None:
        raise CommClosedError


def test_a_scheduler_is_lost_before_the_clients_status_tells() -> None:
    one: Any = Cluster(_Gone(), "tcp://gone")  # type: ignore[arg-type]
    with pytest.raises(NoExecutor, match="tcp://gone was lost"):
        _ = one.workers
    with pytest.raises(NoExecutor, match="tcp://gone was lost"):
        one._answer(_Gone())
    with pytest.raises(NoExecutor, match="tcp://gone was lost"):
        _Loop(one, *[None] * 8)._look()  # type: ignore[arg-type]


def test_nobody_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.executor.cluster.ANSWER_S", 0.5)
    with pytest.raises(NoExecutor, match=r"tcp://127\.0\.0\.1:9") as caught, opened("tcp://127.0.0.1:9"):
        pass
    assert "dask scheduler" in caught.value.advice


def test_tls_is_asked_for_and_given_by_dasks_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that takes TLS alone, with certificates of an authority of the test's."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    named = ["-subj", "/CN=twinbed test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *named, "-keyout", key, "-out", cert], check=True, capture_output=True)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    sides = {f"{tls}{side}__{part}": file for side in ("SCHEDULER", "WORKER") for part, file in (("CERT", cert), ("KEY", key))}
    with Dask(tmp_path, 1, protocol="tls", **{f"{tls}CA_FILE": cert, **sides}) as cluster:
        address = cluster.address
        with pytest.raises(NoExecutor, match="TLS"), opened(address):
            pass
        tls = "distributed.comm.tls"
        settings = {f"{tls}.ca-file": cert, f"{tls}.client.cert": cert, f"{tls}.client.key": key}
        with dask.config.set(settings), opened(address) as executor:
            assert list(executor.map(square, range(5))) == [0, 1, 4, 9, 16]
        monkeypatch.setattr("twinbed.executor.cluster.ANSWER_S", 1.0)
        with dask.config.set(settings), pytest.raises(NoExecutor), opened(address.replace("tls://", "tcp://")):
            pass


def test_without_dask_the_option_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NoExecutor) as caught, opened("tcp://127.0.0.1:8786"):
        pass
    assert caught.value.advice == "pip install 'twinbed[cluster]'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster: {kind: slurm, cores: 1}", "needs dask-jobqueue"),
        ("cluster: {kind: kubernetes}", "needs dask-kubernetes"),
        ("cluster: {kind: mesos}", "unknown kind of cluster 'mesos'"),
        ("cluster: {kind: ssh, hots: [a]}", "SSHCluster"),
        ("workers: 3", "does not describe a cluster"),
        ("[", "does not describe a cluster"),
    ],
)
def test_a_file_that_describes_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(NoExecutor, match=said), opened(str(file)):
        pass


def test_nothing_of_dask_is_imported_without_it() -> None:
    import subprocess

    code = "import sys, twinbed.cli.main, twinbed.registry, twinbed.executor; sys.exit('distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
