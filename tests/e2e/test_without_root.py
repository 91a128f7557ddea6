"""A study by a user who has no rights but to make user namespaces: containers, a shaped link, packets, counters, latency."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from twinbed.hosts.cache import OF_ROOT, cache_root
from twinbed.image import Image

pytestmark = pytest.mark.privileged

RUNTIME = "/run/user"
USER = 61234
"""No account has it: a user needs none."""
COMMAND = "import sys; from twinbed.cli.main import main; sys.exit(main())"
ATTACKED = """
import os, sys
from pathlib import Path
from tests.faults import carry
from twinbed.image import find, probe_path

def attack(bed):
    client = bed.hosts["client"]
    commands = [
        "cp /usr/bin/id setuid && chown www-data setuid && chmod 6755 setuid",
        "mkdir closed && echo x > closed/file && mkdir closed/inner && echo x > closed/inner/file",
        "chown -R www-data closed && chmod 0 closed/file closed/inner closed",
        "mkdir mine && echo x > mine/file && chmod 0 mine/file mine",
        "ln -s /etc/shadow link",
        "mkdir -p '.f/g' && chown -R www-data .f && chmod 0 .f/g .f",
    ]
    for command in commands:
        client.run(["sh", "-c", f"cd {client.artifacts} && {command}"])
    (folder,) = Path("results/runs").glob(".unfinished-*")
    print(oct(folder.stat().st_mode), (folder / "artifacts/client/setuid").stat().st_uid)

text = Path("study.yaml").read_text().replace(", latency", "").replace("topology: {link: {rate: 100mbit, delay: 2ms}}\\n", "")
carry(text, Path("results"), find(), probe_path(), attack, testbed="joined")
"""
STUDY = """
study: without-root
testbeds: {joined: {driver: container}, apart: {driver: container, tso: off}}
topology: {link: {rate: 100mbit, delay: 2ms}}
workload: {kind: http, duration: 1s, max_requests: 500}
instruments: [packets, counters, latency]
replicates: 1
"""


def opened(needed: Iterable[Path]) -> list[str]:
    """Shell commands that let everybody come to the folders, in a mount namespace of its own. Folders above them that only root
    may enter are covered by new ones with nothing else in them."""
    covered: dict[Path, list[Path]] = {}
    for folder in needed:
        for above in reversed(folder.parents):
            if not above.stat().st_mode & 0o001:
                covered.setdefault(above, []).append(folder)
                break
    lines = []
    for number, (above, folders) in enumerate(covered.items()):
        new = f"/run/opened-{number}"
        lines += [f"mkdir {new}", f"mount -t tmpfs -o mode=755 opened {new}"]
        for folder in folders:
            there = shlex.quote(f"{new}/{folder.relative_to(above)}")
            lines += [f"mkdir -p {there}", f"mount --rbind {shlex.quote(str(folder))} {there}"]
        lines.append(f"mount --rbind {new} {shlex.quote(str(above))}")
    return lines


@dataclass(frozen=True)
class User:
    """A user's home and cache; the image is in root's cache."""

    home: Path
    cache: Path
    image: Image


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All users have one cache, so that the image is checked once."""
    folder = tmp_path_factory.mktemp("cache")
    os.chown(folder, USER, USER)
    return folder


@pytest.fixture
def user(tmp_path: Path, cache: Path, image: Image) -> User:
    home = tmp_path / "home"
    home.mkdir()
    (home / "study.yaml").write_text(STUDY)
    for path in (home, home / "study.yaml"):
        os.chown(path, USER, USER)
    return User(home, cache, image)


def as_user(
    user: User, *words: str, account: bool = False, taps: bool = False, program: str = COMMAND
) -> subprocess.CompletedProcess[str]:
    """``account``: one with subordinate ids, which may run programs that give them. ``taps``: one who may make tap devices."""
    code, home = Path(__file__).parents[2], user.home
    folders = [home, user.cache, code, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    variables = {"HOME": home, "TWINBED_CACHE": user.cache, "TMPDIR": home, "XDG_RUNTIME_DIR": RUNTIME}
    variables |= {name: os.environ[name] for name in ("PATH", "PYTHONPYCACHEPREFIX")} | {"PYTHONPATH": f"{code / 'src'}:{code}"}
    confined = () if account else ("--bounding-set=-all", "--no-new-privs")
    command = [
        *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *confined),
        *("env", "-i", *(f"{name}={value}" for name, value in variables.items()), sys.executable, "-c", program, *words),
    ]
    script = [
        *("mount -t tmpfs -o mode=755 run /run", f"install -d -o {USER} {RUNTIME}", *(_account() if account else ())),
        *(*_of_root(user.image), *opened(folders)),
        *(("mknod -m 666 /run/tun c 10 200", "mount --bind /run/tun /dev/net/tun") if taps else ()),
        *(f"cd {shlex.quote(str(home))}", f"exec {shlex.join(command)}"),
    ]
    outer = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(script)]
    return subprocess.run(outer, capture_output=True, text=True, check=False, timeout=200)


