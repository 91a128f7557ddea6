"""Guests that are real, containers or virtual machines of a lab, with real packets between them.

An agent of ours is in the place of minimega's client (miniccc): what reaches it is what the stand-in carries.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinbed.hosts.agent import AgentHost, Running, accept, listen
from twinbed.hosts.connection import STDIN, Connection
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab
from twinbed.image import Image, minimega
from twinbed.links import openvswitch
from twinbed.links.openvswitch import OpenVSwitch
from twinbed.testbeds.container import bind
from twinbed.testbeds.qemu.command_line import EMULATED_ARGUMENTS, KERNEL_ARGUMENTS
from twinbed.testbeds.qemu.guest import tsc_khz

SWITCH = "mega_bridge"
_LIMIT_S = 40.0
_BOOT_LIMIT_S = 180.0
"""A guest whose root file system is in its initrd takes half a minute on an emulated CPU, and more beside others."""
_BESIDE = "agent --connect /tmp/miniccc/port"


class _Dialled(Running):
    """Its input goes on after the first bytes, and its output is passed on."""

    sent = 0

    def send(self, kind: int, payload: Any) -> None:
        if kind != STDIN or payload:
            super().send(kind, payload)

    def pass_on(self, stream: socket.socket) -> bool:
        """Whether the program has ended."""
        stream.sendall(self.stdout[self.sent :])
        self.sent = len(self.stdout)
        return self.ended


_GUESTS = ("qemu-system-x86_64", "twinbed-probe")


class Guests(ABC):
    """One lab holds them all."""

    def __init__(self, lab: Lab, probe: Path, image: Image, userspace: Path | None = None) -> None:
        """``userspace``: a folder for Open vSwitch with its userspace datapath, in place of the Linux bridge."""
        self._lab, self._probe, self._image = lab, probe, image
        self._hosts: dict[str, AgentHost] = {}
        self._folders: dict[str, Path] = {}
        self._captures: dict[str, Running] = {}
        self._files: dict[str, Path] = {}
        self._lock = threading.Lock()
        self._openvswitch = OpenVSwitch(lab.machine, userspace, "netdev") if userspace else None
        if self._openvswitch:
            self._openvswitch.vsctl(openvswitch.switch(SWITCH, "netdev"))
        else:
            lab.machine.run(["ip", "link", "add", SWITCH, "type", "bridge"])
            lab.machine.run(["ip", "link", "set", SWITCH, "up"])

    def boot(self, name: str, data: Mapping[str, Any], folder: Path) -> None:
        with listen(self._lab.scratch / f"{folder.name}.sock") as server:
            running = self._start(name, data, folder, self._lab.scratch / f"{folder.name}.sock")
            running.started()
            connection: Connection = accept(server, name, running, _BOOT_LIMIT_S, key="")
        connection.hello(_BOOT_LIMIT_S)
        self._joined(folder, data, running)
        with self._lock:
            self._hosts[name] = AgentHost(name, connection, "/run/twinbed")
            self._folders[name] = folder

    def join(self, batch: str, tap: str) -> None:
        """Makes a tap by these lines of ip's, and a port of it."""
        master = "" if self._openvswitch else f"master {SWITCH} "
        self._lab.machine.run(["ip", "-batch", "-"], stdin=f"{batch}link set {tap} {master}up\n".encode())
        if self._openvswitch:
            self._openvswitch.vsctl(["add-port", SWITCH, tap])

    @abstractmethod
    def _start(self, name: str, data: Mapping[str, Any], folder: Path, agent: Path) -> Running: ...

    @abstractmethod
    def _joined(self, folder: Path, data: Mapping[str, Any], running: Running) -> None: ...

    def pid(self, folder: Path) -> int:
        """Return the id of the guest's own process, as the node sees it. Programs that twinbed starts there may have its files
        among their arguments, too."""
        of_guest = f"{folder}/".encode()
        for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = cmdline.read_bytes()
                if of_guest in line and Path(line.partition(b"\0")[0].decode()).name in _GUESTS:
                    return int(cmdline.parent.name)
        raise AssertionError(f"no process has files of {folder}")

    def run(self, name: str, argv: list[str]) -> tuple[bytes, bytes]:
        try:
            done = self._hosts[name].run(argv, check=False, limit_s=60.0)
        except HostError as error:
            return b"", f"{error}\n".encode()
        return done.stdout, done.stderr

    def tunnel(self, name: str, host: str, port: str, stream: socket.socket) -> None:
        """One connection. minimega does not tell the guest that the other side has ended it."""
        dial = f"exec 3<>/dev/tcp/{host}/{port} 4<&0 || exit 1; cat <&4 >&3 & cat <&3; kill $!"
        with stream, contextlib.suppress(OSError, HostError):
            request = {"env": None, "cwd": None, "cpus": None, "held": False}
            program = _Dialled(self._hosts[name].connection, ["bash", "-c", dial], request, stream.recv(1 << 16))

            def to_guest() -> None:
                with contextlib.suppress(OSError, HostError):
                    while data := stream.recv(1 << 16):
                        program.send(STDIN, data)

            threading.Thread(target=to_guest, daemon=True).start()
            program.until(lambda: program.pass_on(stream), 3600.0)
            stream.shutdown(socket.SHUT_RDWR)

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
        program = self._lab.machine.start(
            ["tcpdump", "-i", tap, "--immediate-mode", "-U", "-Z", "root", "-s", "1600", "-w", str(to)]
        )
        program.says(b"listening on", _LIMIT_S)
        self._captures[name] = program
        self._files[name] = to

    def end_capture(self, name: str) -> None:
        """minimega 3.1 loses what came in the last second."""
        ended = time.time()
        program = self._captures.pop(name)
        program.signal(2)
        program.wait(_LIMIT_S)
        file = self._files.pop(name)
        content = file.read_bytes()
        at = 24
        while at < len(content):
            second, microsecond, length, _ = struct.unpack_from("<IIII", content, at)
            if second + microsecond / 1e6 > ended - 1.0:
                break
            at += 16 + length
        file.write_bytes(content[:at])


