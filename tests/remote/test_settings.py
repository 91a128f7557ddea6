"""What a study file may say of hosts over SSH, and what is said to a file that is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from twinbed.hosts.error import HostError
from twinbed.model.caution import Kind
from twinbed.model.topology import Topology
from twinbed.registry import catalogue
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.testbeds.remote.driver import _addresses, _as_found
from twinbed.testbeds.remote.settings import RemoteSettings

STUDY = """
study: remote
testbeds:
  bed:
    driver: remote
    hosts: {hosts}
workload: {{kind: http}}
"""


def problems(hosts: str) -> str:
    with pytest.raises(StudyError) as caught:
        load(STUDY.format(hosts=hosts), "study.yaml", catalogue())
    return caught.value.message


def test_a_host_is_a_text_or_a_mapping() -> None:
    both = "{client: root@c1, server: {ssh: s1, nic: eth1, port: 2222, config: ~/lab, address: 10.0.0.2/24}}"
    study = load(STUDY.format(hosts=both), "study.yaml", catalogue())
    params = study.cells[0].testbed.params
    assert params.hosts["client"].reached("client").options == []
    server = params.hosts["server"]
    assert server.reached("server").destination == "s1"
    assert server.reached("server").options[2:] == ["-p", "2222"]
    assert str(server.address) == "10.0.0.2/24"
    assert study.reference_reason == "the first testbed of physical hosts"


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ("{client: {shs: c1}, server: s1}", "did you mean 'ssh'?"),
        ("{client: {ssh: c1, port: 70000}, server: s1}", "testbeds.bed.hosts.client.port"),
        ("{client: {ssh: c1, address: 10.0.0}, server: s1}", "testbeds.bed.hosts.client.address"),
        ("{client: -oProxyCommand=x, server: s1}", "must be USER@HOST, HOST or a Host entry"),
        ("{client: c1, server: c1}", "client and server are the same host (c1)"),
        ("[c1, s1]", "testbeds.bed.hosts"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(hosts: str, said: str) -> None:
    assert said in problems(hosts)


def test_hosts_are_needed() -> None:
    with pytest.raises(StudyError, match=r"testbeds\.bed\.hosts: is required"):
        load("study: s\ntestbeds: {bed: {driver: remote}}\nworkload: {kind: http}\n", "study.yaml", catalogue())


def test_every_host_of_the_topology_is_named() -> None:
    params = RemoteSettings.model_validate({"hosts": {"client1": "a", "server1": "b", "clinet2": "c"}})
    with pytest.raises(
        Exception, match=r"no host for client2, server2: its hosts are client1, server1, clinet2, and 2 pairs need"
    ):
        _addresses(params, Topology(pairs=2))


def test_a_pair_is_on_one_network() -> None:
    hosts = {"client": {"ssh": "a", "address": "10.1.0.1/24"}, "server": {"ssh": "b", "address": "10.2.0.1/24"}}
    with pytest.raises(Exception, match="set two addresses in one network"):
        _addresses(RemoteSettings.model_validate({"hosts": hosts}), Topology())


def test_the_manual_s_study_is_one() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "remote.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL)
    study = load(example, "remote.md", catalogue())
    assert study.reference == "physical"


TWO = RemoteSettings(hosts={"client": "root@c1", "server": "root@s1"})  # type: ignore[dict-item]


@pytest.mark.parametrize("asked", [{"routers": 2}, {"kind": "star"}])
def test_a_network_that_would_have_to_be_made_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="twinbed makes nothing between hosts over SSH"):
        _addresses(TWO, Topology(**asked))


def test_hosts_beside_the_workloads_are_refused() -> None:
    with pytest.raises(HostError, match="bystanders: 2: all hosts over SSH run the workload"):
        _addresses(TWO, Topology(bystanders=2))


def test_hosts_are_where_they_are() -> None:
    with pytest.raises(HostError, match=r"client_machines: 2: twinbed cannot move hosts over SSH"):
        _addresses(TWO, Topology(pairs=2, trunk="plain", client_machines=2))


def test_a_network_that_is_as_it_was_found_is_cautioned() -> None:
    assert _as_found(Topology()) == []
    (caution,) = _as_found(Topology(trunk="vlan", vlan=100, switch="openvswitch"))
    assert (caution.kind, caution.detail) == (Kind.NOT_SET, "trunk: vlan, vlan: 100")
    assert set(_addresses(TWO, Topology(trunk="vlan"))) == {"client", "server"}
