"""Open vSwitch as a switch: a private ovsdb-server and ovs-vswitchd for each machine of a lab, which die with the lab.

With the userspace datapath (``netdev``) ovs-vswitchd itself moves frames between its ports, through one packet socket, and
needs no kernel module.  It cannot complete checksums or segmentation left to the NIC, so hosts send complete packets.  Packets
that leave by a port meet its queueing discipline, so links are shaped as with other switches.  But the socket's send buffer
limits all waiting packets, so a study cannot set a queue.

Source: ovs-vswitchd.conf.db(5), ovs-vsctl(8), ovs-appctl(8), ovs-vswitchd(8) of Open vSwitch 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost, Running
from twinbed.hosts.error import HostError
from twinbed.links.device import Port
from twinbed.model.json import Json, items, loads, text
from twinbed.model.topology import Topology

DATAPATHS = {"openvswitch": "system", "openvswitch-netdev": "netdev"}
"""Kind of switch -> Open vSwitch's name of the datapath."""
Cells: TypeAlias = Mapping[str, Json]
"""A row of a table, by column."""
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl")
SEND_BUFFER = "/proc/sys/net/core/wmem_default"
_LIMIT_S = 30.0
_REASON = re.compile(r"\|(?:WARN|ERR|INFO(?=.*does not exist))\|(.*)")
"""Reasons in the log of ovs-vswitchd, which logs a missing kernel datapath as information."""


class Unfit(HostError):
    """Settings that this switch cannot have."""


def host_settings(topology: Topology, settings: HostSettings) -> HostSettings:
    """Return the hosts' settings with the changes that the switch needs. Raises Unfit where they ask for the opposite."""
    if topology.switch != "openvswitch-netdev":
        return settings
    unfinished = [name for name in ("tx", "tso") if settings.offloads().get(name) == "on"]
    if unfinished:
        raise Unfit(
            f"{' and '.join(unfinished)} on: the userspace datapath of Open vSwitch drops packets that the sender leaves to the"
            " NIC to complete",
            advice="leave tx, tso and offload out, or set them to off; or use switch: bridge or switch: openvswitch",
        )
    link = topology.link.at("switch")
    if link.queue is not None and link.delay is None:  # netem releases what it delays, and the socket then has room
        raise Unfit(
            f"queue: {link.queue}: with the userspace datapath of Open vSwitch, one socket's send buffer ({SEND_BUFFER})"
            " limits the packets that wait at all ports together",
            advice="leave queue out; or use switch: bridge or switch: openvswitch",
        )
    return settings.model_copy(update={"tx": "off"})


# ---- plans: arguments of ovs-vsctl


def switch(name: str, datapath: str, hardware_address: str | None = None) -> list[str]:
    """Plan a switch that sends nothing itself and learns addresses like a plain one."""
    address = [f"other_config:hwaddr={hardware_address}"] if hardware_address else []
    return [
        *("add-br", name, "--", "set", "bridge", name, f"datapath_type={datapath}", "fail_mode=standalone"),
        *("stp_enable=false", "rstp_enable=false", "mcast_snooping_enable=false", *address),
    ]


def join(port: Port) -> list[str]:
    vlan = []
    if port.access is not None:
        vlan = [f"tag={port.access}"]
    elif port.tagged is not None:
        vlan = [f"trunks={port.tagged}"]
    return ["add-port", port.switch, port.device, *vlan]


def tunnel(port: Port, kind: str, options: Mapping[str, str]) -> list[str]:
    return ["set", "interface", port.device, f"type={kind}", *(f"options:{name}={value}" for name, value in options.items())]


# ---- what Open vSwitch says


