"""What a container's programs, which are root's, are kept from on the machine: each attack is tried, and would do no harm."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import site_in

from twinbed.contracts.bed import Bed
from twinbed.contracts.host import Host
from twinbed.contracts.site import Site
from twinbed.hosts import cgroups
from twinbed.hosts.error import HostError
from twinbed.image import Image
from twinbed.model.topology import Topology
from twinbed.testbeds.container import container

KEPT = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10, 12, 13, 18))
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, NET_ADMIN, NET_RAW, SYS_CHROOT of
linux/capability.h."""
SHELL = {
    "core_pattern": 'old=$(cat /proc/sys/kernel/core_pattern) && echo "$old" > /proc/sys/kernel/core_pattern',
    "another file of the kernel's": "cat /proc/sys/vm/swappiness > /tmp/x && cat /tmp/x > /proc/sys/vm/swappiness",
    "sysrq": "echo h > /proc/sysrq-trigger",
    "sysfs": "cat /sys/kernel/mm/transparent_hugepage/defrag | sed 's/.*\\[\\(.*\\)\\].*/\\1/' > /tmp/x"
    " && cat /tmp/x > /sys/kernel/mm/transparent_hugepage/defrag",
    "a disk": "mknod /tmp/disk b 8 0",
    "a device's mode": "chmod 666 /dev/null",
    "a device's owner": "chown 0 /dev/zero",
    "the kernel's memory": 'test -n "$(head -c 16 /proc/kcore | od -An -tx1)"',
    "namespaces": "unshare --mount true",
    "namespaces of a user": "unshare --user --map-root-user true",
    "the network of another process": "nsenter --net=/proc/1/ns/net true",
    "the agent's environment": "cat /proc/1/environ",
    "the agent's root": "ls /proc/1/root/",
    "the clock": "date -s @$(date +%s)",
    "what the agent's program is, by a folder above it": "perl -e 'exit !rename(qq(/usr/bin), qq(/usr/was))'",
    "what the agent's program is": "cat /bin/sh > /usr/bin/twinbed-probe",
    "kernel messages": "dmesg",
    "real-time priority": "chrt --fifo 1 true",
}
CALLS = {
    "a file system": "syscall(165, my $a = 'none', my $b = '/mnt', my $c = 'tmpfs', 0, 0)",
    "a new proc": "syscall(165, my $a = 'proc', my $b = '/mnt', my $c = 'proc', 0, 0)",
    "remounting": "syscall(165, my $a = 'none', my $b = '/proc', my $c = '', 32, 0)",
    "uncovering": "syscall(166, my $a = '/usr/bin/twinbed-probe', 2)",
    "a module": "syscall(313, 0, 0, 0)",
    "BPF": "syscall(321, 0, 0, 0)",
    "events": "syscall(298, 0, 0, -1, -1, 0)",
    "keys": "syscall(250, 0, -3, 0)",
    "a handle": "syscall(304, -1, 0, 0)",
    "userfaultfd": "syscall(323, 0)",
    "io_uring": "syscall(425, 1, 0)",
    "a mount by descriptor": "syscall(428, -100, 0, 0)",
    "the same with attributes": "syscall(467, -100, 0, 0, 0, 0)",
    "clone with a namespace": "syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "kexec": "syscall(246, 0, 0, 0, 0)",
}
"""Numbers of asm/unistd_64.h. Their arguments are none that could be right: without a filter the error is another."""


@pytest.fixture(scope="module")
def within(tmp_path_factory: pytest.TempPathFactory, image: Image, probe: Path) -> Iterator[Host]:
    site = site_in(tmp_path_factory.mktemp("boundary"), "boundary", image, probe)
    with container.up(container.params(), Topology(), site) as bed:
        yield bed.hosts["client"]


def said(host: Host, *argv: str) -> str:
    return host.run(list(argv)).text


def refused(host: Host, *argv: str) -> str:
    with pytest.raises(HostError) as failure:
        host.run(list(argv))
    return str(failure.value)


