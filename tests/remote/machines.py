"""Two machines to log in to: network, mount, PID, host name and IPC namespaces, each with a real sshd of its own.

    controller (10.99.0.1) ---- management switch ---- client (10.99.0.2), server (10.99.0.3): device mgmt
                                experiment switch ---- client, server: device exp

The switches are bridges in a namespace of their own.  Each namespace lives as long as one process that this one holds; the
machines' disks are memory.  Nothing of it has an end in the machine's own network.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANAGEMENT, EXPERIMENT = "mgmt", "exp"
FOLDER = "/var/lib/twinbed"
_LIMIT_S = 60.0
BARE_LOGIN = (
    "for start in ~/.bashrc ~/.bash_profile ~/.profile /etc/bash.bashrc; do"
    ' [ ! -e "$start" ] || mount --bind /dev/null "$start"; done'
)
"""In a mount namespace: without what this machine's own user has started at each login, which may wait for a lock that a killed
one has left."""
_MACHINE = f"""
set -e
mount --make-rprivate /
mount -t sysfs sysfs /sys
hostname "$1"
mount -t tmpfs -o size=$3 tmpfs /var/lib/twinbed
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/sshd
cp /etc/passwd /run/passwd
echo visitor:x:54321:54321::/:/bin/sh >> /run/passwd
mount --bind /run/passwd /etc/passwd
{BARE_LOGIN}
install -m 644 "$2" /run/authorized_keys
ip link set lo up
exec sleep infinity
"""


@dataclass
class Space:
    """A process that holds namespaces, and the way into them."""

    name: str
    process: subprocess.Popen[bytes]
    pid: int

    def enter(self, *argv: str) -> list[str]:
        kinds = ["-n"] if self.name in ("switches", "controller") else ["-n", "-m", "-p", "-u", "-i"]
        return ["nsenter", "-t", str(self.pid), *kinds, "--", *argv]

    def run(self, *argv: str, text: str | None = None, check: bool = True) -> str:
        done = subprocess.run(self.enter(*argv), input=text, capture_output=True, text=True, check=False, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {argv}: {done.stderr}")
        return done.stdout


OWN_CONFIG = "TWINBED_TEST_SSH_CONFIG"
"""In the environment: another ssh configuration in place of ``Machines.config``."""


@dataclass
class Machines:
    """``config`` is the ssh configuration with which both can be reached as ``client`` and ``server``. It stands for the user's
    own: a program ``ssh`` that has it is the first on the search path."""

    switches: Space
    controller: Space
    hosts: dict[str, Space]
    config: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def cut(self, device: str, host: str) -> None:
        """Take the host's cable out at the switch."""
        self.switches.run("ip", "link", "set", f"{device}-{host}", "down")

    def mend(self, device: str, host: str) -> None:
        self.switches.run("ip", "link", "set", f"{device}-{host}", "up")

    def silence(self, device: str, host: str) -> None:
        """Have the switch pass nothing to and from a host, while its link stays up."""
        self.switches.run("ip", "link", "set", f"{device}-{host}", "nomaster")

    def reconnect(self, device: str, host: str) -> None:
        self.switches.run("ip", "link", "set", f"{device}-{host}", "master", f"sw-{device}")

    def start_sshd(self, host: str) -> None:
        folder = self.config.parent
        log = (folder / f"{host}.sshd.log").open("ab")
        argv = self.hosts[host].enter("/usr/sbin/sshd", "-D", "-e", "-f", str(folder / f"{host}.sshd"))
        self.daemons[host] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(f"sshd of {host} listens", lambda: ":22 " in self.hosts[host].run("ss", "-ltn"))

    def timeouts(self, host: str) -> int:
        """Return how often TCP's retransmission timer has ended on a host, by the kernel's own clock."""
        heads, values = (
            line.split() for line in self.hosts[host].run("cat", "/proc/net/netstat").splitlines() if line.startswith("TcpExt:")
        )
        return int(values[heads.index("TCPTimeouts")])

    def has_sent(self, host: str, size_bytes: int) -> None:
        """Wait until a host has sent so much over the experiment link from now on."""
        counter = f"/sys/class/net/{EXPERIMENT}/statistics/tx_bytes"

        def sent() -> int:
            return int(self.hosts[host].run("cat", counter))

        enough = sent() + size_bytes
        until(f"{host} has sent {size_bytes} bytes", lambda: sent() >= enough)

    def sshd_processes(self, host: str) -> list[int]:
        """As ids on this machine: the daemon and those that serve a connection."""
        return [pid for pid, line in processes_of(self.hosts[host]).items() if line.startswith("sshd")]

    def settings(self, **more: Any) -> dict[str, Any]:
        """What a study file says of a testbed of these two."""
        hosts = {name: {"ssh": name} for name in self.hosts}
        return {"lease": 20, "image": "none", "hosts": hosts, **more}


