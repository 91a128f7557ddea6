"""The driver ``model`` through the workloads that it simulates: their artifacts, what is drawn, and what it refuses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.design.time import run_expense
from twinbed.hosts.error import HostError, ProgramFailed
from twinbed.lab import own_programs, preflight
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.model.caution import Kind
from twinbed.model.image import NO_IMAGE
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.testbeds.model.driver import model
from twinbed.testbeds.model.settings import ModelSettings


def site(folder: Path, *, seed: int = 0, run: str = "r") -> Site:
    return Site(run, Path("/nowhere"), NO_IMAGE, folder, (0,), seed)


def a_run(workload: str, topology: str = "", testbed: str = "") -> Run:
    text = f"study: s\ntestbeds: {{bed: {{driver: model{testbed}}}}}\nworkload: {{{workload}}}\n"
    text += f"topology: {{{topology}}}\ninstruments: []\nreplicates: 1\n"
    return design.runs(load(text, "study.yaml", catalogue()))[0]


def values(
    folder: Path, workload: str, topology: str = "", testbed: str = "", **where: Any
) -> dict[tuple[str, str], float | None]:
    """(metric, host) -> value, of a whole run read by the workload's own reader."""
    run = a_run(workload, topology, testbed)
    execute(run, PLUGINS, site(folder, **where), Outcome(), lambda _: None)
    extracted = PLUGINS.workloads[run.workload.kind].parse(run.workload.params, folder)
    return {(each.metric, each.host): each.value for each in extracted.values}