@pytest.mark.parametrize("attack", SHELL)
def test_a_shell(attack: str, within: Host) -> None:
    refused(within, "sh", "-c", SHELL[attack])


@pytest.mark.parametrize("attack", CALLS)
def test_a_system_call_is_not_permitted(attack: str, within: Host) -> None:
    assert said(within, "perl", "-e", f"my $r = {CALLS[attack]}; print $r == -1 ? $!+0 : 'done'") == "1"


@pytest.mark.parametrize("path", ["/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/devices/virtual/powercap", "/sys/firmware"])
def test_folders_of_the_machines_hardware_are_empty(path: str, within: Host) -> None:
    assert said(within, "sh", "-c", f"! test -e {path} || ls -A {path}") == ""


@pytest.mark.parametrize("path", ["/proc/kcore", "/proc/keys", "/proc/kpagecount", "/proc/kpageflags", "/proc/mtrr"])
def test_files_of_the_kernels_memory_are_empty(path: str, within: Host) -> None:
    assert said(within, "sh", "-c", f"! test -e {path} || head -c 64 {path}") == ""


def test_capabilities_and_filter(within: Host) -> None:
    status = dict(line.split(":\t", 1) for line in said(within, "cat", "/proc/self/status").splitlines())
    assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")] == [KEPT] * 3
    assert [int(status[name], 16) for name in ("CapInh", "CapAmb")] == [0, 0]
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize("name", ["twinbed-probe", "/usr/bin/twinbed-probe"])
def test_nothing_runs_in_the_place_of_the_agents_own_program(name: str, within: Host) -> None:
    said(within, "sh", "-c", "cp /bin/sh /usr/local/sbin/twinbed-probe && cp /bin/sh /usr/local/bin/twinbed-probe")
    assert "id" not in refused(within, name, "-c", "id").partition("uid=")[1]
    assert "twinbed-probe" in refused(within, name, "-c", "id")


def test_no_service_of_the_machine_is_reached(within: Host) -> None:
    name = f"twinbed-test-{uuid.uuid4().hex}"
    with socket.create_server(("0.0.0.0", 0)) as listening, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        port = listening.getsockname()[1]
        own = {
            "127.0.0.1",
            "127.0.0.2",
            *(info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)),
        }
        for address in sorted(own):
            socket.create_connection((address, port), 5).close()
            reach = f"use IO::Socket::INET; exit !IO::Socket::INET->new(PeerAddr => '{address}:{port}', Timeout => 2)"
            refused(within, "perl", "-e", reach)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"\0{name}")
        reach = f"use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); exit !connect(S, pack_sockaddr_un(qq(\\0{name})))"
        refused(within, "perl", "-e", reach)


def test_only_its_own_processes_are_seen(within: Host) -> None:
    seen = said(within, "sh", "-c", "for each in /proc/[0-9]*; do cat $each/comm; done 2>/dev/null").split()
    assert set(seen) == {"sh", "twinbed-probe"}


def test_what_studies_need_works(within: Host) -> None:
    for command in (
        "tc qdisc add dev eth0 root handle 5: pfifo limit 20 && tc qdisc del dev eth0 root",
        "ethtool -K eth0 gro off && ethtool -K eth0 gro on",
        "echo 1 > /proc/sys/net/ipv4/tcp_autocorking",
        "ip link add v0 type veth peer name v1 && ip link del v0",
        "chroot / true",
        "echo lost > /dev/null && head -c 1 /dev/zero > /dev/null && ! echo > /dev/full",
        "su -s /bin/sh www-data -c 'id -un'",
        "perl -e 'use Socket; socket(S, AF_INET, SOCK_RAW, 1) or die'",
    ):
        said(within, "sh", "-c", command)


