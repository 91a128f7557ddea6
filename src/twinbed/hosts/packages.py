"""The programs of this machine that twinbed starts, and the packages that they come in, by the distribution's own names.

`twinbed setup` and setup.sh install by this list, and preflight's mends are made of it.  Only the standard library is imported:
setup.sh asks before anything is there. ``python3 -m twinbed.hosts.packages PURPOSE ...`` prints what is missing on one line.
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
"""A PATH that lacks them hides programs that are installed."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a package brings. A name without a package is one that the distribution does not have."""

    shows: str
    """A program, or a file by its whole path: where it is, the package is there."""
    debian: str
    fedora: str = ""

    @property
    def path(self) -> str | None:
        """Where it is on this machine."""
        if self.shows.startswith("/"):
            return self.shows if Path(self.shows).exists() else None
        return shutil.which(self.shows, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}")

    @property
    def hidden_in(self) -> str | None:
        """The folder outside PATH that has the program, where PATH lacks a folder that every user's has."""
        found = None if self.path or self.shows.startswith("/") else shutil.which(self.shows, path=_USUAL_FOLDERS)
        return str(Path(found).parent) if found else None


@dataclass(frozen=True, slots=True)
class Distribution:
    """Whose packages a machine has, and how they are installed."""

    name: str
    install: tuple[str, ...]
    unasked: tuple[str, ...]
    """What is added to ``install`` so that nothing is asked, and nothing comes that is only recommended."""
    first: tuple[tuple[str, ...], ...] = ()
    """What is run before it."""

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
"""By a word of os-release's ID or ID_LIKE."""

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
        *(Need(program, program) for program in ("chromium", "cpio", "flent", "iperf3", "irtt", "nmap", "p0f", "strace")),
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
"""By what they are for: a driver, the image, a kind of switch, and so on; "own tools" are those of hosts without the image."""
FOR_USERS: Mapping[str, str] = {
    "container": "hosts in namespaces, links, captures: every study on this machine",
    "image": "building the root file system and the guest kernel, once",
    "qemu": "guests",
    "openvswitch": "switch: openvswitch, openvswitch-netdev",
    "remote": "machines over SSH",
    "rootless": "programs of a lab as users of their own, where you are not root",
    "background": "stress on the machine itself",
}
"""What `twinbed setup` shows and installs."""


class PackagesUnknown(TwinbedError):
    """A distribution whose names of packages are not known here."""


def distribution() -> Distribution | None:
    """This machine's, or None where it is kin to none that is known."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    words = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((_KINSHIP[word] for word in words if word in _KINSHIP), None)


def lacking(needs: Iterable[Need]) -> list[Need]:
    return [need for need in needs if need.path is None]


def absent(needs: Sequence[Need]) -> str:
    """What is wrong: not installed, or not in PATH."""
    hidden = [need for need in needs if need.hidden_in]
    missing = [need.shows for need in needs if need not in hidden]
    parts = [f"not installed: {', '.join(missing)}"] if missing else []
    parts += [f"not in PATH, but in {need.hidden_in}: {need.shows}" for need in hidden]
    return "; ".join(parts)


def of_programs(*programs: str) -> list[Need]:
    """The declared needs of these names, each once."""
    declared = {need.shows: need for needs in PURPOSES.values() for need in needs}
    return [declared[program] for program in programs]


def debian(program: str) -> str:
    """Debian's package of a program; of one that is not declared, the package has its name."""
    return next((need.debian for needs in PURPOSES.values() for need in needs if need.shows == program), program)


def names(needs: Iterable[Need], whose: Distribution = DEBIAN) -> list[str]:
    """The packages, sorted. Raises PackagesUnknown where the distribution has none."""
    wanted = list(needs)
    without = [need.shows for need in wanted if not whose.package(need)]
    if without:
        raise PackagesUnknown(f"no package of {whose.name} is known that has {', '.join(without)}", advice="install it by hand")
    return sorted({whose.package(need) for need in wanted})


def mend(needs: Iterable[Need]) -> str:
    """The command that installs what these needs come in here. Elsewhere than on a known distribution it is said in Debian's
    names, which others resemble. Programs that are installed need PATH alone."""
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
