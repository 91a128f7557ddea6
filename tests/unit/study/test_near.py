"""What people type in a study file, and the name or unit that they are told."""

from __future__ import annotations

import pytest

from twinbed import registry
from twinbed.model.near import did_you_mean, instead, nearest
from twinbed.model.units import QuantityError, parse_duration, parse_rate, parse_size
from twinbed.study.document import StudyError
from twinbed.study.loading import load


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("topology: {link: {bandwidth: 100mbit}}", ("rate",)),
        ("topology: {link: {latency: 5ms}}", ("delay",)),
        ("testbeds: {a: {driver: qemu, ram: 256MiB}}", ("memory",)),
        ("testbeds: {a: {driver: qemu, cores: 2}}", ("vcpus",)),
        ("testbeds: {a: {driver: qemu, nic: virtio}}", ("virtio-net-pci",)),
        ("testbeds: {a: {driver: qemu, memory: 256M}}", ("256MiB", "256MB")),
        ("workload: {kind: http, payload: 16KB}", ("16kB", "16KiB")),
        ("workload: {kind: http, keepalive: on}", ("keep_alive",)),
        ("factors: {bandwidth: [100mbit]}", ("topology.link.rate",)),
    ],
)
def test_what_people_type_is_told_its_name(line: str, near: tuple[str, ...]) -> None:
    rest = {"testbeds": "testbeds: {a: {driver: container}}", "workload": "workload: {kind: http}"}
    text = "\n".join(["study: x", line, *(each for key, each in rest.items() if not line.startswith(key))])
    with pytest.raises(StudyError) as caught:
        load(text, "x.yaml", registry.catalogue())
    (problem,) = caught.value.problems
    assert problem.nearest == near


@pytest.mark.parametrize(
    ("place", "typed", "near"),
    [
        *(("testbed", word, "container") for word in ("docker", "podman", "lxc", "mininet", "containerlab", "netns", "Docker")),
        *(("testbed", word, "qemu") for word in ("kvm", "vm", "libvirt", "virtual machine", "vagrant", "VirtualBox")),
        *(("testbed", word, "remote") for word in ("ssh", "physical", "bare-metal", "hardware")),
        ("testbed", "cluster", "minimega"),
        ("testbed", "ns-3", "model"),
        ("testbed", "hybrid", "mixed"),
        *(("workload", word, "http") for word in ("nginx", "apachebench", "ab", "wrk", "web", "https", "curl")),
        *(("workload", word, "iperf3") for word in ("iperf", "netperf", "tcp", "udp", "bulk")),
        *(("workload", word, "replay") for word in ("pcap", "tcpreplay")),
        *(("instruments", word, "packets") for word in ("tcpdump", "wireshark", "pcap")),
        *(("instruments", word, "syscalls") for word in ("strace", "system-calls")),
        ("instruments", "ping", "latency"),
        ("instruments", "zeek", "monitor"),
        ("background", "stress-ng", "stress"),
        ("background", "cross-traffic", "traffic"),
    ],
)
def test_what_other_tools_call_it_is_told_its_name(place: str, typed: str, near: str) -> None:
    lines = {
        "testbed": f"testbeds: {{a: {{driver: {typed}}}}}",
        "workload": f"workload: {{kind: {typed}}}",
        "instruments": f"instruments: [{typed}]",
        "background": f"background: {{kind: {typed}}}",
    }
    rest = {"testbed": "testbeds: {a: {driver: container}}", "workload": "workload: {kind: http}"}
    text = "\n".join(["study: x", lines[place], *(each for key, each in rest.items() if key != place)])
    with pytest.raises(StudyError) as caught:
        load(text, "x.yaml", registry.catalogue())
    (problem,) = caught.value.problems
    assert problem.nearest[0] == near and len(problem.nearest) <= 3


def test_no_other_word_is_a_name_of_its_kind() -> None:
    plugins = registry.PLUGINS
    for kind in (plugins.drivers, plugins.workloads, plugins.instruments, plugins.backgrounds):
        words = [word for plugin in kind.values() for word in plugin.also]
        assert not set(words) & set(kind) and len(words) == len(set(words)), "one word means one plugin"


@pytest.mark.parametrize("text", ["256M", "16KB", "1g", "5mb", "3b", "2k"])
def test_a_unit_that_is_proposed_is_read(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_size(text)
    assert caught.value.near and all(parse_size(each) for each in caught.value.near)


@pytest.mark.parametrize(("text", "near"), [("10sec", 10), ("5msec", 0.005), ("2minutes", 120), ("1hr", 3600)])
def test_a_unit_of_time_is_proposed(text: str, near: float) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_duration(text)
    assert [parse_duration(each) for each in caught.value.near] == [near]


@pytest.mark.parametrize("text", ["100M", "100Mbps", "100Mb"])
def test_a_unit_of_a_rate_is_proposed(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_rate(text)
    assert [parse_rate(each) for each in caught.value.near] == [100_000_000]


def test_three_are_proposed_at_most_and_none_that_is_far() -> None:
    assert nearest("aaa", ["aaa1", "aaa2", "aaa3", "aaa4"]) == ("aaa1", "aaa2", "aaa3")
    assert nearest("zebra", ["rate", "delay"]) == ()
    assert did_you_mean(("a", "b", "c")) == "did you mean 'a', 'b' or 'c'?"
    assert nearest("rps", ["requests", "requests_per_second"], {"requests_per_second": ("rps",)}) == ("requests_per_second",)


def test_a_few_names_are_all_listed_after_what_was_meant() -> None:
    assert instead("receiver", ["loss", "receivers"]) == "did you mean 'receivers'? there are: loss, receivers"
    assert instead("x", ["loss", "receivers"]) == "there are: loss, receivers"
    assert instead("x", []) == "there are: none"


def test_of_many_names_what_was_meant_is_enough() -> None:
    many = [f"metric_{number}" for number in range(100)] + ["requests_per_second"]
    assert instead("request_per_second", many) == "did you mean 'requests_per_second'?"
    assert instead("zzz", many) == f"there are: {', '.join(many[:20])} and 81 more"