def test_it_is_read_back_and_processes_are_limited(site: Callable[..., Site], leaves_nothing: None) -> None:
    with container.up(container.params(), Topology(), site()) as bed:
        found = {item.setting: item.found for item in bed.applied if item.subject == "client"}
        assert all(item.agrees for item in bed.applied)
        assert (int(found["CapEff"], 16), found["Seccomp"], found["NoNewPrivs"]) == (KEPT, "2", "1")
        if "pids" not in cgroups.hierarchies():
            assert "processes" not in found
            return
        most = found["processes"]
        bomb = "my $n = 0; while ($n < 9999) { my $p = fork; last unless defined $p; sleep 60 unless $p; $n++ } print $n"
        made = int(said(bed.hosts["client"], "perl", "-e", bomb))
        assert most - 50 < made < most


def test_its_root_is_nobody_on_the_machine(site: Callable[..., Site], leaves_nothing: None) -> None:
    """Its ids are a range of the machine's, in a user namespace of its own, and so are the owners of files that it leaves.
    Files of the image are root's within."""
    here = site()
    with container.up(container.params(), Topology(), here) as bed:
        first = {name: _first_id(bed, name) for name in ("client", "server")}
        client = bed.hosts["client"]
        assert all(item.agrees for item in bed.applied)
        assert bed.passport["client"]["user namespace"] == "its own"
        said(client, "sh", "-c", "echo 1 > $0/mine && chown www-data $0/mine && echo 2 > $0/roots", client.artifacts)
        assert said(client, "stat", "-c", "%u %a", "/etc/shadow") == "0 640\n"
        assert said(client, "sh", "-c", "cat /etc/shadow | wc -l") != "0\n"
        assert "twinbed-probe" in said(client, "sh", "-c", "touch /etc/x /usr/x /root/x && ls /usr/bin/twinbed-probe")
        running = client.start(["perl", "-e", "$| = 1; print qq(begun\\n); sleep 73"])
        running.says(b"begun", 30.0)
        assert _owners("sleep 73") == {f"{first['client']}"}
        running.signal(9)
    folder = here.place("client")
    assert [(folder / name).stat().st_uid - first["client"] for name in ("mine", "roots")] == [33, 0]


def test_runs_of_one_setting_have_one_passport(site: Callable[..., Site]) -> None:
    """Though ids differ: what varies in it is told as a residue."""
    found = []
    for run in ("one", "other"):
        with container.up(container.params(), Topology(), site(run)) as bed:
            found.append((bed.passport["client"], bed.passport["server"], _first_id(bed, "client")))
    assert found[0][:2] == found[1][:2]
    assert found[0][2] != found[1][2]


def _first_id(bed: Bed, name: str) -> int:
    (found,) = (item.found for item in bed.applied if (item.subject, item.setting) == (name, "uid_map"))
    assert found[0] == 0 and found[1] >= 524_288 and found[2] == 65_536
    return int(found[1])


def _owners(words: str) -> set[str]:
    """The machine's ids of those whose command line has the words."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if words.encode() in (process / "cmdline").read_bytes().replace(b"\0", b" "):
                found.add((process / "status").read_text().split("Uid:\t")[1].split()[0])
    return found


def test_what_needs_the_machines_root_gets_it_and_the_passport_says_so(site: Callable[..., Site]) -> None:
    with container.up(container.params(), Topology(), replace(site(), real_root={"client"})) as bed:
        why = {name: bed.passport[name]["user namespace"] for name in ("client", "server")}
        assert why["client"] == "none: the run starts a program here that needs the machine's root"
        assert why["server"] == "its own"
        assert said(bed.hosts["client"], "cat", "/proc/self/uid_map").split() == ["0", "0", "4294967295"]


def test_results_where_no_mount_can_map_ids_are_a_containers_all_the_same(site: Callable[..., Site], tmp_path: Path) -> None:
    """As on ramfs, which knows nothing of it: only the image is mapped."""
    (place := tmp_path / "artifacts").mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", str(place)], check=True)
    try:
        with container.up(container.params(), Topology(), replace(site(), artifacts=place)) as bed:
            client = bed.hosts["client"]
            assert bed.passport["client"]["user namespace"] == "its own"
            said(client, "sh", "-c", "echo 1 > $0/mine", client.artifacts)
            assert (place / "client/mine").read_text() == "1\n"
    finally:
        subprocess.run(["umount", str(place)], check=True)