def digest(folder: Path) -> Mapping[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_abs_report_says_what_its_requests_say(tmp_path: Path) -> None:
    """Report, percentiles and rows are of the same requests, each in its own rounding."""
    found = values(tmp_path, "kind: http, duration: 2s, payload: 200kB, threads: 3", "link: {rate: 50mbit, delay: 3ms}")
    rows = [line.split("\t") for line in (tmp_path / "client/ab.tsv").read_text().splitlines()[1:]]
    total_s = [int(row[4]) / 1000 for row in rows]
    assert found["requests", ""] == len(rows) > 30
    assert found["failed_requests", ""] == 0
    assert found["document_bytes", ""] == 200_000
    assert found["total_time_max", ""] == pytest.approx(max(total_s), abs=5e-4)
    assert found["total_time_p50", ""] == pytest.approx(sorted(total_s)[len(total_s) // 2], abs=1e-3)
    assert found["total_time_p100", ""] == pytest.approx(max(total_s), abs=1e-3)
    assert found["time_taken", ""] is not None
    assert found["requests_per_second", ""] == pytest.approx(len(rows) / found["time_taken", ""], abs=0.01)
    # The handshake: a SYN and its answer of 74 bytes, 3 ms each way, behind what is on its way to the others.
    assert (found["connect_time_min", ""] or 0) >= 0.006
    assert found["goodput", ""] == pytest.approx(50e6 * 1448 / 1514, rel=0.02)


def test_a_kept_connection_is_made_once(tmp_path: Path) -> None:
    found = values(tmp_path, "kind: http, duration: 1s, keep_alive: on", "link: {delay: 10ms}")
    # A round trip for each request, and one more for the connection of the first.
    assert found["requests", ""] == pytest.approx(1 / 0.02 - 1, abs=1)
    assert found["connect_time_max", ""] == pytest.approx(0.02, abs=1e-3)
    assert found["connect_time_median", ""] == 0


def test_a_document_that_the_server_makes_has_its_size(tmp_path: Path) -> None:
    found = values(tmp_path, "kind: http, duration: 1s, payload: 3MiB", "link: {rate: 1gbit}")
    assert found["document_bytes", ""] == 3 * 2**20


def test_several_pairs_are_alike_and_apart(tmp_path: Path) -> None:
    found = values(tmp_path, "kind: http, duration: 1s, payload: 100kB", "pairs: 3, link: {rate: 100mbit}")
    rates = {host: value for (metric, host), value in found.items() if metric == "requests_per_second"}
    assert set(rates) == {"", "client1", "client2", "client3"}
    assert rates["client1"] == rates["client2"] == rates["client3"]
    assert rates[""] == pytest.approx(3 * (rates["client1"] or 0))


def test_omitted_seconds_are_marked(tmp_path: Path) -> None:
    found = values(tmp_path, "kind: iperf3, duration: 2s, omit: 1s, streams: 2", "link: {rate: 100mbit, burst: 0}")
    assert found["time_taken", ""] == 2
    # To a segment of 64 KiB more or less of either stream.
    assert found["received_bytes", ""] == pytest.approx(2 * 1e8 / 8 * 1448 / 1514, abs=2 * 65_536)
    intervals = json.loads((tmp_path / "client/iperf3.json").read_text())["intervals"]
    assert [each["sum"]["omitted"] for each in intervals] == [True, False, False]


def test_udp_counts_what_is_lost(tmp_path: Path) -> None:
    workload = "kind: iperf3, protocol: udp, rate: 20mbit, payload: 1470B, duration: 3s, omit: 2s"
    found = values(tmp_path, workload, "link: {rate: 10mbit, burst: 0}")
    # 1512 bytes each on the link.
    assert found["loss", ""] == pytest.approx(1 - 10 / (20 * 1512 / 1470), abs=0.005)
    assert found["sent_datagrams", ""] == pytest.approx(3 * 20e6 / 8 / 1470, abs=20)
    assert found["out_of_order_datagrams", ""] == 0


# What is drawn

LOSSY = ("kind: http, duration: 2s, payload: 50kB", "link: {delay: 5ms, jitter: 1ms, loss: 1%}")


def test_without_noise_a_run_is_the_same_whatever_its_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        values(tmp_path / name, "kind: http, duration: 1s", "link: {rate: 10mbit}", seed=seed)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


@pytest.mark.parametrize(("workload", "topology", "testbed"), [(*LOSSY, ""), ("kind: http, duration: 1s", "", ", noise: 0.1")])
def test_what_is_drawn_follows_from_the_studys_seed_and_the_run(
    tmp_path: Path, workload: str, topology: str, testbed: str
) -> None:
    for name, where in {"a": {}, "again": {}, "seed": {"seed": 1}, "run": {"run": "s"}}.items():
        values(tmp_path / name, workload, topology, testbed, **where)
    digests = {name: digest(tmp_path / name)["client/ab.csv"] for name in ("a", "again", "seed", "run")}
    assert digests["a"] == digests["again"]
    assert len(set(digests.values())) == 3


def test_noise_is_a_factor_on_what_cpus_take_and_on_nothing_else(tmp_path: Path) -> None:
    """On a line that limits, a run with noise is the run without."""
    workload, topology = "kind: http, duration: 2s, payload: 1MB, threads: 4", "link: {rate: 10mbit}"
    plain = values(tmp_path / "plain", workload, topology)["goodput", ""]
    noisy = values(tmp_path / "noisy", workload, topology, ", noise: 0.3")["goodput", ""]
    assert noisy == pytest.approx(plain, rel=0.002)
    fast = [values(tmp_path / str(seed), "kind: http, duration: 1s", "", ", noise: 0.3", seed=seed) for seed in range(3)]
    assert len({each["requests_per_second", ""] for each in fast}) == 3


# What it says of itself


def test_a_run_says_that_nothing_was_measured_and_with_which_parameters(tmp_path: Path) -> None:
    outcome = Outcome()
    run = a_run("kind: http, duration: 1s", "link: {rate: 10mbit, queue: 50}", ", wake: 5us, initial_window: 3")
    execute(run, PLUGINS, site(tmp_path), outcome, lambda _: None)
    assert [each.kind for each in outcome.cautions] == [Kind.MODELLED]
    assert outcome.passport[MACHINE] == {"kind": "model: no machine"}
    assert outcome.passport["client"]["kind"] == "model"
    assert outcome.passport["client"]["wake"] == 5e-6
    assert set(ModelSettings.model_fields) <= set(outcome.passport["server"])
    found = {(item.subject, item.setting): item.found for item in outcome.applied}
    assert found["server", "initial_window"] == 3
    assert found["client", "rate"] == 10**7
    assert found["client", "queue"] == 50
    assert found["client", "mss"] == 1448
    assert found["client", "window"] == 3 * 2**20
    assert all(item.agrees for item in outcome.applied)


def test_the_plan_counts_with_the_time_of_the_simulation() -> None:
    """A run of an hour is simulated in seconds; a container's takes the hour."""
    text = "study: s\ntestbeds: {model: {driver: model}, container: {driver: container}}\n"
    study = load(text + "workload: {kind: http, duration: 1h}\ninstruments: []\nreplicates: 1\n", "s.yaml", catalogue())
    seconds = {run.testbed_name: run_expense(run).seconds for run in design.runs(study)}
    assert seconds["container"] > 3600
    assert seconds["model"] < 60


# What it refuses


@pytest.mark.parametrize(
    ("workload", "what"),
    [("kind: http, tool: wrk", "tool: wrk"), ("kind: http, https: on", "https"), ("kind: planted", "kind: planted")],
)
def test_workloads_that_are_not_modelled_are_refused_before_anything_runs(workload: str, what: str) -> None:
    (check,) = own_programs.checks([a_run(workload)], PLUGINS)
    assert not check.works
    assert check.required
    assert check.what == f"model: {what}"
    assert check.mend


def test_instruments_and_links_that_would_be_checked_are_no_reason_to_refuse() -> None:
    run = a_run("kind: http", "link: {rate: 1mbit, delay: 1ms}")
    assert own_programs.checks([run], PLUGINS) == []


@pytest.mark.parametrize("topology", [{"kind": "star"}, {"routers": 2}, {"trunk": "vxlan"}, {"bystanders": 1}])
def test_networks_that_are_not_modelled_are_refused(tmp_path: Path, topology: dict[str, Any]) -> None:
    """Before anything runs, and by the driver itself."""
    name, value = next(iter(topology.items()))
    (check,) = preflight.network([(Topology(**topology), model, ModelSettings())])
    assert (check.works, check.required, check.what) == (False, True, f"model: {name}: {value}")
    with (
        pytest.raises(HostError, match=f"{name}: {value}: not modelled"),
        model.up(ModelSettings(), Topology(**topology), site(tmp_path)),
    ):
        pass


def test_options_that_are_not_modelled_are_refused(tmp_path: Path) -> None:
    with model.up(ModelSettings(), Topology(), site(tmp_path)) as bed:
        client, server = bed.hosts["client"], bed.hosts["server"]
        address = bed.addresses["server"]
        with pytest.raises(HostError, match="client: ab -X is not modelled"):
            client.run(["ab", "-X", "proxy", f"http://{address}/payload"])
        with pytest.raises(HostError, match="nothing listens on TCP port 80"):
            client.run(["ab", "-n", "1", f"http://{address}/payload"])
        server.start(["nginx"])
        with pytest.raises(HostError, match="nginx has no /payload"):
            client.run(["ab", "-n", "1", f"http://{address}/payload"])
        with pytest.raises(HostError, match=r"no route to 192\.0\.2\.1"):
            client.run(["ab", "-n", "1", "http://192.0.2.1/payload"])
        with pytest.raises(HostError, match="background load is not modelled"):
            server.start(["iperf3", "-s", "-p", "2121"])
        with pytest.raises(HostError, match="a model host has no such program"):
            client.run(["wrk"])


def test_ab_gives_up_where_nothing_comes_back(tmp_path: Path) -> None:
    """As ab does: no result, and its words."""
    with model.up(ModelSettings(), Topology(link=Link(loss=0.999, queue=1)), site(tmp_path)) as bed:
        bed.hosts["server"].start(["nginx"])
        bed.hosts["server"].write("/run/www/payload", b"x" * 100_000)
        with pytest.raises(ProgramFailed, match="timeout specified has expired"):
            bed.hosts["client"].run(["ab", "-t", "1", "-n", "5", f"http://{bed.addresses['server']}/payload"])


def test_a_refused_network_fails_the_run_in_its_first_phase(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="up: kind: star: not modelled"):
        execute(a_run("kind: http", "kind: star"), PLUGINS, site(tmp_path), Outcome(), lambda _: None)


@pytest.mark.parametrize(
    "settings", [{"initial_window": 0}, {"wake": -1}, {"noise": -0.1}, {"receive_buffer": "1kB"}, {"colour": "red"}]
)
def test_settings_that_mean_nothing(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        ModelSettings(**settings)
