"""The content of an image: Debian packages, files left out of them, and the kernel modules that guests need.

The specification's key is a hash of everything in it, so that another specification gives another image.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from twinbed.model.nic import NIC_MODELS

BUILDER = 6
"""Raise it when the builder makes another image from the same specification."""


@dataclass(frozen=True, slots=True)
class Specification:
    """Everything that decides the build, except the package versions of the day and the probe."""

    suite: str = "bookworm"
    architecture: str = "amd64"
    packages: tuple[str, ...] = (
        "apache2-utils",
        "ethtool",
        "iperf3",
        "iproute2",
        "irtt",
        "kmod",
        "nginx-light",
        "nmap",
        "openssl",
        "procps",
        "stress-ng",
        "tcpdump",
        "tcpreplay",
        "wrk",
    )
    left_out: tuple[str, ...] = (
        "/usr/share/bash-completion/*",
        "/usr/share/doc/*",
        "/usr/share/info/*",
        "/usr/share/lintian/*",
        "/usr/share/locale/*",
        "/usr/share/man/*",
    )
    kernel: str = "linux-image-amd64"
    """Not the cloud kernel, which has no e1000."""
    boot_modules: tuple[str, ...] = (
        "virtio_pci",
        "virtio_blk",
        "virtio_console",
        "crc32c_generic",  # libcrc32c, which erofs needs, asks for it by an alias that no dependency lists
        "erofs",
        "overlay",
    )
    """Loaded before the root file system is mounted; a guest does not boot without them."""
    nic_modules: tuple[str, ...] = tuple(
        module for model in NIC_MODELS.values() for module in (model.driver, *model.other_modules)
    )
    """Also loaded at boot, by guests with such a NIC: no program in a guest loads the drivers of its devices."""
    guest_modules: tuple[str, ...] = (
        "kernel/crypto/*.ko",
        "kernel/drivers/char/hw_random/virtio-rng.ko",
        "kernel/drivers/net/*.ko",
        "kernel/drivers/net/bonding/*.ko",
        "kernel/drivers/net/ipvlan/*.ko",
        "kernel/drivers/net/team/*.ko",
        "kernel/drivers/net/vxlan/*.ko",
        "kernel/net/802/*.ko",
        "kernel/net/8021q/*.ko",
        "kernel/net/bridge/**/*.ko",
        "kernel/net/core/*.ko",
        "kernel/net/ipv4/**/*.ko",
        "kernel/net/ipv6/**/*.ko",
        "kernel/net/mpls/*.ko",
        "kernel/net/netfilter/**/*.ko",
        "kernel/net/openvswitch/*.ko",
        "kernel/net/packet/*.ko",
        "kernel/net/sched/*.ko",
        "kernel/net/tls/*.ko",
        "kernel/net/xfrm/*.ko",
    )
    """Patterns of modules in the guests' /lib/modules, which the kernel loads by itself when needed (a queueing discipline, a
    congestion control, a tunnel). Their dependencies are included."""

    @property
    def key(self) -> str:
        text = json.dumps({"builder": BUILDER, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


TWINBED = Specification()
"""The one image that every testbed runs."""


def with_kernel(package: str) -> Specification:
    """Return the specification with another kernel: its Debian package or a meta package for it."""
    return replace(TWINBED, kernel=package)
