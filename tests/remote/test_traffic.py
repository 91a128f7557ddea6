"""Background traffic between hosts over SSH, whose links are captured on the hosts themselves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.remote.machines import Machines
from tests.remote.studies import records, study
from twinbed.cli.extraction import extracted


def test_traffic_shares_the_hosts_own_link(two: Machines, tmp_path: Path) -> None:
    """With the hosts' own programs; those of the image run in containers elsewhere."""
    argv = study(tmp_path, two, {"duration": "1s", "max_requests": 50}, image="none")
    file = tmp_path / "study.yaml"
    load = {"kind": "traffic", "http": 1, "tcp": 1, "udp": "1mbit"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "background": load}))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    (record,) = records(tmp_path)
    assert "background_ended" not in {caution["kind"] for caution in record["cautions"]}
    found = {
        (row["metric"], row["host"]): row["value"]
        for row in extracted(tmp_path / "results").table("metrics").to_pylist()
        if not row["direction"]
    }
    assert found["background_http_rate", "client"] > 0
    assert found["background_tcp_goodput", "server"] > 0
    assert found["background_udp_goodput", "server"] > 0
    assert found["connections", ""] == pytest.approx(found["requests", ""], abs=1), "ab's, and none of the load's"
