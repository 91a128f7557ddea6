"""What a container's programs, which are root's, leave in the folder of artifacts: nothing that gives anybody anything.

Each attack is tried in a run of a study; another user of the machine looks on.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults import Carried, carry

from twinbed.contracts.bed import Bed
from twinbed.image import Image

OTHER = 12345
"""A user of the machine."""
ACL = "0200000001000600ffffffff020007003930000004000400ffffffff10000700ffffffff20000400ffffffff"
"""user::rw-, user:12345:rwx, group::r--, mask::rwx, other::r-- (acl(5))."""
CAPABILITY = "0100000200200000000000000000000000000000"
"""cap_net_raw=ep (the kernel's struct vfs_cap_data, revision 2)."""
SET = (
    'perl -e "my (\\$f, \\$n, \\$v) = (\\$ARGV[0], \\$ARGV[1], pack(q(H*), \\$ARGV[2]));'
    ' exit(syscall(188, \\$f, \\$n, \\$v, length \\$v, 0) != 0)"'
)
"""setxattr(2), by a shell."""
WORKS = {
    "a setuid program": "cp /usr/bin/id setuid && chmod 6755 setuid && test -u setuid",
    "one of another user": "cp /usr/bin/id given && chown 1234:1234 given && chmod 6755 given",
    "a setgid folder": "mkdir shared && cp /usr/bin/id shared/setgid && chmod 2755 shared/setgid && chmod 3777 shared",
    "a closed folder": "mkdir closed && echo x > closed/file && chmod 0 closed/file closed",
    "a file that all may write": "echo x > open && chmod 666 open",
    "an access list": f"echo x > listed && {SET} listed system.posix_acl_access {ACL}",
    "hard links": "echo x > first && ln first second",
    "a symbolic link": "ln -s /etc/shadow link",
    "a named pipe": "mkfifo pipe",
    "a terminal's escape": "echo x > $(printf '\\033[31mred')",
    "two lines": 'echo x > "$(printf "two\\nlines")"',
    "a sparse file": "truncate -s 100G sparse",
    "a file that lies deep": "mkdir -p d/d/d/d/d/d/d/d/d/d && echo x > d/d/d/d/d/d/d/d/d/d/deep",
}
"""Shell commands that a program may well carry out."""
REFUSED = {
    "a program is run": "cp /usr/bin/id program && ./program",
    "a device": "mknod device c 1 3",
    "capabilities": f"cp /usr/bin/id able && {SET} able security.capability {CAPABILITY}",
    "an immutable file": "touch kept && perl -e 'open(F, q(kept)); my $f = pack(q(l), 16); exit(!ioctl(F, 0x40086602, $f))'",
}
STUDY = """
study: artifacts
testbeds: {bed: {driver: container}}
workload: {kind: http, duration: 1s, max_requests: 200}
replicates: 1
"""
KINDS = {"its own": "", "none: the run starts a program here that needs the machine's root": "instruments: [syscalls]\n"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine comes to."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_other(*argv: str) -> subprocess.CompletedProcess[str]:
    # By a shell: setpriv itself still has root's capabilities when it looks for the program.
    user = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
    command = [*user, "sh", "-c", 'exec "$@"', "sh", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_a_program_leaves_gives_anybody_anything(
    kind: str, open_folder: Path, image: Image, probe: Path, leaves_nothing: None
) -> None:
    while_it_ran: list[str] = []
    owners: set[int] = set()

    def attack(bed: Bed) -> None:
        client = bed.hosts["client"]
        assert bed.passport["client"]["user namespace"] == kind
        for what, command in WORKS.items():
            done = client.run(["sh", "-c", f"cd {client.artifacts} && {command}"], check=False)
            while_it_ran.extend([] if done.code == 0 else [f"{what} cannot be tried: {done.stderr.decode()}"])
        for what, command in REFUSED.items():
            if client.run(["sh", "-c", f"cd {client.artifacts} && {command}"], check=False).code == 0:
                while_it_ran.append(f"not refused: {what}")
        (place,) = (open_folder / "results/runs").glob(".unfinished-*/artifacts/client")
        owners.add((place / "setuid").stat().st_uid)
        for words in (
            ["ls", str(place)],
            [str(place / "setuid")],
            ["cat", str(place / "open")],
            ["touch", str(place / "open")],
        ):
            if as_other(*words).returncode == 0:
                while_it_ran.append(f"another user may {' '.join(words)}")
        while_it_ran.append("tried")

    carried = carry(STUDY + KINDS[kind], open_folder / "results", image, probe, attack)
    assert while_it_ran == ["tried"]
    assert (owners == {0}) == kind.startswith("none")
    place = held_to(carried)
    program = place / "setuid"
    assert as_other("test", "-r", str(program)).returncode == 0, "results may be read"
    assert as_other(str(program)).returncode != 0
    assert as_other("sh", "-c", f"echo x >> {place}/open").returncode != 0
    assert as_other("sh", "-c", f"echo x >> {place}/listed").returncode != 0
    assert as_other("sh", "-c", f"echo x > {place}/shared/new").returncode != 0


def held_to(carried: Carried) -> Path:
    """Hold what is left to what may be left. Return the client's folder."""
    (record,) = carried.records
    run = carried.results / "runs" / record["id"]
    place = run / "artifacts/client"
    user, group = os.geteuid(), os.getegid()
    for path in [run, *run.rglob("*")]:
        about = path.lstat()
        assert (about.st_uid, about.st_gid) == (user, group), path
        assert stat.S_IMODE(about.st_mode) == (0o755 if path.is_dir() else 0o644), path
        assert not path.is_symlink() and os.listxattr(path) == [], path
    assert (record["status"], record["failed_phase"]) == ("failed", "collect")
    names = {str(path.relative_to(place)) for path in place.rglob("*")}
    assert names >= {"setuid", "given", "shared/setgid", "closed/file", "open", "listed", "first", "second", "ab.tsv"}
    assert names.isdisjoint({"link", "pipe", "sparse", "device"}) and not any("deep" in name for name in names)
    for removed in (
        "client/'\\x1b[31mred' (no name of an artifact",
        "client/'two\\nlines' (no name of an artifact",
        "client/link (a symbolic link)",
        "client/pipe (a named pipe)",
        "client/sparse (a sparse file: of its 107,374,182,400 bytes 0 are on the disk)",
        "client/d/d/d/d/d/d/d/d/d (a folder within 8 others)",
    ):
        assert removed in record["reason"]
    assert record["reason"].isprintable()
    return place


GUEST = """
study: guest
testbeds: {bed: {driver: mixed, client: {driver: qemu, nic: virtio-net-pci, accelerator: tcg}, server: {driver: container}}}
workload: {kind: http, duration: 1s, max_requests: 20}
replicates: 1
"""
"""What a guest does to a file has no meaning here but its name, its size and its bytes."""
OF_A_GUEST = {
    "cp /usr/bin/id setuid && chmod 6755 setuid && chown 1234 setuid && mkdir folder && ln -s /etc/shadow link": None,
    "echo x > $(printf '\\033[31mred')": r"client: '\x1b[31mred' is no name of an artifact",
    "truncate -s 4E sparse": "client: its artifacts have 4,611,686,",
}


@pytest.mark.parametrize("command", OF_A_GUEST)
def test_what_a_guest_leaves_comes_as_plain_files(command: str, open_folder: Path, image: Image, probe: Path) -> None:
    def attack(bed: Bed) -> None:
        client = bed.hosts["client"]
        client.run(["sh", "-c", f"cd {client.artifacts} && {command}"], limit_s=60.0)

    carried = carry(GUEST, open_folder / "results", image, probe, attack)
    (record,) = carried.records
    place = carried.results / "runs" / record["id"] / "artifacts/client"
    assert all(path.name.isprintable() and path.stat().st_blocks < 2**20 for path in place.iterdir())
    if reason := OF_A_GUEST[command]:
        assert record["status"] == "failed" and reason in record["reason"]
        return
    assert record["status"] == "complete"
    about = (place / "setuid").stat()
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (os.geteuid(), 0o644)
    assert not (place / "link").is_symlink() and not (place / "folder").exists()


def test_mounts_of_a_container_give_no_rights(open_folder: Path, image: Image, probe: Path) -> None:
    found: list[str] = []

    def read(bed: Bed) -> None:
        found.extend(bed.hosts["client"].read("/proc/self/mounts").decode().splitlines())

    carried = carry(STUDY, open_folder / "results", image, probe, read)
    assert carried.ending.complete == 1
    options = {line.split()[1]: set(line.split()[3].split(",")) for line in found}
    assert options["/run/twinbed"] >= {"nosuid", "nodev", "noexec"}
    assert options["/usr/bin/twinbed-probe"] >= {"ro", "nosuid", "nodev"}
    devices = {"/dev", *(path for path in options if path.startswith("/dev/")), "/proc/kcore"}
    for path, words in options.items():
        if path.startswith("/dev/") or words.isdisjoint({"rw"}):
            continue
        assert "nosuid" in words, path
        assert "nodev" in words or path in devices, path


def test_the_image_has_no_program_with_another_users_rights(image: Image) -> None:
    """It lies in a cache, where nobody updates it."""
    found = [path for path in image.rootfs.rglob("*") if not path.is_symlink()]
    assert [path for path in found if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)] == []
    assert [path for path in found if "security.capability" in os.listxattr(path)] == []
    assert any(path.name == "su" for path in found)