def _of_root(image: Image) -> list[str]:
    """Shell commands that put this image alone in the place of root's cache: a user checks every image that is there."""
    top, folder = "/run/of-root", image.rootfs.parent
    there = f"{top}/images/{folder.name}"
    return [
        *(f"mkdir -p {there} {top}/current {OF_ROOT}", f"mount --bind {shlex.quote(str(folder))} {there}"),
        *(f"cp -P {shlex.quote(str(cache_root()))}/current/* {top}/current", f"mount --rbind {top} {OF_ROOT}"),
    ]


def _account() -> list[str]:
    """Shell commands that make one in the mount namespace, as useradd does."""
    lines = {
        "passwd": f"somebody:x:{USER}:{USER}::/:/bin/sh",
        "group": f"somebody:x:{USER}:",
        **dict.fromkeys(("subuid", "subgid"), "somebody:300000:65536"),
    }
    return [
        f"touch /etc/{name}; {{ cat /etc/{name}; echo {line}; }} > /run/{name}; mount --bind /run/{name} /etc/{name}"
        for name, line in lines.items()
    ]


def ids(results: Path) -> set[tuple[str, int]]:
    """Whose user namespace each container was in, and how many ids there were."""
    passports = [json.loads(path.read_text()) for path in (results / "runs").glob("*/passport.json")]
    return {(one[host]["user namespace"], one[host]["ids"]) for one in passports for host in ("client", "server")}


def test_a_user_finds_root_s_image_and_keeps_notes_of_the_user_s_own(user: User) -> None:
    listed = as_user(user, "image", "list")
    assert any(line.startswith(f"* {user.image.digest}") for line in listed.stdout.splitlines()), listed
    assert str(OF_ROOT) in listed.stdout, listed
    note = user.cache / "checked" / f"{user.image.digest}-{USER}"
    assert note.stat().st_uid == USER
    refused = as_user(user, "image", "build", "--force")
    assert refused.returncode == 3 and f"sudo {sys.executable} -m twinbed.image" in refused.stderr


@pytest.mark.parametrize("account", [True, False])
def test_what_programs_leave_becomes_the_users_own(account: bool, user: User, leaves_nothing: None) -> None:
    """Also what other users left, in folders that only they may enter, where the account has ids for those users. Servers that
    give up root need such ids, too."""
    ran = as_user(user, account=account, program=ATTACKED if account else ATTACKED.replace("www-data", "root"))
    assert ran.stdout.split() == ["0o40700", f"{300_000 + 32 if account else USER}"], ran.stderr
    assert ids(user.home / "results") == {(f"the lab's, of user {USER}", 65_536 if account else 1)}
    runs = user.home / "results" / "runs"
    records = {
        record["levels"]["testbed"]: record for record in (json.loads(path.read_text()) for path in runs.glob("*/run.json"))
    }
    record = records["joined"]
    assert (record["status"], records["apart"]["status"]) == ("failed", "complete")
    assert "client/'.f' (no name of an artifact" in record["reason"] and "client/link (a symbolic link)" in record["reason"]
    run = runs / record["id"]
    for path in [run, *run.rglob("*")]:
        assert path.lstat().st_uid == USER, path
        assert path.lstat().st_mode & 0o7777 == (0o755 if path.is_dir() else 0o644), path
    kept = {str(path.relative_to(run / "artifacts/client")) for path in (run / "artifacts/client").rglob("*")}
    assert kept >= {"setuid", "closed/file", "closed/inner/file", "mine/file"}


def test_a_study_of_containers_needs_no_root(user: User, leaves_nothing: None) -> None:
    checked = as_user(user, "check", "study.yaml")
    assert f"user {USER}, without root: a lab gets its own user namespace" in checked.stdout, checked.stderr
    assert "FAILS" not in checked.stdout and checked.returncode == 0

    ran = as_user(user, "run", "study.yaml", "-o", "results", "--no-report")
    assert ran.returncode in (0, 5), ran.stdout + ran.stderr
    records = [json.loads(path.read_text()) for path in sorted((user.home / "results" / "runs").glob("*/run.json"))]
    assert [record["status"] for record in records] == ["complete"] * 2
    assert {path.stat().st_uid for path in (user.home / "results").rglob("*")} == {USER}
    assert ids(user.home / "results") == {(f"the lab's, of user {USER}", 1)}
    for record in records:
        kept = {Path(artifact["path"]).name for artifact in record["artifacts"] if artifact["bytes"]}
        assert {"client.pcap", "server.pcap", "counters.snap"} <= kept


GUESTS = """
study: resumed
testbeds: {bed: {driver: qemu, boot: snapshot, accelerator: tcg}}
workload: {kind: http, duration: 5s, max_requests: 20, payload: 500B}
instruments: []
replicates: 1
seed: 1
"""


def test_guests_resume_from_the_user_s_own_snapshot(user: User, leaves_nothing: None) -> None:
    """Root of a user namespace saves it and resumes from it."""
    (user.home / "guests.yaml").write_text(GUESTS)
    ran = as_user(user, "run", "guests.yaml", "-o", "results", "--no-report", taps=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (passport,) = [json.loads(path.read_text()) for path in (user.home / "results/runs").glob("*/passport.json")]
    assert {passport[host]["boot"] for host in ("client", "server")} == {"snapshot"}
    (saved,) = (user.cache / "snapshots").glob("*/memory")
    assert saved.stat().st_uid == USER
