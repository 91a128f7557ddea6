"""Virtual machines as guests: a kernel of their own, its virtio-serial driver, its NICs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from minimega.standin import StandIn
from minimega.test_pinning import CPUS, affinities
from twinbed.contracts.site import Site
from twinbed.image import minimega as recipe
from twinbed.model.caution import Kind
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS

DRIVER = PLUGINS.drivers["minimega"]


def test_virtual_machines_are_hosts_through_their_port(machines: StandIn, site: Callable[..., Site]) -> None:
    """QEMU, a guest kernel, its virtio-serial driver and its NICs: the two ends have different ones. Each guest has CPUs of its
    own, where there are as many."""
    params = DRIVER.params(
        base=str(machines.base),
        kernel="/opt/guest.kernel",
        server_nic="e1000",
        offload="off",
        congestion_control="reno",
        control="virtio-serial",
        cpus="auto",
    )
    with DRIVER.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        assert (found["client", "nic"], found["server", "nic"]) == ("virtio-net-pci", "e1000")
        assert found["server", "offload.tso"] == "off"
        assert (bed.passport["client"]["NIC driver"], bed.passport["server"]["NIC driver"]) == ("virtio_net", "e1000")
        cpus = {name: found[name, "cpus"] for name in ("client", "server")}
        assert (cpus["client"] != cpus["server"]) == (len(CPUS) > 1)
        assert Kind.UNPINNED not in {caution.kind for caution in bed.cautions}
        for vm in next(space for name, space in machines.spaces.items() if name != "minimega").vms.values():
            assert affinities(int(vm.row["pid"])) == {cpus[vm.name]}
        assert not any("optimize" in line for line in machines.heard)
        listener = bed.hosts["server"].start(["iperf3", "-s", "-1", "-p", "5000"])
        bed.hosts["server"].listening(5000, 30.0)
        bed.hosts["client"].run(["iperf3", "-c", bed.addresses["server"], "-p", "5000", "-n", "1M"])
        assert listener.wait(30.0).code == 0
    assert set(machines.spaces) == {"minimega"}


def test_guests_of_the_recipe_have_all_that_a_study_starts(
    made: StandIn, files: recipe.Made, site: Callable[..., Site]
) -> None:
    """The server is one, in the memory that twinbed says it wants: what is asked for at entry is there, and packets pass."""
    params = DRIVER.params(
        base=str(made.base),
        kernel="/opt/guest.kernel",
        server_nic="e1000",
        control="virtio-serial",
        memory=f"{files.megabytes}MiB",
    )
    programs = frozenset({"ab", "ethtool", "iperf3", "irtt", "nginx", "stat", "tc", "tcpdump", "wrk"})
    place = replace(site(), programs={"client": programs, "server": programs})
    with DRIVER.up(params, Topology(), place) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        assert bed.passport["server"]["NIC driver"] == "e1000"
        bed.hosts["client"].run(["ip", "route", "get", bed.addresses["server"]])
        assert bed.hosts["server"].run(["cat", "/etc/twinbed-image"]).text == f"{place.image.digest}\n"
