"""The programs that twinbed starts on this machine, and their packages, by the distribution's own names.

`twinbed setup` and setup.sh install by this list, and preflight makes its remedies from it. It imports only the standard
library, since setup.sh needs it before anything else is installed. ``python3 -m twinbed.hosts.packages PURPOSE ...`` prints the
missing packages on one line.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.terminal import say

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
"""A user's PATH may lack them."""
_USUAL_FOLDERS = "/usr/local/bin:/usr/bin:/bin"
"""A PATH without these hides installed programs."""


@dataclass(frozen=True, slots=True)
class Need:
    """One program or file that a package brings. An empty name: the distribution has no such package."""

    shows: str
    """A program, or a file's absolute path: if it exists, the package is installed."""
    debian: str
    fedora: str = ""

    @property
    def path(self) -> str | None:
        """Return its path on this machine; None if it is not installed or hidden."""
        if self.shows.startswith("/"):
            return self.shows if Path(self.shows).exists() else None
        return shutil.which(self.shows, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}")

    @property
    def hidden_in(self) -> str | None:
        """Return the usual folder that has the program if PATH lacks this folder; else None."""
        program = None if self.path or self.shows.startswith("/") else shutil.which(self.shows, path=_USUAL_FOLDERS)
        return str(Path(program).parent) if program else None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution and how its packages are installed."""

    name: str
    install: tuple[str, ...]
    unasked: tuple[str, ...]
    """Options added to ``install``: no questions, and no recommended packages."""
    first: tuple[tuple[str, ...], ...] = ()
    """Commands to run before ``install``."""

    def package(self, need: Need) -> str:
        return need.fedora if self is FEDORA else need.debian


_WAIT = ("-o", "DPkg::Lock::Timeout=300")
DEBIAN = Distribution(
    "Debian",
    ("apt-get", "install"),
    ("-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", *_WAIT),
    (("apt-get", *_WAIT, "update"),),
)
FEDORA = Distribution("Fedora", ("dnf", "install"), ("-y", "--setopt=install_weak_deps=False"))
_KINSHIP = {"debian": DEBIAN, "ubuntu": DEBIAN, "fedora": FEDORA, "rhel": FEDORA}
"""Distributions by words of ID or ID_LIKE in os-release."""

DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
PURPOSES: Mapping[str, Sequence[Need]] = {
    "container": (
        Need("ip", "iproute2", "iproute"),
        Need("tc", "iproute2", "iproute-tc"),
        Need("tcpdump", "tcpdump", "tcpdump"),
        Need("ethtool", "ethtool", "ethtool"),
    ),
    "image": (
        Need("mmdebstrap", "mmdebstrap", "mmdebstrap"),
        Need("mkfs.erofs", "erofs-utils", "erofs-utils"),
        Need("apt-get", "apt", "apt"),
        Need("dpkg-deb", "dpkg", "dpkg"),
        Need(DEBIAN_KEYS, "debian-archive-keyring", "debian-keyring"),
        Need("unshare", "util-linux", "util-linux"),
        Need("setpriv", "util-linux", "util-linux"),
    ),
    "qemu": (Need("qemu-system-x86_64", "qemu-system-x86", "qemu-system-x86-core"),),
    "openvswitch": (
        Need("ovs-vswitchd", "openvswitch-switch", "openvswitch"),
        Need("ovsdb-server", "openvswitch-switch", "openvswitch"),
    ),
    "remote": (Need("ssh", "openssh-client", "openssh-clients"),),
    "rootless": (Need("newuidmap", "uidmap", "shadow-utils"),),
    "background": (Need("stress-ng", "stress-ng", "stress-ng"),),
    "own tools": (
        Need("owping", "owamp-client"),
        Need("owampd", "owamp-server"),
    ),
    "build": (
        Need("cc", "gcc", "gcc"),
        Need("/usr/lib/x86_64-linux-gnu/libc.a", "libc6-dev"),
    ),
    "test": (
        *(
            Need(program, program)
            for program in ("chromium", "cpio", "flent", "iperf3", "irtt", "nmap", "p0f", "skopeo", "strace")
        ),
        *(Need(program, program) for program in ("tcptrace", "tshark", "wrk")),
        Need("ab", "apache2-utils"),
        Need("editcap", "wireshark-common"),
        Need("nginx", "nginx-light"),
        Need("node", "nodejs"),
        Need("npm", "npm"),
        Need("ps", "procps"),
        Need("/usr/sbin/sshd", "openssh-server"),
        Need("/usr/share/doc/busybox-static", "busybox-static"),
    ),
}
"""Needs by purpose: a driver, the image, a kind of switch, and so on; "own tools" is for hosts without the image."""
FOR_USERS: Mapping[str, str] = {
    "container": "hosts in namespaces, links, captures: every study on this machine",
    "image": "building the root file system and the guest kernel, once",
    "qemu": "guests",
    "openvswitch": "switch: openvswitch, openvswitch-netdev",
    "remote": "machines over SSH",
    "rootless": "programs of a lab as users of their own, where you are not root",
    "background": "stress on the machine itself",
}
"""The purposes that `twinbed setup` shows and installs."""


class PackagesUnknown(TwinbedError):
    """A distribution whose package names are unknown here."""


def distribution() -> Distribution | None:
    """Return this machine's distribution; None if it is unknown."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    words = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((_KINSHIP[word] for word in words if word in _KINSHIP), None)


def lacking(needs: Iterable[Need]) -> list[Need]:
    return [need for need in needs if need.path is None]


def absent(needs: Sequence[Need]) -> str:
    """Report missing programs: not installed, or not in PATH."""
    hidden = [need for need in needs if need.hidden_in]
    missing = [need.shows for need in needs if need not in hidden]
    parts = [f"not installed: {', '.join(missing)}"] if missing else []
    parts += [f"not in PATH, but in {need.hidden_in}: {need.shows}" for need in hidden]
    return "; ".join(parts)


def of_programs(*programs: str) -> list[Need]:
    """Return the declared needs of these programs."""
    declared = {need.shows: need for needs in PURPOSES.values() for need in needs}
    return [declared[program] for program in programs]


def debian(program: str) -> str:
    """Return Debian's package of a program; by default it has the program's name."""
    return next((need.debian for needs in PURPOSES.values() for need in needs if need.shows == program), program)


def names(needs: Iterable[Need], whose: Distribution = DEBIAN) -> list[str]:
    """Return the sorted package names. Raises PackagesUnknown if the distribution has no such package."""
    wanted = list(needs)
    without = [need.shows for need in wanted if not whose.package(need)]
    if without:
        raise PackagesUnknown(f"no known package of {whose.name} has {', '.join(without)}", advice="install it by hand")
    return sorted({whose.package(need) for need in wanted})


def mend(needs: Iterable[Need]) -> str:
    """Return the command that installs these needs here; an unknown distribution gets Debian's names, which others resemble.

    Installed programs outside PATH only need a longer PATH."""
    wanted = list(needs)
    hidden = dict.fromkeys(folder for need in wanted if (folder := need.hidden_in))
    needs = [need for need in wanted if not need.hidden_in]
    longer = f'export PATH="$PATH:{":".join(hidden)}"' if hidden else ""
    if longer and not needs:
        return longer
    whose = distribution() or DEBIAN
    sudo = "" if os.geteuid() == 0 else "sudo "
    install = f"{sudo}{' '.join(whose.install)} {' '.join(names(needs, whose))}"
    return f"{longer}; {install}" if longer else install


if __name__ == "__main__":
    say(" ".join(names(lacking(need for purpose in sys.argv[1:] for need in PURPOSES[purpose]))))
