"""Debian packages that a workload adds to the image: apt chooses and fetches them, and they are unpacked without their scripts.

apt works on the image's own list of packages, with this machine's sources of the image's release, in a folder of its own:
nothing is installed on this machine, and only signed packages are taken. Three things replace maintainer scripts: the linker's
cache, the users in ``USERS``, and the links of alternatives that a script names in plain text. Services, debconf's settings and
other files that scripts write are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.hosts.packages import DEBIAN_KEYS
from twinbed.hosts.process import ProcessFailed, run
from twinbed.image.base import apt_targets, source_files
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import Specification
from twinbed.image.unpacking import place
from twinbed.model.near import did_you_mean, nearest
from twinbed.readers.container_image import Unreadable

_STATUS = "var/lib/dpkg/status"
_LISTS = Path("/var/lib/apt/lists")
_NAME = re.compile("[a-z0-9][a-z0-9+.-]+")
"""Debian's policy, 5.6.7. apt would take other names as options, versions or patterns."""
_CHOSEN = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.MULTILINE)
_REMOVED = re.compile(r"^Remv (\S+)", re.MULTILINE)
_ALTERNATIVE = re.compile(r"update-alternatives\b[^\n]*?--install\s+(/[\w./+-]+)\s+\S+\s+(/[\w./+-]+)\s+(\d+)")
_AMOUNT = re.compile(r"^Need to get (?:\S+ \S+/)?(\S+ \S+) of archives", re.MULTILINE)
_SERVERS = """\
Types: deb
URIs: http://deb.debian.org/debian
Suites: {suite} {suite}-updates
Components: main
Signed-By: {keys}

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: {suite}-security
Components: main
Signed-By: {keys}
"""
"""For a machine whose own apt has another release."""
USERS: Mapping[str, tuple[str, int]] = {
    "bind9": ("bind", 901),
    "etcd-server": ("etcd", 902),
    "haproxy": ("haproxy", 903),
    "mariadb-server": ("mysql", 904),
    "memcached": ("memcache", 905),
    "mosquitto": ("mosquitto", 906),
    "nsd": ("nsd", 907),
    "openssh-server": ("sshd", 908),
    "postgresql-common": ("postgres", 909),
    "rabbitmq-server": ("rabbitmq", 910),
    "redis-tools": ("redis", 911),
    "unbound": ("unbound", 912),
}
"""The system user, and the id of user and group, that a package's script would make. An id never changes."""
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
_LIMIT_S = 900.0
_PROCESS = ("setpriv", "--pdeathsig", "KILL")
"""They end with this process, so that the next build can remove what they wrote."""


