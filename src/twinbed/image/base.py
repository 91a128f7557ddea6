"""The slow part of an image: Debian packages as a root file system, and the guest kernel with its modules.

mmdebstrap installs the packages with the machine's own apt sources, keys and proxy. If these belong to another release or
distribution, it uses Debian's servers. It runs in a mount and a PID namespace that end with this process, and starts no
service.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from twinbed.hosts.cache import build_command, cache_root
from twinbed.hosts.packages import DEBIAN_KEYS, PURPOSES, lacking, mend
from twinbed.hosts.process import MOST_BYTES, ProcessFailed, last_bytes, run
from twinbed.image import cache, kernel, modules
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import TWINBED, Specification
from twinbed.model.image import NOTHING, Added
from twinbed.model.json import Document

SPACE_BYTES = 1_500_000_000
_BORN_S = 1_700_000_000
"""The time of files made by the build, so that two builds of the same packages are alike."""

_HOOK = (
    'cd "$TWINBED_KERNEL" && export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" && '
    "apt-get -o APT::Sandbox::User=root download "
    '"$(apt-cache show --no-all-versions "$TWINBED_KERNEL_PACKAGE" | sed -n "s/^Depends: \\(linux-image-[^ ,]*\\).*/\\1/p")"'
)
"""mmdebstrap runs this with its own apt state, to download the package behind the kernel's meta package."""

CAPABILITIES = "security.capability"
"""The attribute that holds a file's capabilities (capabilities(7))."""
_UNREACHABLE = ("Temporary failure resolving", "Failed to fetch", "Could not connect", "Cannot initiate")
_FROM_APT = ("Acquire::http*", "Acquire::Check-*", "Acquire::Force*", "Acquire::Max-*", "Acquire::Retries", "Acquire::By-Hash")


def build(folder: Path, spec: Specification, say: Callable[[str], None], *, force: bool) -> Path:
    """Return the finished base of this specification, built in ``folder`` if there is none, or with ``force``."""
    key = f"base-{spec.key}"
    if not force and (finished := cache.current(key)):
        return finished
    folder.mkdir()
    rootfs, download = folder / "rootfs", folder / "kernel"
    download.mkdir()
    if spec.kernel != TWINBED.kernel and (common := cache.current(f"base-{TWINBED.key}")):
        say(f"fetching {spec.kernel}; everything else is shared with the image")
        kernel.fetch(spec.kernel, download)
        kernel.share(common / "rootfs", rootfs)
    else:
        say(f"installing {len(spec.packages)} packages with their dependencies, and fetching the kernel")
        _install(spec, rootfs, download, say)
        _strip(rootfs)
        _close(rootfs)
    say("taking the kernel and its modules")
    kernel_package, kernel_version = _take_kernel(spec, folder)
    packages = installed((rootfs / "var/lib/dpkg/status").read_text())
    identity: Document = {
        "specification": spec.key,
        "packages": packages,
        "kernel_package": kernel_package,
        "kernel_version": kernel_version,
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    return cache.publish(folder, "bases", key, {"digest": digest, **identity})


def require_tools(added: Added = NOTHING) -> None:
    """Raise ImageFailed if the build cannot work on this machine: rights, programs, space."""
    top = cache_root()
    if os.geteuid() != 0:
        raise ImageFailed(
            "building an image needs root: packages are installed under their own owners",
            advice=f"{build_command(added)}   (once, for all users; using the image needs no root)",
        )
    if missing := lacking(PURPOSES["image"]):
        raise ImageFailed(f"building an image needs {', '.join(need.shows for need in missing)}", advice=mend(missing))
    free = shutil.disk_usage(top).free
    if free < SPACE_BYTES:
        raise ImageFailed(
            f"{top}: building an image needs {SPACE_BYTES / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free",
            advice="free some space, or set TWINBED_CACHE to a folder on another disk",
        )


def installed(status: str) -> dict[str, str]:
    """Read dpkg's status file: version by package, for installed packages."""
    packages = {}
    for stanza in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if not line.startswith(" ") and ": " in line)
        if fields.get("Status", "").endswith(" installed"):
            packages[fields["Package"]] = fields["Version"]
    return packages


def apt_targets() -> str:
    """Return the indexes of this machine's apt, in the lines that ``source_files`` reads."""
    form = "$(SOURCESENTRY)|$(RELEASE)|$(CODENAME)|$(COMPONENT)"
    return run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).text


