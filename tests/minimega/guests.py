"""Guests that are real: containers of a lab, with real packets between them. What reaches them is what the stand-in carries."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

from twinbed.hosts.agent import AgentHost, Running, accept, listen
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab

SWITCH = "mega_bridge"
_LIMIT_S = 10.0


class Containers:
    """One lab holds them all; a guest's client is an agent of ours, and its virtio-serial port a socket beside it."""

    def __init__(self, lab: Lab, probe: Path, rootfs: Path) -> None:
        self._lab, self._probe, self._rootfs = lab, probe, rootfs
        self._hosts: dict[str, AgentHost] = {}
        self._folders: dict[str, Path] = {}
        self._captures: dict[str, Running] = {}
        self._lock = threading.Lock()
        lab.machine.run(["ip", "link", "add", SWITCH, "type", "bridge"])
        lab.machine.run(["ip", "link", "set", SWITCH, "up"])

    def boot(self, name: str, mac: str, folder: Path) -> None:
        inside = folder / "miniccc"
        (inside / "files").mkdir(parents=True)
        scratch = self._lab.scratch / f"{name}.{folder.name}"
        scratch.mkdir()
        with listen(scratch / "sock") as server:
            command = [
                *("twinbed-probe", "container", "--root", str(self._rootfs), "--scratch", str(scratch), "--hostname", name),
                *("--connect", str(scratch / "sock"), "--bind", f"{inside}:/tmp/miniccc"),
            ]
            running = self._lab.machine.start(command)
            pid = running.started()
            connection: Connection = accept(server, name, running, _LIMIT_S)
        connection.hello(_LIMIT_S)
        tap = f"mega_tap{folder.name}"
        batch = f"link add {tap} type veth peer name eth0 address {mac} netns {pid}\nlink set {tap} master {SWITCH} up\n"
        self._lab.machine.run(["ip", "-batch", "-"], stdin=batch.encode())
        _splice(folder / "virtio-serial0", inside / "port")
        with self._lock:
            self._hosts[name] = AgentHost(name, connection, "/run/twinbed")
            self._folders[name] = folder

    def run(self, name: str, argv: list[str]) -> tuple[bytes, bytes]:
        try:
            done = self._hosts[name].run(argv, check=False, limit_s=60.0)
        except HostError as error:
            return b"", f"{error}\n".encode()
        return done.stdout, done.stderr

    def background(self, name: str, argv: list[str]) -> None:
        if argv[1:3] == ["agent", "--port"]:
            argv = [argv[0], "agent", "--connect", "/tmp/miniccc/port"]
        with contextlib.suppress(HostError):
            self._hosts[name].start(argv).started()

    def read(self, name: str, path: str) -> bytes:
        return self._hosts[name].read(path)

    def write(self, name: str, path: str, content: bytes) -> None:
        self._hosts[name].write(path, content)

    def end(self, name: str) -> None:
        with self._lock:
            host = self._hosts.pop(name, None)
        if host is not None:
            host.close()

    def capture(self, name: str, to: Path) -> None:
        tap = f"mega_tap{self._folders[name].name}"
        program = self._lab.machine.start(["tcpdump", "-i", tap, "--immediate-mode", "-U", "-Z", "root", "-s", "1600", "-w", str(to)])
        program.says(b"listening on", _LIMIT_S)
        self._captures[name] = program

    def end_capture(self, name: str) -> None:
        program = self._captures.pop(name)
        program.signal(2)
        program.wait(_LIMIT_S)


def _splice(near: Path, far: Path) -> None:
    """What QEMU does between a port of a guest and its socket on the node: one client at a time on either side."""
    servers = [listen(near), listen(far)]

    def carry() -> None:
        ends = []
        for server in servers:
            with server:
                ends.append(server.accept()[0])
        threads = [threading.Thread(target=_pump, args=pair, daemon=True) for pair in (ends, ends[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for end in ends:
            end.close()

    threading.Thread(target=carry, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
