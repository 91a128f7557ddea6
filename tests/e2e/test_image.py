"""The real image: what is in it, judged by Debian's and the kernel's own tools, and a build that is killed."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from twinbed.image import Image, build, cache, find
from twinbed.image.specification import TWINBED

pytestmark = pytest.mark.privileged


@pytest.fixture(scope="module")
def image() -> Image:
    return build()


def said(*argv: str, **options: object) -> str:
    return subprocess.run(argv, capture_output=True, check=True, **options).stdout.decode()  # type: ignore[call-overload]


def test_a_built_image_is_found(image: Image) -> None:
    assert find() == image


def test_the_list_of_files_has_their_hashes(image: Image) -> None:
    folder = image.rootfs.parent
    listed = {path: sha256 for _, sha256, path in (line.split(" ", 2) for line in (folder / "contents").open())}
    for name in ("disk.erofs", "vmlinux", "initramfs.cpio", "rootfs/usr/bin/twinbed-probe", "rootfs/usr/sbin/nginx"):
        assert listed[f"{name}\n"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_the_packages_are_those_that_dpkg_finds(image: Image) -> None:
    admin = image.rootfs / "var/lib/dpkg"
    lines = said("dpkg-query", f"--admindir={admin}", "--show", "--showformat", "${Package}\t${Version}\t${db:Status-Status}\n")
    found = dict(line.split("\t")[:2] for line in lines.splitlines() if line.endswith("\tinstalled"))
    assert dict(image.packages) == found
    assert set(TWINBED.packages) <= set(found)


def test_the_disk_holds_what_the_folder_holds(image: Image, tmp_path: Path) -> None:
    said("fsck.erofs", f"--extract={tmp_path / 'disk'}", str(image.disk))
    said("diff", "--recursive", "--no-dereference", "--exclude=dev", str(image.rootfs), str(tmp_path / "disk"))


@pytest.mark.parametrize(
    "argv",
    [
        ("nginx", "-v"),
        ("ab", "-V"),
        ("iperf3", "--version"),
        ("irtt", "version"),
        ("tcpdump", "--version"),
        ("ethtool", "--version"),
        ("ip", "-V"),
        ("tc", "-V"),
        ("sysctl", "--version"),
        ("stress-ng", "--version"),
        ("openssl", "version"),
        ("modprobe", "--version"),
        ("twinbed-probe", "version"),
    ],
    ids=lambda argv: argv[0],
)
def test_its_programs_run(image: Image, argv: tuple[str, ...]) -> None:
    said("chroot", str(image.rootfs), *argv, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def test_wrk_is_there(image: Image) -> None:
    """wrk ends with 1 when it prints its version."""
    done = subprocess.run(["chroot", str(image.rootfs), "/usr/bin/wrk", "-v"], capture_output=True, check=False)
    assert done.stdout.startswith(b"wrk ")


def test_nobody_but_root_may_write_in_it(image: Image) -> None:
    """Users of this machine reach root's images, and what is changed there is no image any more."""
    tests = ["!", "-type", "l", "(", "-perm", "/022", "-o", "!", "-user", "0", ")"]
    found = said("find", str(image.rootfs.parent), *tests, "-printf", "%y %P\n").splitlines()
    assert [line for line in found if not line.startswith("c rootfs/dev/")] == []
    assert not (image.rootfs / "dev/console").exists()


def test_nothing_tells_which_machine_built_it(image: Image) -> None:
    sites = set(said("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages").split())
    assert sites
    for site in sites:
        host = site.partition("://")[2].partition("/")[0]
        search = ["grep", "--recursive", "--files-with-matches", "--fixed-strings", "--binary-files=without-match", host]
        done = subprocess.run([*search, "etc/apt", "etc/hosts", "var"], cwd=image.rootfs, capture_output=True, check=False)
        assert done.stdout == b""
    assert (image.rootfs / "etc/hostname").read_text() == "twinbed\n"
    assert (image.rootfs / "etc/resolv.conf").read_text() == ""


def test_the_initramfs_has_what_it_lists(image: Image, tmp_path: Path) -> None:
    with image.initramfs.open("rb") as archive:
        subprocess.run(["cpio", "-idm", "--quiet", "--no-absolute-filenames"], stdin=archive, cwd=tmp_path, check=True)
    listed = [line.split() for line in (tmp_path / "modules.list").read_text().splitlines()]
    assert {path for path, *_ in listed} == {f"/modules/{path.name}" for path in (tmp_path / "modules").iterdir()}
    required = {Path(path).stem for path, *optional in listed if not optional}
    assert {"virtio_pci", "virtio_blk", "virtio_console", "erofs", "overlay"} <= required
    of = {Path(path).stem: optional[1].split(",") for path, *optional in listed if optional}
    assert of["e1000"] == ["e1000"] and "virtio_net" in of["net_failover"], "by what modinfo says"
    assert (tmp_path / "rootfs.type").read_text().strip() == image.disk_type


def test_guests_can_load_what_studies_ask_for(image: Image) -> None:
    for name in ("sch_netem", "sch_fq", "sch_fq_codel", "8021q", "ip_gre", "vxlan", "openvswitch", "tcp_bbr", "virtio-rng"):
        said("chroot", str(image.rootfs), "/sbin/modprobe", "--dry-run", "--set-version", image.kernel_version, name)


def test_the_kernel_can_be_entered_directly(image: Image) -> None:
    """QEMU needs an ELF kernel with Xen's note 18, PHYS32_ENTRY; readelf prints it as type 0x12."""
    notes = said("readelf", "--notes", "--wide", str(image.kernel))
    assert "Xen" in notes
    assert "0x00000012" in notes


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A build into an empty cache, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "twinbed.image"],
        env={**os.environ, "TWINBED_CACHE": str(tmp_path)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.wait()


def processes_about(folder: Path) -> list[str]:
    lines = said("ps", "-eo", "pid,args", "--no-headers").splitlines()
    return [line for line in lines if str(folder) in line]


def until(condition: object, limit_s: float = 240) -> None:
    """Poll: what is waited for is another process's doing."""
    assert callable(condition)
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def test_a_killed_build_leaves_no_process_and_the_next_one_sweeps(
    builder: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: list(tmp_path.glob("tmp/*/base/rootfs/var/cache/apt/archives/**/*.deb")))
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    until(lambda: not processes_about(tmp_path), limit_s=60)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    assert find() is None
    with cache.building(lambda _: None) as work:
        assert list((tmp_path / "tmp").iterdir()) == [work]
    assert list((tmp_path / "images").iterdir()) == []
