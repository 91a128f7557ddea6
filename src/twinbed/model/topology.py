"""The network between hosts: hosts, switches, trunks, and the settings of links."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from twinbed.model.declaration import Also
from twinbed.model.units import Duration, Rate, Share, Size

Place = Literal["switch", "hosts", "routers"]
Emulator = Literal["auto", "netem", "delay-line"]

BYSTANDER = "other"
"""The beginning of the names of hosts that take no part in the workload."""
MOST_HOSTS = 80
"""The most pairs, and the most hosts of all roles."""

_LEAST_BURST_BYTES = 65536 + 1024
"""A 64 KiB segmentation-offload packet must fit, or TBF would drop it."""
_LEAST_QUEUE_PACKETS = 1000
_ETHERNET_BYTES = 14
"""A header, which the shapers count."""
_LONGEST_BURST_S = 274
"""tc stores a burst as its duration at a rate in whole bytes, in 32 bits of 64 ns; a longer one wraps around."""


class Link(BaseModel):
    """A host's link to its switch. Each direction of a path from one host to another has each setting exactly once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: Annotated[Rate | None, Also(("bandwidth", "speed", "bw", "capacity"))] = Field(
        None, gt=0, examples=["100mbit"], description="bits per second each way, such as 1gbit; null leaves the link unshaped"
    )
    shaper: Literal["htb", "tbf"] = Field("htb", description="queueing discipline that enforces the rate")
    burst: Size | None = Field(
        None, examples=["128KiB"], description="bytes that may pass at once; null: 1 ms at the rate, at least 65 KiB"
    )
    delay: Annotated[Duration | None, Also(("latency", "lag", "ping"))] = Field(
        None, ge=0, le=60, examples=["5ms"], description="one-way delay added to each direction of a path"
    )
    jitter: Duration | None = Field(
        None, gt=0, le=60, examples=["1ms"], description="the delay varies evenly by up to this much"
    )
    loss: Annotated[Share | None, Also(("drop", "packet_loss", "plr"))] = Field(
        None, gt=0, lt=1, examples=["0.1%"], description="share of packets lost at random in each direction"
    )
    queue: Annotated[int | None, Also(("buffer", "queue_length", "txqueuelen", "limit"))] = Field(
        None,
        ge=1,
        le=10_000_000,
        examples=[1000],
        description="packets that may wait at the shaper; null: the kernel's own, or what the delay needs",
    )
    emulated_at: Annotated[Place, Also(("netem",))] = Field(
        "switch",
        description="where delay, jitter and loss are made: at the switch's ports, in the hosts, or in the first router",
    )
    emulator: Emulator = Field(
        "auto",
        description="program that makes them at the switch: netem, the kernel's; delay-line, twinbed's own on this machine;"
        " auto: netem, or the delay line if this kernel has no netem",
        exclude_if=lambda emulator: emulator == "auto",  # runs of before keep their ids
    )
    mtu: int = Field(1500, ge=576, le=9000, description="largest IP packet, bytes")

    @model_validator(mode="after")
    def _possible(self) -> Link:
        if self.emulator == "delay-line" and self.emulated_at != "switch":
            raise ValueError("emulator: delay-line works at the switch's ports: set emulated_at: switch, or leave it out")
        if self.jitter is not None and (self.delay is None or self.jitter > self.delay):
            raise ValueError("jitter varies the delay both ways: set a delay at least as long")
        if self.rate and self.burst and self.burst > _LONGEST_BURST_S * (self.rate // 8):
            slowest = 8 * math.ceil(self.burst / _LONGEST_BURST_S)
            raise ValueError(
                f"a burst of {self.burst} bytes at {self.rate} bit/s takes longer than the {_LONGEST_BURST_S} s that tc"
                f" can count: set a rate of at least {slowest}bit, or a smaller burst"
            )
        if self.rate and self.shaper == "tbf" and self.burst is not None and self.burst < (least := self.mtu + _ETHERNET_BYTES):
            raise ValueError(
                f"tbf drops every packet larger than its burst: set a burst of at least {least} bytes"
                f" for an mtu of {self.mtu}, or shaper: htb"
            )
        return self

    @property
    def burst_bytes(self) -> int | None:
        """Return the burst in force."""
        if self.rate is None:
            return None
        if self.burst is not None:
            return self.burst
        return max(self.rate // 8 // 1000, min(_LEAST_BURST_BYTES, _LONGEST_BURST_S * (self.rate // 8)))

    @property
    def emulates(self) -> bool:
        """Return whether netem, or a delay line, is needed."""
        return self.delay is not None or self.loss is not None

    @property
    def queue_packets(self) -> int | None:
        """Return the queue in force: twice the bytes in flight at the rate, so that a delay alone loses nothing."""
        if self.queue is not None or not self.emulates:
            return self.queue
        rate = self.rate or 10**10
        on_its_way = rate * (self.delay or 0.0) / 8 / self.mtu
        return max(_LEAST_QUEUE_PACKETS, math.ceil(2 * on_its_way))

    def at(self, place: Place) -> Link:
        """Return the part of the link at ``place``: the rate at the switch, the rest at the place of emulation."""
        nothing: dict[str, object] = {}
        if place != "switch":
            nothing |= {"rate": None, "burst": None}
        if place != self.emulated_at or not self.emulates:
            nothing |= {"delay": None, "jitter": None, "loss": None}
            if place != "switch":
                nothing |= {"queue": None}
        return self.model_copy(update=nothing)


class Topology(BaseModel):
    """``pairs`` client/server pairs: on one switch, on two that share an uplink, on several machines, or with routers
    between."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pairs", "star"] = Field(
        "pairs",
        description="pairs: clients and servers, one to one; star: the same, with clients on one switch, servers on another,"
        " and one link between the switches that all share",
    )
    pairs: Annotated[int, Also(("clients", "hosts", "number"))] = Field(
        1, ge=1, le=MOST_HOSTS, examples=[4], description="number of client/server pairs"
    )
    switch: Literal["bridge", "openvswitch", "openvswitch-netdev"] = Field(
        "bridge",
        description="the switch: bridge, the Linux bridge; openvswitch, with the kernel's datapath;"
        " openvswitch-netdev, with the userspace datapath",
    )
    vlan: int | None = Field(
        None, ge=1, le=4094, examples=[7], description="VLAN of the hosts' ports; null: the switch tags nothing"
    )
    trunk: Literal["none", "plain", "vlan", "gre", "vxlan"] = Field(
        "none",
        description="tunnel between the switches of two machines, one with the clients, one with the servers; none: one switch",
    )
    client_machines: int = Field(
        1,
        ge=1,
        examples=[2],
        description="machines that share the clients in turn, each joined by a trunk to the servers' machine",
    )
    uplink: Rate | None = Field(
        None, gt=0, examples=["1gbit"], description="rate each way between the two switches of a star; null: not shaped"
    )
    routers: int = Field(0, ge=0, le=16, examples=[1], description="routers in a chain between clients and servers")
    bystanders: int = Field(
        0,
        ge=0,
        le=80,
        examples=[2],
        description="further client/server pairs that take no part in the workload, for a background load",
    )
    link: Link = Field(Link(), description="every host's link to the switch")

    @model_validator(mode="after")
    def _possible(self) -> Topology:
        if self.kind == "star" and (self.trunk != "none" or self.routers):
            raise ValueError("a star has two switches on one machine: leave trunk and routers out")
        if self.uplink is not None and self.kind != "star":
            raise ValueError("uplink is the shared link of a star: set kind: star")
        if self.trunk != "none" and self.routers:
            raise ValueError("a trunk joins two switches of one network, but routers make several: leave out trunk or routers")
        if self.client_machines > 1 and self.trunk == "none":
            raise ValueError("client_machines: a trunk joins each to the servers' machine: set one, such as trunk: plain")
        if self.client_machines > self.pairs:
            raise ValueError(
                f"client_machines: {self.client_machines} machines for {self.pairs} client{'s' if self.pairs > 1 else ''}:"
                " each needs at least one, so use at most as many as pairs"
            )
        if self.link.emulates and self.link.emulated_at == "routers" and not self.routers:
            raise ValueError("emulated_at: routers needs at least one router")
        return self

    @property
    def shared(self) -> Link:
        """Return the uplink of a star, shaped as the hosts' links are."""
        return Link(rate=self.uplink, shaper=self.link.shaper, mtu=self.link.mtu)

    def of_roles(self, hosts: Sequence[str]) -> Topology:
        """Return the topology with the hosts of a workload's roles, at least two, in place of pairs. Raises ValueError for one
        that they cannot have."""
        if self.kind != "pairs" or self.pairs > 1 or self.trunk != "none" or self.routers:
            raise ValueError("hosts of roles are on one switch: leave kind, pairs, trunk, client_machines and routers out")
        return RolesTopology.model_validate({**self.model_dump(exclude={"kind"}), "hosts": tuple(hosts)})

    @property
    def role_hosts(self) -> tuple[str, ...]:
        """Return the hosts of a workload's roles; empty for pairs."""
        return ()

    def names(self) -> Sequence[tuple[str, str]]:
        """Return (client, server) of each pair of the workload; without a number if there is only one."""
        if self.pairs == 1:
            return (("client", "server"),)
        return tuple((f"client{i}", f"server{i}") for i in range(1, self.pairs + 1))

    def bystander_names(self) -> Sequence[tuple[str, str]]:
        """Return (client, server) of each pair of bystanders, always with a number."""
        return tuple((f"{BYSTANDER}client{i}", f"{BYSTANDER}server{i}") for i in range(1, self.bystanders + 1))

    def made_like(self) -> Mapping[str, str]:
        """Return host -> client, server or router: the driver's settings with which it is made."""
        pairs = (*self.names(), *self.bystander_names())
        ends = {host: end for pair in pairs for host, end in zip(pair, ("client", "server"), strict=True)}
        return {**ends, **dict.fromkeys(self.router_names(), "router")}

    def router_names(self) -> Sequence[str]:
        """Return the names from the clients' side to the servers'."""
        return ("router",) if self.routers == 1 else tuple(f"router{i}" for i in range(1, self.routers + 1))


def _listed(hosts: object) -> object:
    """Accept a list, as a record has it."""
    return tuple(hosts) if isinstance(hosts, list) else hosts


class RolesTopology(Topology):
    """The hosts of a workload's roles, all on one switch; a study file's topology becomes it (``of_roles``)."""

    kind: Literal["roles"] = "roles"  # type: ignore[assignment]
    hosts: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(min_length=2, max_length=MOST_HOSTS)

    @property
    def role_hosts(self) -> tuple[str, ...]:
        return self.hosts

    def names(self) -> Sequence[tuple[str, str]]:
        """Return the first host with each of the others, so that every link is an end of a pair."""
        return tuple((self.hosts[0], host) for host in self.hosts[1:])


def topology_of(data: object, *, strict: bool = False) -> Topology:
    """Read the topology of a record. Raises ValidationError."""
    is_of_roles = isinstance(data, Mapping) and data.get("kind") == "roles"
    return (RolesTopology if is_of_roles else Topology).model_validate(data, strict=strict)