@dataclass(frozen=True, slots=True)
class Apt:
    """apt's options for one image, and the packages that the image has."""

    options: tuple[str, ...]
    folder: Path
    image: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, rootfs: Path | None, spec: Specification, image: Mapping[str, str]) -> Apt:
        """Make apt's state in a folder that does not exist; without a ``rootfs`` the image has no packages.

        Raises ImageFailed if Debian's servers are needed and do not answer."""
        for name in ("sources", "lists/partial", "cache/archives/partial", "preferences"):
            (folder / name).mkdir(parents=True)
        if rootfs is None:
            (folder / "status").touch()
        sources = source_files(apt_targets(), spec.suite)
        for number, file in enumerate(sources):
            shutil.copyfile(file, folder / "sources" / f"{number}{file.suffix}")
        if not sources:
            (folder / "sources/debian.sources").write_text(_SERVERS.format(suite=spec.suite, keys=DEBIAN_KEYS))
        places = {
            "Dir::State": folder,
            "Dir::State::lists": _LISTS if sources else folder / "lists",
            "Dir::State::status": rootfs / _STATUS if rootfs else folder / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": folder / "sources",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": folder / "preferences",
            "APT::Architecture": spec.architecture,
            "APT::Architectures::": spec.architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        apt = cls(tuple(f"--option={name}={value}" for name, value in places.items()), folder, image)
        if not sources:
            apt.run("update")
        return apt

    def run(self, *words: str) -> str:
        try:
            return run([*_PROCESS, "apt-get", *self.options, *words], env=_ENVIRONMENT, limit_s=_LIMIT_S).text
        except ProcessFailed as error:
            reasons = [line[3:] for line in error.stderr.decode(errors="replace").splitlines() if line.startswith("E: ")]
            raise ImageFailed(
                f"apt-get {' '.join(words)}: {'; '.join(reasons) or error.why}",
                advice="make `apt-get update` work (network, proxy, /etc/apt); then the same command again",
            ) from None

    def choose(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the version of each package that the image gets for these names, dependencies included.

        Raises ImageFailed for an unknown name, with the nearest ones, and for a package that conflicts with the image's."""
        if wrong := [name for name in names if not _NAME.fullmatch(name)]:
            raise ImageFailed(f"{wrong[0]!r} is no name of a Debian package", advice="give names such as redis-server")
        try:
            plan = self.run("--simulate", "install", *names)
        except ImageFailed:
            self._refuse_unknown([name for name in names if name not in self._known()])
            raise
        chosen = dict(_CHOSEN.findall(plan))
        self._refuse_unknown([name for name in names if name not in {*chosen, *self.image}])
        if removed := _REMOVED.findall(plan):
            raise ImageFailed(
                f"packages: {', '.join(names)}: they exclude {', '.join(removed)} of twinbed's image",
                advice="choose other packages, or a container image: image: oci-archive:FILE",
            )
        return chosen

    def fetch(self, names: Sequence[str], say: Callable[[str], None]) -> list[Path]:
        """Download the chosen packages, whose hashes apt checks, and return their files by name."""
        chosen = self.choose(names)
        amount = _AMOUNT.search(self.run("--assume-no", "--print-uris", "install", *names))
        say(f"fetching {len(chosen)} packages{f', {amount[1]}' if amount else ''}")
        self.run("--assume-yes", "--download-only", "install", *names)
        return sorted((self.folder / "cache/archives").glob("*.deb"))

    def _known(self) -> Collection[str]:
        return run(["apt-cache", *self.options, "pkgnames"], env=_ENVIRONMENT).text.split()

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        known = self._known() if names else ()
        if names and self.image.keys() >= set(known):
            raise ImageFailed("apt has no lists of packages on this machine", advice="apt-get update")
        like = {name: nearest(name, [other for other in known if other[:2] == name[:2] and other != name]) for name in names}
        if like:
            raise ImageFailed(
                "; ".join(
                    f"Debian has no package {name}: {did_you_mean(near)}".removesuffix(": ") for name, near in like.items()
                ),
                advice="apt-cache search WORD   (lists packages; `apt-get update` renews the list)",
            )


def unpack(files: Sequence[Path], rootfs: Path, spec: Specification) -> Mapping[str, tuple[str, str]]:
    """Unpack packages into a root file system; return the version and SHA-256 of each.

    ``tar`` runs with the root file system as its root, so that no link leads out of it. Files of the same name are replaced and
    not written to, since they are those of another image too."""
    unpacked: dict[str, tuple[str, str]] = {}
    stanzas: list[str] = []
    scripts: list[str] = []
    excluded = [f"--exclude=.{pattern}" for pattern in spec.left_out]
    for file in files:
        stanzas.append(run(["dpkg-deb", "--field", str(file)]).text)
        fields = dict(re.findall(r"^(Package|Version): (\S+)", stanzas[-1], re.MULTILINE))
        with file.open("rb") as stream:
            unpacked[fields["Package"]] = fields["Version"], hashlib.file_digest(stream, "sha256").hexdigest()
        content = file.with_suffix(".tar")
        run(["dpkg-deb", "--fsys-tarfile", str(file)], stdout=content, limit_s=_LIMIT_S)
        with content.open("rb") as stream:
            argv = ["chroot", str(rootfs), "tar", "-x", "-p", "--numeric-owner", "--keep-directory-symlink", *excluded]
            run([*_PROCESS, *argv], stdin=stream, limit_s=_LIMIT_S)
        content.unlink()
        scripts.append(run(["dpkg-deb", "--info", str(file), "postinst"], check=False).text)
    _link_alternatives(rootfs, scripts)
    _list(rootfs, stanzas, set(unpacked))
    _make_users(rootfs, set(unpacked))
    run([*_PROCESS, "chroot", str(rootfs), "/sbin/ldconfig"], limit_s=_LIMIT_S)
    (rootfs / "var/cache/ldconfig/aux-cache").unlink(missing_ok=True)
    return unpacked


def _link_alternatives(rootfs: Path, scripts: Sequence[str]) -> None:
    """Make the links of alternatives, each to its target of the highest priority, if nothing else is there."""
    text = "\n".join(scripts).replace("\\\n", " ")
    best: dict[str, tuple[int, str]] = {}
    for link, target, priority in _ALTERNATIVE.findall(text):
        best[link] = max(best.get(link, (-1, "")), (int(priority), target))
    for link, (_, target) in best.items():
        with contextlib.suppress(Unreadable):
            path = place(rootfs, link, make=True)
            if not os.path.lexists(path) and os.path.lexists(place(rootfs, target, make=True)):
                path.symlink_to(target)


def _list(rootfs: Path, added: Sequence[str], names: set[str]) -> None:
    """Add packages to dpkg's list, in place of older versions."""
    stanzas = [stanza for stanza in (rootfs / _STATUS).read_text().strip().split("\n\n") if _name(stanza) not in names]
    stanzas += [f"{text.strip()}\nStatus: install ok installed" for text in added]
    _replace(rootfs / _STATUS, "\n\n".join(stanzas) + "\n")


def _name(stanza: str) -> str:
    match = re.search(r"^Package: (\S+)", stanza, re.MULTILINE)
    return match[1] if match else ""


def _make_users(rootfs: Path, packages: set[str]) -> None:
    wanted = [user for package, user in USERS.items() if package in packages]
    lines = {"passwd": "{0}:x:{1}:{1}::/nonexistent:/usr/sbin/nologin\n", "group": "{0}:x:{1}:\n"}
    for name, line in lines.items():
        text = (rootfs / "etc" / name).read_text()
        names = {entry.split(":")[0] for entry in text.splitlines()}
        _replace(rootfs / "etc" / name, text + "".join(line.format(*user) for user in wanted if user[0] not in names))


def _replace(path: Path, text: str) -> None:
    """Write a new file in a file's place: the old one is another image's too."""
    path.unlink()
    path.write_text(text)