def source_files(targets: str, suite: str) -> list[Path]:
    """Return the apt source files with this suite's main component, from lines of ``file:line|release|codename|component``.

    Files of other origins are left out: their packages are not needed, and their servers may be down."""
    files: dict[Path, None] = {}
    for line in targets.splitlines():
        entry, release, codename, component = line.split("|")
        offered = {name.removesuffix("-updates").removesuffix("-security") for name in (release, codename)}
        if suite in offered and component == "main":
            files[Path(entry.rpartition(":")[0])] = None
    return list(files)


def _install(spec: Specification, rootfs: Path, download: Path, say: Callable[[str], None]) -> None:
    log = cache_root() / "build.log"
    log.unlink(missing_ok=True)  # so that no link is written through
    sources = source_files(apt_targets(), spec.suite)
    if not sources:
        say(f"no apt source of this machine has {spec.suite} main: using Debian's own servers")
    settings = download.with_name("apt.conf")
    settings.write_text(_apt_settings())
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("mmdebstrap", "--mode=root", "--variant=essential", "--format=directory"),
        f"--architectures={spec.architecture}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in spec.left_out),
        f"--aptopt={settings}",
        f"--include={','.join(spec.packages)}",
        f"--customize-hook={_HOOK}",
        # mmdebstrap finds Debian's keys with gpg, which a machine of another distribution may lack.
        *(() if sources else (f"--keyring={DEBIAN_KEYS}",)),
        *(spec.suite, str(rootfs), *map(str, sources)),
    ]
    env = {
        "SOURCE_DATE_EPOCH": str(_BORN_S),
        "TMPDIR": str(download.parent),
        "TWINBED_KERNEL": str(download),
        "TWINBED_KERNEL_PACKAGE": spec.kernel,
        "DEBIAN_FRONTEND": "noninteractive",
        "LC_ALL": "C.UTF-8",
    }
    try:
        run(argv, env=env, log=log, limit_s=900)
    except ProcessFailed as error:
        raise _explained(error, log) from error
    settings.unlink()


def _apt_settings() -> str:
    """Return this machine's apt configuration for reaching servers (proxy, retries, credentials)."""
    dump = run(["apt-config", "dump", "--format", '%F "%v";%n', "Acquire"]).text
    kept = [line for line in dump.splitlines() if any(fnmatch.fnmatch(line.split(" ")[0], name) for name in _FROM_APT)]
    return "\n".join([*kept, 'Dir::Etc::netrc "/etc/apt/auth.conf";', 'Dir::Etc::netrcparts "/etc/apt/auth.conf.d";', ""])


def _explained(error: ProcessFailed, log: Path) -> ImageFailed:
    output = last_bytes(log, MOST_BYTES).decode(errors="replace")
    tail = "".join(f"\n    {line}" for line in output.strip().splitlines()[-6:])
    advice = f"less {log}   (the log); fix the problem, then twinbed image build"
    if "No space left on device" in output:
        advice = "free some space, or set TWINBED_CACHE to a folder on another disk"
    elif any(text in output for text in _UNREACHABLE):
        advice = "apt cannot reach its servers: make `apt-get update` work (network, proxy, /etc/apt); then twinbed image build"
    elif "Unable to locate package" in output:
        advice = "the machine's apt sources lack a package: add all of Debian's main component, then apt-get update"
    elif "root filesystem propagation" in output:  # the error of unshare in a chroot that is no mount point
        advice = "in a chroot the build needs a mount point: `mount --bind FOLDER FOLDER` before entering it"
    return ImageFailed(f"mmdebstrap failed (log: {log}){tail}", advice=advice)


