"""Settings on a host itself: addresses, routes, TCP's settings, the NIC's offloads and coalescing. Each is set and read back.

A NIC with interrupt coalescing (ethtool -c and -C) waits before it interrupts, to report several packets.  The value ``off``
sets the wait to 0; ``on`` only checks that there is one, whose length is the driver's choice. Linux polls under load anyway
(NAPI); that is not a setting of a NIC. Drivers have coalescing by their hardware: e1000e and igb have ``rx-usecs``, Linux's
e1000 has none for the card that QEMU emulates (its device has the setting instead), veth has no interrupts.

Routes hold two settings of TCP that have no sysctl: the initial window, and whether acknowledgements may wait (ip-route(8)).
Every IPv4 route of a host's experiment traffic gets them, after all routes are made, and keeps its other attributes.  IPv6 is
off on experiment links.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from twinbed.contracts.bed import Applied
from twinbed.contracts.host import Host
from twinbed.contracts.host_settings import OFFLOADS, HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError, HostLost, ProgramFailed
from twinbed.hosts.passport import output_of
from twinbed.links import bridge, device, shaping
from twinbed.links.layout import Nic
from twinbed.model.json import loads
from twinbed.model.topology import Link

_ON_OR_OFF = ("adaptive-rx", "adaptive-tx")
"""Parameters of `ethtool -C` that are on or off; the rest are microseconds."""


def set_coalescing(host: AgentHost, nic: str, settings: HostSettings) -> None:
    """Set coalescing. Raises HostError where the NIC's driver has no such setting, or where it is off and should be on."""
    asked = settings.moderation()
    if asked is None:
        return
    shown = host.nic(nic)
    state = _coalescing_state(shown.coalescing)
    if state is None:
        raise HostError(
            f"{host.name}: {nic} cannot have coalescing {asked}: its driver ({shown.driver or 'unnamed'}) has no such setting"
            " (ethtool -c); leave coalescing out, or choose another NIC: guests with e1000 or e1000e have it"
        )
    if asked == "on" and state == "off":
        raise HostError(
            f"{host.name}: {nic} has coalescing off, and the time to wait is not known: set it on the host"
            f" (ethtool -C {nic} rx-usecs MICROSECONDS), or leave coalescing out"
        )
    if asked == "off" and state == "on":
        host.run(["ethtool", "-C", nic, *_ethtool_words(dict.fromkeys(_set_parameters(shown.coalescing), 0))])


def applied_coalescing(host: AgentHost, nic: str, settings: HostSettings) -> list[Applied]:
    """Read back coalescing; empty where the NIC has none and none was asked for."""
    asked, state = settings.moderation(), _coalescing_state(host.nic(nic).coalescing)
    return [] if state is asked is None else [Applied(host.name, "coalescing", asked, state, f"ETHTOOL_GCOALESCE of {nic}")]


def undo_coalescing(host: AgentHost, nic: str) -> list[str]:
    """Return the command that restores the current coalescing; empty where nothing waits."""
    parameters = _set_parameters(host.nic(nic).coalescing)
    return ["ethtool", "-C", nic, *_ethtool_words(parameters)] if parameters else []


def _coalescing_state(parameters: Mapping[str, int] | None) -> str | None:
    """Return on or off; None where there is nothing to set."""
    return None if parameters is None else ("on" if _set_parameters(parameters) else "off")


def _set_parameters(parameters: Mapping[str, int] | None) -> dict[str, int]:
    """Return the parameters that are not 0: a driver can set these, but perhaps not others."""
    return {name: value for name, value in (parameters or {}).items() if value}


def _ethtool_words(parameters: Mapping[str, int]) -> list[str]:
    on_or_off = ("off", "on")
    return [
        word
        for name, value in parameters.items()
        for word in (name, on_or_off[bool(value)] if name in _ON_OR_OFF else str(value))
    ]


H = TypeVar("H")
T = TypeVar("T")
CARRIER_LIMIT_S = 30.0
ANSWER_LIMIT_S = 30.0
_SIDE_BY_SIDE = 16
"""How many hosts are brought up at a time. With more, each takes longer and none is ready sooner."""
FORWARDING = "/proc/sys/net/ipv4/ip_forward"
READ_BACK = {
    "congestion_control": "net/ipv4/tcp_congestion_control",
    "autocorking": "net/ipv4/tcp_autocorking",
    "receive_buffer": "net/ipv4/tcp_rmem",
    "send_buffer": "net/ipv4/tcp_wmem",
}
"""Kernel settings (name -> path below /proc/sys) that are recorded whether or not they are set."""


CONGESTION_CONTROLS = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def quieten(host: AgentHost) -> None:
    """Switch IPv6 off: its neighbour discovery would be traffic of the host itself."""
    for setting in bridge.QUIET:
        name, _, value = setting.partition("=")
        host.write("/proc/sys/" + name.replace(".", "/"), value.encode())