def until(what: str, holds: Callable[[], object], limit_s: float = _LIMIT_S, said: Callable[[], str] = str) -> None:
    """``said``: what is known where it never does."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}\n{said()}"
        time.sleep(0.02)


def processes_of(space: Space) -> dict[int, str]:
    """Processes in a machine's PID namespace or below it: id on this machine -> command line."""
    namespace = Path(f"/proc/{space.pid}/ns/pid").readlink()
    parents: dict[int, int] = {}
    inside: set[int] = set()
    lines: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(entry.name)
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            lines[pid] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if (entry / "ns" / "pid").readlink() == namespace:
                inside.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return {pid: lines[pid] for pid in inside if lines.get(pid)}


@contextlib.contextmanager
def machines(folder: Path, disk: str = "2g") -> Iterator[Machines]:
    """``folder`` keeps keys, configuration and logs; ``disk`` is the size of the machines' /var/lib/twinbed."""
    Path(FOLDER).mkdir(parents=True, exist_ok=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        switches = stack.enter_context(_space("switches", ["unshare", "-n", "sleep", "infinity"]))
        controller = stack.enter_context(_space("controller", ["unshare", "-n", "sleep", "infinity"]))
        config = _configure(folder, controller)
        flags = ["unshare", "-n", "-m", "-p", "-u", "-i", "--fork", "--mount-proc", "--kill-child"]
        hosts = {
            name: stack.enter_context(
                _space(name, [*flags, "sh", "-c", _MACHINE, "sh", name, str(config.parent / "user.pub"), disk])
            )
            for name in ("client", "server")
        }
        made = Machines(switches, controller, hosts, config)
        stack.enter_context(_first_on_the_path(folder / "bin", config))
        _wire(made)
        for name in hosts:
            made.start_sshd(name)
        try:
            yield made
        finally:
            for daemon in made.daemons.values():
                daemon.kill()
                daemon.wait()


@contextlib.contextmanager
def _first_on_the_path(folder: Path, config: Path) -> Iterator[None]:
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F "${{{OWN_CONFIG}:-{config}}}" "$@"\n')
    program.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextlib.contextmanager
def _space(name: str, argv: Sequence[str]) -> Iterator[Space]:
    ours = Path("/proc/self/ns/net").readlink()
    # Also when this process is killed, so that no test's machines outlive it.
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv], stdin=subprocess.DEVNULL)
    try:
        found: list[int] = []

        def there() -> bool:
            """Ends as `sleep infinity`: the process itself, or the child that unshare forked."""
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for pid in (process.pid, *map(int, children)):
                with contextlib.suppress(OSError):
                    line = Path(f"/proc/{pid}/cmdline").read_bytes()
                    if line.startswith(b"sleep\0") and Path(f"/proc/{pid}/ns/net").readlink() != ours:
                        found[:] = [pid]
            assert process.poll() is None, f"{name} ended"
            return bool(found)

        until(f"{name} is there", there)
        yield Space(name, process, found[0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _wire(made: Machines) -> None:
    # A bridge whose kernel looks for IPv6 routers would send solicitations of its own into the hosts' captures.
    made.switches.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    plan = ""
    for device in (MANAGEMENT, EXPERIMENT):
        plan += f"link add sw-{device} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\nlink set sw-{device} up\n"
        for space in (*made.hosts.values(), *([made.controller] if device == MANAGEMENT else [])):
            end = f"{device}-{space.name}"[:15]
            plan += f"link add {end} type veth peer name {device} netns {space.pid}\nlink set {end} master sw-{device} up\n"
    made.switches.run("ip", "-batch", "-", text=plan)
    for number, space in enumerate((made.controller, *made.hosts.values()), start=1):
        space.run("ip", "-batch", "-", text=f"link set lo up\nlink set mgmt up\naddr add 10.99.0.{number}/24 dev mgmt\n")
    for number, space in enumerate(made.hosts.values(), start=1):
        # As an administrator may have left it.
        text = f"link set exp up\naddr add 192.0.2.{number}/24 dev exp\naddr add 2001:db8::{number}/64 dev exp nodad\n"
        text += "route add 198.51.100.0/24 via 192.0.2.77 dev exp\n"
        space.run("ip", "-batch", "-", text=text)
    until("the links have come up", lambda: "tentative" not in "".join(s.run("ip", "addr") for s in made.hosts.values()))


_PROXY = """
import socket, sys
way = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
socket.send_fds(socket.socket(fileno=1), [b"x"], [way.fileno()])
"""
"""Connects where the controller is, and hands the connection to the ssh that asked."""


def _configure(folder: Path, controller: Space) -> Path:
    """Keys of both sides, each sshd's configuration and the client's."""
    _key(folder / "user")
    config = folder / "config"
    (folder / "proxy.py").write_text(_PROXY)
    proxy = controller.enter(sys.executable, "-ISE", str(folder / "proxy.py"))
    known, text = [], ""
    for number, name in enumerate(("client", "server"), start=2):
        key = folder / f"{name}.key"
        _key(key)
        known.append(f"10.99.0.{number} {key.with_suffix('.key.pub').read_text()}")
        (folder / f"{name}.sshd").write_text(
            f"ListenAddress 10.99.0.{number}\nHostKey {key}\nAuthorizedKeysFile /run/authorized_keys\nStrictModes no\n"
            "UsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n"
            "Subsystem sftp internal-sftp\n"
        )
        text += f"Host {name}\n  HostName 10.99.0.{number}\n"
    (folder / "known_hosts").write_text("".join(known))
    proxied = f"  ProxyCommand {shlex.join(proxy)} %h %p\n  ProxyUseFdpass yes\n"
    text += (
        f"Host *\n  User root\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n"
        f"  GlobalKnownHostsFile none\n{proxied}"
    )
    (folder / "direct").write_text(text.replace(proxied, ""))
    config.write_text(text)
    return config


def _key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, stdin=subprocess.DEVNULL)


def state(space: Space) -> dict[str, Any]:
    """Everything that twinbed could change on a machine, but for sshd's own processes."""
    routes = [space.run("ip", "-j", family, "route", "show", "table", "all") for family in ("-4", "-6")]
    sysctls = space.run("sh", "-c", "cd /proc/sys/net; grep -rs . ipv4 ipv6 | sort")
    busy = ("nf_", "route/", "_mtu_expires", "/stable_secret", "tcp_mem", "udp_mem", "flow_limit", "netdev_rss_key")
    return {
        "addresses": [_settled(entry) for entry in json.loads(space.run("ip", "-j", "-d", "addr"))],
        "routes": [json.loads(text or "[]") for text in routes],
        "offloads": space.run("ethtool", "-k", EXPERIMENT),
        "qdiscs": json.loads(space.run("tc", "-j", "qdisc") or "[]"),
        "sysctls": [line for line in sysctls.splitlines() if not any(mark in line for mark in busy)],
        "processes": sorted(line for line in processes_of(space).values() if not line.startswith("sshd")),
        "mounts": space.run("cat", "/proc/1/mountinfo").splitlines(),
        "leases": space.run("find", f"{FOLDER}/leases", "-mindepth", "1", check=False),
        "not undone": space.run("cat", f"{FOLDER}/not-undone.log", check=False),
        "run": sorted(space.run("find", "/run", "-maxdepth", "1").splitlines()),
    }


def _settled(entry: dict[str, Any]) -> dict[str, Any]:
    """Without what passes with time."""
    for address in entry.get("addr_info", []):
        for name in ("valid_life_time", "preferred_life_time"):
            address.pop(name, None)
    return entry
