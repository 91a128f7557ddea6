"""The disk of a machine fills up during a run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.remote.conftest import differences
from tests.remote.machines import FOLDER, machines, state
from tests.remote.studies import records, study


def test_the_disk_of_a_host_is_full(tmp_path: Path) -> None:
    (tmp_path / "machines").mkdir()
    with machines(tmp_path / "machines", disk="3m") as made:
        before = {name: state(space) for name, space in made.hosts.items()}
        # Captures of as many requests take more than the disk has, however long that many last.
        argv = study(tmp_path, made, {"duration": "60s", "max_requests": 8000}, replicates=2)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=200)
        assert done.returncode == 1, done.stderr
        first, second = records(tmp_path)
        for record in (first, second):
            assert record["status"] == "failed"
            assert "No space left on device" in record["reason"]
        assert differences(before, made) == {}
        assert "leases" not in made.hosts["client"].run("find", f"{FOLDER}/leases", "-mindepth", "1")