def configure(host: AgentHost, nics: Sequence[Nic], link: Link, settings: HostSettings) -> None:
    """Set addresses, TCP settings and offloads; return when every NIC has a carrier, or after the limit."""
    quieten(host)
    addresses = [bridge.address(nic, link.mtu, up=host.nic(nic.device).up is True) for nic in nics]
    try:
        host.run(["ip", "-batch", "-"], stdin="".join(addresses).encode())
    except ProgramFailed as error:
        if "mtu" not in str(error):
            raise
        raise HostError(f"{error}\n    this NIC cannot carry mtu {link.mtu}; choose a smaller mtu or another nic") from None
    set_sysctls(host, settings)
    for nic in nics:
        set_offloads(host, nic.device, settings)
        set_coalescing(host, nic.device, settings)
        if plan := shaping.plan(nic.device, link.at("hosts")):
            host.run(["tc", "-batch", "-"], stdin=plan.encode())
    for nic in nics:
        until_carrier(host, nic.device)


def applied(host: AgentHost, nics: Sequence[Nic], link: Link, settings: HostSettings) -> list[Applied]:
    """Read back what ``configure`` set."""
    result = applied_sysctls(host, settings)
    for nic in nics:
        result += _named(nic, nics, applied_address(host, nic.device, nic.address, nic.mac, link.mtu))
        result += _named(nic, nics, applied_offloads(host, nic.device, settings))
        result += _named(nic, nics, applied_coalescing(host, nic.device, settings))
        if shaping.plan(nic.device, link.at("hosts")):
            result += [replace(item, subject=host.name) for item in applied_shaping(host, nic.device, link.at("hosts"))]
    return result


def _named(nic: Nic, nics: Sequence[Nic], items: list[Applied]) -> list[Applied]:
    """Put the device's name before settings of a host with more than one NIC."""
    if len(nics) == 1:
        return items
    return [replace(item, setting=f"{nic.device}.{item.setting}") for item in items]


def set_sysctls(host: AgentHost, settings: HostSettings) -> None:
    """Write sysctls. Raises HostError, which names the value, and for congestion control what the kernel has."""
    for path, value in settings.sysctls().items():
        try:
            host.write(f"/proc/sys/{path}", value.encode())
        except HostLost:
            raise
        except HostError as error:
            available = ""
            if path == READ_BACK["congestion_control"]:
                known = host.read(CONGESTION_CONTROLS).decode(errors="replace").split()
                available = f"; its kernel has {', '.join(known)}"
            raise HostError(f"{error}: should be {value!r}{available}") from None


def applied_sysctls(host: AgentHost, settings: HostSettings) -> list[Applied]:
    asked = settings.sysctls()
    return [
        Applied(
            host.name,
            name,
            asked.get(path),
            host.read(f"/proc/sys/{path}").decode(errors="replace").strip(),
            f"/proc/sys/{path}",
        )
        for name, path in READ_BACK.items()
    ]


def set_offloads(host: AgentHost, nic: str, settings: HostSettings) -> None:
    """Set offloads. Raises HostError, which names the offloads that the NIC's driver refuses to change."""
    asked = settings.offloads()
    if not asked:
        return
    done = host.run(["ethtool", "-K", nic, *(word for pair in asked.items() for word in pair)], check=False)
    if done.code == 0:
        return
    shown = host.nic(nic)
    refused = [name for name, value in asked.items() if shown.offloads[name] != value]
    if not refused:
        raise ProgramFailed(host.name, ("ethtool", "-K", nic), done.why, done.stderr)
    raise HostError(
        f"{host.name}: {nic} cannot have {', '.join(f'{name} {asked[name]}' for name in refused)}: its driver"
        f" ({shown.driver or 'unnamed'}) says `{done.stderr.decode(errors='replace').strip()}`;"
        f" leave {', '.join(refused)} out, or choose another NIC"
    )


def applied_offloads(host: AgentHost, nic: str, settings: HostSettings) -> list[Applied]:
    present, asked, source = host.nic(nic).offloads, settings.offloads(), f"ETHTOOL_GFEATURES of {nic}"
    return [Applied(host.name, f"offload.{name}", asked.get(name), present[name], source) for name in OFFLOADS]


def applied_address(host: AgentHost, nic: str, address: str, mac: str | None, mtu: int) -> list[Applied]:
    shown, source = host.nic(nic), f"RTM_GETLINK of {nic}"
    ipv4 = [own for own in shown.addresses if ":" not in own]
    return [
        Applied(host.name, "address", address, ipv4[0] if len(ipv4) == 1 else ipv4, f"RTM_GETADDR of {nic}"),
        Applied(host.name, "mac", mac, shown.mac, source),
        Applied(host.name, "mtu", mtu, shown.mtu, source),
        Applied(host.name, "up", True, shown.up, source),
        Applied(host.name, "carrier", True, shown.carrier, source),
    ]