class Containers(Guests):
    """A container has no virtio-serial port: a socket beside it stands for one."""

    def _start(self, name: str, data: Mapping[str, Any], folder: Path, agent: Path) -> Running:
        inside = folder / "miniccc"
        (inside / "files").mkdir(parents=True)
        scratch = self._lab.scratch / f"{name}.{folder.name}"
        scratch.mkdir()
        _splice(folder / "virtio-serial0", inside / "port")
        return self._lab.machine.start(
            [
                *("twinbed-probe", "container", "--root", str(self._image.rootfs), "--scratch", str(scratch)),
                *("--hostname", name, "--connect", str(agent), "--bind", bind(inside, "/tmp/miniccc", programs=True)),
            ]
        )

    def _joined(self, folder: Path, data: Mapping[str, Any], running: Running) -> None:
        tap, mac = f"mega_tap{folder.name}", data["Networks"][0]["MAC"]
        peer = f"peer name eth0 address {mac} netns {running.pid}"
        self.join(f"link add {tap} type veth {peer}\n", tap)

    def run(self, name: str, argv: list[str]) -> tuple[bytes, bytes]:
        return super().run(name, [word.replace("agent --port twinbed.minimega", _BESIDE) for word in argv])


class Machines(Guests):
    """QEMU without hardware virtualisation, with the port that minimega was asked for beside the client's."""

    def _boots(self, name: str) -> list[str]:
        kernel = f"{KERNEL_ARGUMENTS} {EMULATED_ARGUMENTS.format(tsc_khz=tsc_khz())} twinbed.port=cc twinbed.host={name}"
        drive = f"file={self._image.disk},format=raw,if=none,id=disk0,readonly=on,file.locking=off"
        return [
            *("-kernel", str(self._image.kernel), "-initrd", str(self._image.initramfs), "-append", kernel),
            *("-drive", drive, "-device", "virtio-blk-pci,drive=disk0", "-device", "virtio-serial-pci"),
        ]

    def _start(self, name: str, data: Mapping[str, Any], folder: Path, agent: Path) -> Running:
        tap, network = f"mega_tap{folder.name}", data["Networks"][0]
        self.join(f"tuntap add dev {tap} mode tap vnet_hdr\n", tap)
        port = f"socket,id=asked,path={folder}/virtio-serial0,server=on,wait=off"
        return self._lab.machine.start(
            [
                *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
                *("-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "Nehalem,+rdrand"),
                *("-smp", str(data["VCPUs"]), "-m", f"{data['Memory']}M"),
                *self._boots(name),
                *("-chardev", f"socket,id=cc,path={agent},server=off", "-device", "virtserialport,chardev=cc,name=cc"),
                *("-chardev", port, "-device", f"virtserialport,chardev=asked,name={data['VirtioPorts']}"),
                *("-netdev", f"tap,id=net0,ifname={tap},script=no,downscript=no"),
                *("-device", f"{network['Driver']},netdev=net0,mac={network['MAC']},romfile="),
            ]
        )

    def _joined(self, folder: Path, data: Mapping[str, Any], running: Running) -> None:
        """QEMU has opened the tap."""


class Made(Machines):
    """Guests of which the server has the kernel and initrd that ``twinbed image minimega`` makes, and no disk: a script stands
    for miniccc. A boot from that initrd takes twice the CPU time of the other."""

    def __init__(self, lab: Lab, probe: Path, image: Image, made: minimega.Made) -> None:
        super().__init__(lab, probe, image)
        self._made = made

    def _boots(self, name: str) -> list[str]:
        if name != "server":
            return super()._boots(name)
        return [
            *("-kernel", str(self._made.kernel), "-initrd", str(self._made.initrd), "-append", KERNEL_ARGUMENTS),
            *("-device", "virtio-serial-pci"),
        ]


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
