"""What Linux keeps for TCP in its routes: the initial window, and whether acknowledgements may wait (ip-route(8)).

There is no sysctl for either. Every IPv4 route by which a host's experiment traffic leaves is given them, after all routes are
there; what else a route has it keeps. IPv6 is off on experiment links.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError, HostLost
from twinbed.hosts.passport import output_of

_FLAGS = ("linkdown", "dead", "offload", "trap")
"""What `ip route show` says of a route that `ip route change` does not take."""
_METRICS = ("initcwnd", "quickack")


def set_tcp(host: AgentHost, devices: Sequence[str], settings: HostSettings) -> None:
    """Raises HostError where a route does not take what is asked for."""
    if not (asked := _asked(settings)):
        return
    for device in devices:
        routes = _routes(host, device)
        if not routes:
            raise HostError(f"{host.name}: {device} has no route that could have {' '.join(asked)}")
        for route in routes:
            try:
                host.run(["ip", "route", "change", *_plain(route, asked), "dev", device, *asked])
            except HostLost:
                raise
            except HostError as error:
                raise HostError(f"{error}: its route was to have {' '.join(asked)}; iproute2 can set that") from None


def applied_tcp(host: AgentHost, devices: Sequence[str], settings: HostSettings) -> list[Applied]:
    """What ``set_tcp`` set, read back. Null where routes differ or where there is none."""
    source = f"RTM_GETROUTE of {', '.join(devices)}"
    routes = [route for device in devices for route in host.nic(device).routes]
    windows = {route.initial_window for route in routes}
    quick = {"on" if route.quickack else "off" for route in routes}
    return [
        Applied(host.name, "initial_window", settings.initial_window, windows.pop() if len(windows) == 1 else None, source),
        Applied(host.name, "quickack", settings.quickack, quick.pop() if len(quick) == 1 else None, source),
    ]


def _asked(settings: HostSettings) -> list[str]:
    words = [] if settings.initial_window is None else ["initcwnd", str(settings.initial_window)]
    return words if settings.quickack is None else [*words, "quickack", str(int(settings.quickack == "on"))]


def _routes(host: AgentHost, device: str) -> list[str]:
    return [line for line in output_of(host, "ip", "route", "show", "dev", device).splitlines() if line.strip()]


def _plain(route: str, asked: Sequence[str]) -> list[str]:
    """The words of a route, without what is asked of it now."""
    words = [word for word in route.split() if word not in _FLAGS]
    for name in _METRICS:
        if name in words and name in asked:
            at = words.index(name)
            del words[at : at + 2]
    return words