def applied_shaping(host: AgentHost, nic: str, link: Link) -> list[Applied]:
    """Read back what ``shaping.plan`` put on a device."""
    ask_qdiscs, ask_classes = shaping.questions(nic)
    qdiscs, classes = host.run(ask_qdiscs).stdout, host.run(ask_classes).text
    with understood(host):
        return shaping.applied(nic, link, qdiscs, classes)


def set_routes(host: AgentHost, routes: Sequence[tuple[str, str]], *, forwards: bool) -> None:
    if forwards:
        host.write(FORWARDING, b"1")
    if routes:
        host.run(["ip", "-batch", "-"], stdin="".join(f"route add {to} via {via}\n" for to, via in routes).encode())


def applied_routes(host: AgentHost, routes: Sequence[tuple[str, str]], *, forwards: bool) -> list[Applied]:
    result = []
    if routes:
        ask = ("ip", "-j", "route", "show")
        listing = host.run(ask).stdout
        with understood(host):
            gateways = {entry["dst"]: entry.get("gateway") for entry in loads(listing or b"[]")}
        result = [Applied(host.name, f"route.{to}", via, gateways.get(to), " ".join(ask)) for to, via in routes]
    if forwards:
        result.append(Applied(host.name, "forwarding", "1", host.read(FORWARDING).decode(errors="replace").strip(), FORWARDING))
    return result


def until_carrier(host: AgentHost, nic: str) -> None:
    """Wait for a carrier, or until the limit. ``applied_address`` reads back whether there is one."""
    deadline = time.monotonic() + CARRIER_LIMIT_S
    while host.read(f"/sys/class/net/{nic}/carrier") != b"1\n" and time.monotonic() < deadline:
        time.sleep(0.01)


def until_answered(host: AgentHost, address: str) -> None:
    """Wait until another host's TCP answers, or until the limit. Later users of the link report a missing answer.

    A busy emulated machine may answer ARP later than the asking kernel waits for."""
    host.reaches(address, ANSWER_LIMIT_S)


def devices_of(host: AgentHost) -> tuple[device.Device, ...]:
    listing = host.run(device.SHOW).stdout
    with understood(host):
        return device.parse(listing)


@contextlib.contextmanager
def understood(host: Host) -> Iterator[None]:
    """Turn errors in reading the output of a host's tools into HostError, which fails the run."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{host.name}: {error}") from error


def on_all(hosts: Sequence[H], what: Callable[[H], T]) -> list[T]:
    """Call ``what(host)`` for several hosts at a time. Return results in the hosts' order; raise the first failure."""
    with ThreadPoolExecutor(max_workers=max(1, min(len(hosts), _SIDE_BY_SIDE))) as pool:
        return list(pool.map(what, hosts))


_ROUTE_FLAGS = ("linkdown", "dead", "offload", "trap")
"""Words of `ip route show` that `ip route change` does not take."""
_ROUTE_METRICS = ("initcwnd", "quickack")


def set_route_metrics(host: AgentHost, devices: Sequence[str], settings: HostSettings) -> None:
    """Set metrics of routes. Raises HostError where a route does not take them."""
    if not (asked := _metrics_asked(settings)):
        return
    for nic in devices:
        routes = _routes_by(host, nic)
        if not routes:
            raise HostError(f"{host.name}: {nic} has no route to set {' '.join(asked)} on")
        for route in routes:
            try:
                host.run(["ip", "route", "change", *_route_words(route, asked), "dev", nic, *asked])
            except HostLost:
                raise
            except HostError as error:
                raise HostError(f"{error}: its route should have {' '.join(asked)}; iproute2 can set that") from None


def applied_route_metrics(host: AgentHost, devices: Sequence[str], settings: HostSettings) -> list[Applied]:
    """Read back what ``set_route_metrics`` set; null where routes differ or there is none."""
    source = f"RTM_GETROUTE of {', '.join(devices)}"
    routes = [route for device in devices for route in host.nic(device).routes]
    windows = {route.initial_window for route in routes}
    quick = {"on" if route.quickack else "off" for route in routes}
    return [
        Applied(host.name, "initial_window", settings.initial_window, windows.pop() if len(windows) == 1 else None, source),
        Applied(host.name, "quickack", settings.quickack, quick.pop() if len(quick) == 1 else None, source),
    ]


def _metrics_asked(settings: HostSettings) -> list[str]:
    words = [] if settings.initial_window is None else ["initcwnd", str(settings.initial_window)]
    return words if settings.quickack is None else [*words, "quickack", str(int(settings.quickack == "on"))]


def _routes_by(host: AgentHost, device: str) -> list[str]:
    return [line for line in output_of(host, "ip", "route", "show", "dev", device).splitlines() if line.strip()]


def _route_words(route: str, asked: Sequence[str]) -> list[str]:
    """Return the words of a route, without the metrics that are set now."""
    words = [word for word in route.split() if word not in _ROUTE_FLAGS]
    for name in _ROUTE_METRICS:
        if name in words and name in asked:
            at = words.index(name)
            del words[at : at + 2]
    return words
