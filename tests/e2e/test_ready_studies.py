"""The ready studies with servers that people run, really: a short run of each, its values held to what its program wrote.

Two are run here, on containers and on guests; `make soak` runs them all, since each adds packages to the image."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.command import twinbed

from twinbed.cli.studyfile import read_study
from twinbed.study import loading

pytestmark = pytest.mark.privileged


def word_after(word: str, text: str) -> float:
    """Return the number behind a word of a text."""
    words = text.split()
    return float(words[words.index(word) + 1])


def column(text: str, number: int) -> list[float]:
    return [float(line.split()[number]) for line in text.splitlines()]


def percentile(numbers: list[float]) -> float:
    return float(np.percentile(numbers, 99))


@dataclass(frozen=True)
class Case:
    """A study with settings for some seconds, and how values are found in its client's files, without twinbed."""

    settings: Mapping[str, object]
    values: Mapping[str, tuple[str, Callable[[str], float]]]
    """Metric -> the client's file, and its value in the file's text."""


CASES = {
    "redis": Case(
        {"requests": 2000},
        {
            "requests_per_second": ("client.txt", lambda text: float(text.splitlines()[-1].split('","')[1])),
            "latency_p99": ("client.txt", lambda text: float(text.splitlines()[-1].split('","')[6]) / 1e3),
        },
    ),
    "memcached": Case({"operations": 2000}, {"operations_per_second": ("client.txt", lambda text: word_after("TPS:", text))}),
    "dns": Case(
        {"duration": "1s"},
        {
            "queries_per_second": ("client.txt", lambda text: word_after("second:", text)),
            "latency_p99": (
                "client.txt",
                # Lines with "T" are of queries without an answer.
                lambda text: percentile([float(line.split()[-1]) for line in text.splitlines() if line.startswith("> N")]),
            ),
        },
    ),
    "postgresql": Case(
        {"duration": "1s"},
        {
            "transactions_per_second": ("client.txt", lambda text: float(text.split("tps = ")[1].split()[0])),
            "latency_p99": ("transactions.txt", lambda text: percentile(column(text, 2)) / 1e6),
        },
    ),
    "mqtt": Case({"messages": 100}, {"delivery_time": ("deliveries.txt", lambda text: statistics.fmean(column(text, 0)))}),
    "modbus": Case(
        {"polls": 50},
        {
            "response_time": ("responses.txt", lambda text: statistics.fmean(column(text, 0))),
            "cycle_jitter": ("deviations.txt", lambda text: percentile(column(text, 0))),
        },
    ),
    "rsync": Case({"amount": "1MiB"}, {"transfer_time": ("client.txt.err", lambda text: word_after("elapsed", text))}),
    "http2": Case(
        {"requests": 500}, {"requests_per_second": ("client.txt", lambda text: float(text.split("finished in ")[1].split()[1]))}
    ),
    "video": Case({"segments": 4}, {"segment_time": ("segments.txt", lambda text: statistics.fmean(column(text, 0)))}),
    "grpc": Case({"calls": 100}, {"call_time": ("calls.txt", lambda text: statistics.fmean(column(text, 0)))}),
}
FEW = ("redis", "dns")
TRIED = tuple(CASES) if "TWINBED_SOAK_SEED" in os.environ else FEW
"""`make soak` tries all, since each adds packages to the image."""


def settings(name: str) -> list[str]:
    changes = {f"workload.settings.{setting}": value for setting, value in CASES[name].settings.items()}
    return [word for key, value in changes.items() for word in ("-s", f"{key}={value}")]


def held_to_its_files(name: str, values: Mapping[str, float], client: Path) -> None:
    for metric, (file, reading) in CASES[name].values.items():
        own = reading((client / file).read_text())
        assert own > 0
        assert values[metric] == pytest.approx(own, rel=1e-6), metric


def test_every_study_of_a_client_and_a_server_is_tried() -> None:
    """Study etcd, which has roles, is run in test_roles.py."""
    workloads = {name: read_study(Path(name)).cells[0].workload for name in loading.shipped_names()}
    assert set(CASES) == {name for name, each in workloads.items() if each.kind == "command" and not each.params.roles}


@pytest.mark.parametrize("name", TRIED)
def test_a_ready_study_runs_on_containers(name: str, tmp_path: Path, leaves_nothing: None) -> None:
    tried = twinbed("try", name, "--profile", "quick", *settings(name), "-o", tmp_path / "results", "--json")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    data = json.loads(tried.stdout)["result"]
    assert data["status"] == "complete"
    values = {each["metric"]: each["value"] for each in data["metrics"]}
    assert None not in values.values()
    (run,) = (tmp_path / "results/runs").iterdir()
    held_to_its_files(name, values, run / "artifacts/client")


@pytest.mark.parametrize("name", FEW)
def test_a_ready_study_runs_on_a_guest(name: str, tmp_path: Path, leaves_nothing: None) -> None:
    one = ("--profile", "quick", "-s", "replicates=1", "-s", "instruments=[]", "--only", "testbed=virtio", "--no-report")
    ended = twinbed("run", name, *one, *settings(name), "-o", tmp_path / "results")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = pq.read_table(tmp_path / "results/tables/metrics").to_pylist()
    values = {row["metric"]: row["value"] for row in rows if not row["host"] and not row["direction"]}
    (run,) = (tmp_path / "results/runs").iterdir()
    held_to_its_files(name, values, run / "artifacts/client")