def rows(listing: bytes) -> list[Cells]:
    """Return the rows of `ovs-vsctl --format=json list`: an empty set is None, a set of several a tuple, a map a dict.

    Raises ValueError for other text."""
    try:
        table = loads(listing)
        return [dict(zip(table["headings"], map(_value, row), strict=True)) for row in table["data"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"ovs-vsctl did not print a table: {error!r}: {listing[:200]!r}") from None


def _value(cell: Json) -> Json:
    if not isinstance(cell, list):
        return cell
    content: Json
    kind, content = cell
    if kind == "map":
        return {str(_value(key)): _value(value) for key, value in map(items, items(content))}
    if kind == "set":
        return tuple(map(_value, items(content))) or None
    return content


@dataclass(frozen=True, slots=True)
class Carried:
    """A port as a datapath carries it."""

    datapath: str
    switch: str
    kind: str
    options: Mapping[str, str]


def carried(listing: str) -> dict[str, Carried]:
    """Return port -> how a datapath carries it, from `ovs-appctl dpif/show`. Raises ValueError for other text."""
    carried_by: dict[str, Carried] = {}
    datapath = bridge = ""
    for line in listing.splitlines():
        if head := re.match(r"(\w+)@\S+: hit:", line):
            datapath = head[1]
        elif middle := re.fullmatch(r"  (\S+):", line):
            bridge = middle[1]
        elif port := re.fullmatch(r"    (\S+) \d+/(?:\d+|none): \((\w+)(?:: (.*))?\)", line):
            options = dict(item.partition("=")[::2] for item in (port[3] or "").split(", ") if item)
            carried_by[port[1]] = Carried(datapath, bridge, port[2], options)
        else:
            raise ValueError(f"`ovs-appctl dpif/show` did not print ports: {line!r}")
    return carried_by


def way_out(listing: str) -> str | None:
    """Return the bridge in the output of `ovs-appctl ovs/route/lookup`."""
    match = re.search(r"^dev (\S+)", listing, re.MULTILINE)
    return match and match[1]


def neighbours(listing: str) -> dict[str, str]:
    """Return address -> hardware address, from `ovs-appctl tnl/neigh/show`."""
    return dict(re.findall(r"^(\S+) +((?:[0-9a-f]{2}:){5}[0-9a-f]{2}) ", listing, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Listings:
    """Everything that is read back of one machine's Open vSwitch."""

    bridges: Mapping[str, Cells]
    ports: Mapping[str, Cells]
    interfaces: Mapping[str, Cells]
    carried: Mapping[str, Carried]


def applied_switch(name: str, datapath: str, listings: Listings) -> list[Applied]:
    bridge, own = listings.bridges.get(name, {}), listings.carried.get(name)
    source = f"ovs-vsctl list bridge {name}"
    return [
        Applied(name, "kind", "openvswitch", "openvswitch" if bridge else None, source),
        Applied(name, "datapath", datapath, own and own.datapath, "ovs-appctl dpif/show"),
        Applied(name, "fail_mode", "standalone", bridge.get("fail_mode"), source),
        Applied(name, "spanning_tree", False, bridge.get("stp_enable"), source),
        Applied(name, "rapid_spanning_tree", False, bridge.get("rstp_enable"), source),
        Applied(name, "multicast_snooping", False, bridge.get("mcast_snooping_enable"), source),
    ]


def applied_joined(port: Port, datapath: str, listings: Listings, kind: str = "system") -> list[Applied]:
    """Read back a port. ``kind`` is Open vSwitch's type of the interface. A port without a VLAN in the study must have none."""
    interface, row, own = (
        listings.interfaces.get(port.device, {}),
        listings.ports.get(port.device, {}),
        listings.carried.get(port.device),
    )
    number = interface.get("ofport")
    list_port, list_interface = f"ovs-vsctl list port {port.device}", f"ovs-vsctl list interface {port.device}"
    return [
        Applied(port.device, "master", port.switch, own and own.switch, "ovs-appctl dpif/show"),
        Applied(port.device, "datapath", datapath, own and own.datapath, "ovs-appctl dpif/show"),
        Applied(port.device, "type", kind, own and own.kind, "ovs-appctl dpif/show"),
        Applied(port.device, "in_use", True, isinstance(number, int) and number > 0, list_interface),
        Applied(port.device, "error", "", (interface.get("error") or "") if interface else None, list_interface),
        Applied(port.device, "vlan", port.access or "none", row.get("tag") or ("none" if row else None), list_port),
        Applied(port.device, "tagged_vlan", port.tagged or "none", row.get("trunks") or ("none" if row else None), list_port),
    ]


def applied_options(port: Port, options: Mapping[str, str], listings: Listings) -> list[Applied]:
    """Read back a tunnel's options, as the datapath has them."""
    own = listings.carried.get(port.device)
    return [
        Applied(port.device, name, value, own and own.options.get(name), "ovs-appctl dpif/show")
        for name, value in options.items()
    ]


# ---- with effects


class OpenVSwitch:
    """The servers of Open vSwitch on one machine."""

    def __init__(self, machine: AgentHost, folder: Path, datapath: str) -> None:
        """Start the servers. ``folder`` is private and has a short name: it holds the database and the sockets. Logs are
        artifacts of the machine. Raises HostError with the servers' output."""
        self.machine, self.datapath = machine, datapath
        self._folder = folder
        self._env = dict.fromkeys(("OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"), str(folder)) | {
            "OVS_LOGDIR": machine.artifacts
        }
        folder.mkdir(mode=0o700)
        machine.run(["ovsdb-tool", "create", f"{folder}/conf.db"], env=self._env)
        self._start(
            [*("ovsdb-server", f"{folder}/conf.db", f"--remote=punix:{folder}/db.sock"), f"--unixctl={folder}/db.ctl"],
            b"ovsdb-server (Open vSwitch)",
        )
        self.vsctl(["--no-wait", "init"])
        self._switch = self._start(
            ["ovs-vswitchd", f"unix:{folder}/db.sock", f"--unixctl={folder}/switch.ctl"], b"ovs-vswitchd (Open vSwitch)"
        )

    def _start(self, argv: Sequence[str], ready: bytes) -> Running:
        log = f"--log-file={self.machine.artifacts}/{argv[0]}.log"
        program = self.machine.start([*argv, log, "-vsyslog:off", "-vconsole:info"], env=self._env)
        program.says(ready, _LIMIT_S)
        return program

    def vsctl(self, words: Sequence[str]) -> bytes:
        """Run ovs-vsctl until ovs-vswitchd has done it. Raises HostError with the reasons where it cannot."""
        ask = ["ovs-vsctl", f"--db=unix:{self._folder}/db.sock", f"--timeout={_LIMIT_S:g}", *words]
        done = self.machine.run(ask, env=self._env, limit_s=2 * _LIMIT_S)
        if b"Error detected" in done.stderr:  # with exit code 0
            log_text = bytes(self._switch.stderr).decode(errors="replace")
            why = "; ".join(dict.fromkeys(_REASON.findall(log_text)))
            raise HostError(f"{self.machine.name}: ovs-vsctl {' '.join(words)}: {why or done.stderr.decode(errors='replace')}")
        return done.stdout

    def appctl(self, words: Sequence[str]) -> str:
        ask = ["ovs-appctl", f"--target={self._folder}/switch.ctl", *words]
        return self.machine.run(ask, env=self._env, limit_s=_LIMIT_S).text

    def listings(self) -> Listings:
        """Return all listings. Raises HostError when they cannot be read."""
        try:
            listing = self.vsctl(["--format=json", *("list", "bridge"), "--", *("list", "port"), "--", *("list", "interface")])
            bridges, ports, interfaces = (
                {text(row["name"]): row for row in rows(line)} for line in listing.splitlines() if line
            )
            shown = carried(self.appctl(["dpif/show"]))
        except (KeyError, TypeError, ValueError) as error:
            raise HostError(f"{self.machine.name}: {error}") from error
        return Listings(bridges, ports, interfaces, shown)

    @property
    def version(self) -> str | None:
        """Return the version that ovs-vswitchd printed when it was ready."""
        match = re.search(rb"\(Open vSwitch\) (\S+)", bytes(self._switch.stderr))
        return match[1].decode(errors="replace") if match else None

    def applied_buffer(self, name: str) -> list[Applied]:
        """Return the buffer that bounds the queues of all ports together, with the userspace datapath."""
        if self.datapath != "netdev":
            return []
        return [Applied(name, "send_buffer", None, int(self.machine.read(SEND_BUFFER)), SEND_BUFFER)]