def _strip(rootfs: Path) -> None:
    """Remove traces of the building machine: its apt sources and settings, names, logs, caches."""
    for name in ("sources.list", "apt.conf.d/99mmdebstrap"):
        (rootfs / "etc/apt" / name).unlink(missing_ok=True)
    (rootfs / "etc/dpkg/dpkg.cfg.d/99mmdebstrap").unlink(missing_ok=True)
    for folder in ("etc/apt/sources.list.d", "var/log", "var/cache/debconf", "var/cache/ldconfig", "var/lib/apt"):
        for path in sorted((rootfs / folder).rglob("*"), reverse=True):
            if not path.is_dir() or path.is_symlink():
                path.unlink()
    (rootfs / "etc/hostname").write_text("twinbed\n")
    (rootfs / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (rootfs / "etc/resolv.conf").write_text("")
    take_privileges(rootfs)


def take_privileges(rootfs: Path) -> None:
    """Remove setuid, setgid and file capabilities: nobody updates the files in this machine's cache, and hosts start their
    programs as root anyway."""
    for path in rootfs.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            continue
        if mode & (stat.S_ISUID | stat.S_ISGID):
            path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))
        if CAPABILITIES in os.listxattr(path, follow_symlinks=False):
            os.removexattr(path, CAPABILITIES, follow_symlinks=False)


def _close(rootfs: Path) -> None:
    """Let only root write, since users of this machine can reach the image. Hosts mount an empty /tmp of their own."""
    (rootfs / "var/tmp").rmdir()
    (rootfs / "var/tmp").symlink_to("../tmp")
    (rootfs / "dev/console").unlink(missing_ok=True)
    only_root_writes(rootfs)


def only_root_writes(rootfs: Path) -> None:
    for path in (rootfs, *rootfs.rglob("*")):
        mode = path.lstat().st_mode
        if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and mode & 0o022:
            path.chmod(stat.S_IMODE(mode) & ~0o1022)


def _take_kernel(spec: Specification, folder: Path) -> tuple[str, str]:
    """Put vmlinux, the boot modules (modules/, with their order in modules.json) and the guest's other modules in their places.

    Return the kernel package with its version, and the kernel's version."""
    debs = list((folder / "kernel").glob("linux-image-*.deb"))
    if len(debs) != 1:
        raise ImageFailed(
            f"{spec.kernel} must lead to one kernel package, not {len(debs)} (log: {cache_root() / 'build.log'})",
            advice="apt-cache search ^linux-image-   (lists kernel packages)",
        )
    package = run(["dpkg-deb", "--show", "--showformat", "${Package} ${Version}", str(debs[0])]).text
    unpacked = folder / "kernel" / "unpacked"
    run(["dpkg-deb", "--extract", str(debs[0]), str(unpacked)], limit_s=300)
    (kernel_modules,) = (unpacked / "lib/modules").iterdir()
    version = kernel_modules.name
    try:
        (folder / "vmlinux").write_bytes(kernel.uncompressed((unpacked / f"boot/vmlinuz-{version}").read_bytes()))
    except ValueError as error:
        raise ImageFailed(f"{package}: {error}") from None
    home = folder / "rootfs/usr/lib/modules"
    home.mkdir(exist_ok=True)
    tree = kernel_modules.rename(home / version)
    available = modules.listed(tree)
    try:
        built_in = (tree / "modules.builtin").read_text().split()
        boot = modules.named(available, spec.boot_modules, built_in)
        drivers = modules.names(tree)
        nics = [name for name in spec.nic_modules if spec.kernel == TWINBED.kernel or modules.module_name(name) in drivers]
        nics = modules.named(available, nics, built_in)
        needs = modules.needs(tree, [*modules.matching(available, spec.guest_modules), *boot, *nics])
    except LookupError as error:
        raise ImageFailed(f"{package}: {error}") from None
    boot = modules.loading_order(needs, boot)
    nics = modules.loading_order(needs, nics)
    _copy_boot_modules(tree, folder / "modules", boot, [path for path in nics if path not in boot])
    for path in list(tree.rglob("*.ko*")):
        if path.relative_to(tree).as_posix() not in needs:
            path.unlink()
    for inner in sorted(tree.rglob("*"), reverse=True):
        if inner.is_dir() and not any(inner.iterdir()):
            inner.rmdir()
    run(["chroot", str(folder / "rootfs"), "/sbin/depmod", version])
    shutil.rmtree(folder / "kernel")
    return package, version


def _copy_boot_modules(tree: Path, home: Path, needed: Sequence[str], optional: Sequence[str]) -> None:
    home.mkdir()
    order: list[Mapping[str, object]] = []
    for path in (*needed, *optional):
        name = Path(path).name
        shutil.copyfile(tree / path, home / name)
        order.append({"name": name, "optional": path in optional})
    (home / "modules.json").write_text(json.dumps(order, indent=1) + "\n")
