"""A host over SSH as a host of a mixed testbed: the lab's switch reaches it by a NIC of this machine.

    hybrid: {driver: mixed, client: {driver: container}, server: {driver: remote, uplink: eth1, hosts: {server: root@s1}}}

The host is leased, set and put back as those of the driver ``remote``.  Rates are shaped at the lab's switch, as for the lab's
own hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ipaddress import IPv4Interface

from pydantic import Field

from twinbed.contracts.bed import Applied
from twinbed.contracts.check import Check
from twinbed.contracts.host_settings import HostSettings
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.hosts.lease import open_leases
from twinbed.hosts.session import Wanted
from twinbed.links import network
from twinbed.links.lab_bed import Ground, LabDriver, Made
from twinbed.links.layout import Nic
from twinbed.model.caution import Caution
from twinbed.model.topology import Link
from twinbed.testbeds.remote import facts
from twinbed.testbeds.remote.check import checks, programs
from twinbed.testbeds.remote.driver import watched
from twinbed.testbeds.remote.nic import applied, chosen, configure, prepare
from twinbed.testbeds.remote.settings import RemoteSettings
from twinbed.testbeds.remote.threads import set_threads


class UplinkedSettings(RemoteSettings):
    uplink: str = Field(
        min_length=1,
        max_length=15,
        examples=["eth1"],
        description="this machine's NIC towards the hosts: up, without addresses, and lent to the lab",
    )


class Uplinked(LabDriver[UplinkedSettings]):
    """What the driver ``mixed`` makes hosts over SSH with."""

    name = "remote"
    summary = "hosts over SSH, reached by a NIC of this machine"
    params = UplinkedSettings

    def check(self, params: UplinkedSettings) -> Sequence[Check]:
        return checks(params)

    def check_programs(self, params: UplinkedSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        return programs(params, wanted)

    def maker(self, params: UplinkedSettings, site: Site) -> RemoteMaker:
        return RemoteMaker(params)


class RemoteMaker:
    cpus_each = 0

    def __init__(self, settings: UplinkedSettings) -> None:
        self.settings = settings

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        if name not in self.settings.hosts:
            raise HostError(f"the testbed has no host for {name}: over SSH it has {', '.join(self.settings.hosts) or 'none'}")
        if len(nics) > 1:
            raise HostError(f"{name}: a host over SSH has one NIC of the experiment, and cannot be a router")
        (nic,), host = nics, self.settings.hosts[name]
        image = ground.site.image if self.settings.image == "archive" else None
        wanted = Wanted(host.reached(name), self.settings.lease, image, host.folder)
        (lease,) = ground.stack.enter_context(open_leases([wanted], ground.site.probe))
        device = chosen(lease, host.nic, network.devices_of(lease.host))
        ground.fabric.attach_uplink(ground.lab, nic, self.settings.uplink)
        ground.site.place(name)

        def own_network(link: Link, settings: HostSettings) -> list[Applied]:
            here = link.at("hosts")
            experiment = prepare(lease, device, IPv4Interface(nic.address), here, settings)
            threads = set_threads(lease, self.settings.smt)
            configure(lease.host, experiment, here, settings)
            return [*threads, *applied(lease.host, experiment, here, settings)]

        return Made(
            lease.host,
            lambda _: ([], facts.facts(lease, device, own_tools=image is None)),
            device=device,
            own_network=own_network,
            at_end=watched({name: (lease.host, device)}),
        )

    def cautions(self) -> Sequence[Caution]:
        return []


uplinked = Uplinked()
