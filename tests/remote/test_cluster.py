"""`--on FILE` with a cluster of kind ssh: a scheduler and two workers that dask starts by a real sshd, on loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote.machines import until
from twinbed.executor import NoExecutor, opened
from twinbed.executor.cluster import Cluster
from twinbed.executor.packed import packed, unpacked

SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PidFile none
"""
CLUSTER = """
cluster:
  kind: ssh
  hosts: [127.0.0.1, 127.0.0.1, 127.0.0.1]
  connect_options: {{port: {port}, username: {user}, known_hosts: {folder}/known, client_keys: [{folder}/user]}}
  scheduler_options: {{host: 127.0.0.1, dashboard: false}}
  worker_options: {{nthreads: 1, host: 127.0.0.1, dashboard: false, local_directory: {folder}}}
  remote_python: {python}
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """Describes the cluster, while its sshd runs."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "sshd").write_text(SSHD.format(port=port, folder=tmp_path))
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    assert program
    with (tmp_path / "log").open("wb") as log:
        daemon = subprocess.Popen([program, "-D", "-e", "-f", str(tmp_path / "sshd")], stdin=subprocess.DEVNULL, stderr=log)
    try:
        until("sshd listens", lambda: "listening" in (tmp_path / "log").read_text().lower())
        path = tmp_path / "cluster.yaml"
        path.write_text(CLUSTER.format(port=port, folder=tmp_path, user=getpass.getuser(), python=sys.executable))
        yield path
    finally:
        daemon.kill()
        daemon.wait()


def test_its_workers_do_the_tasks(file: Path) -> None:
    with opened(str(file)) as executor:
        until("both workers are there", lambda: executor.workers == 2)
        files = [{"a": bytes([number])} for number in range(20)]
        assert list(executor.map(unpacked, map(packed, files))) == files
        assert isinstance(executor, Cluster)
        sessions: dict[str, int] = executor.client.run(os.getsid, 0)
        assert len(sessions) == 2 and os.getsid(0) not in sessions.values()


def test_a_host_that_is_not_known_is_said(file: Path) -> None:
    (file.parent / "known").write_text("")
    with pytest.raises(NoExecutor, match=r"cluster\.yaml: SSHCluster: .*[Hh]ost key") as caught, opened(str(file)):
        pass
    assert "distributed.SSHCluster" in caught.value.advice
