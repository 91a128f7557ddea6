"""A stand-in for minimega: a real Unix socket, the recorded answers' shapes, and a state that follows the commands.

Its guests may be real (``guests.Guests``): then programs run in them and packets flow between them.  It can be told to refuse,
to be slow, to cut its answers in half, to close the socket, and to bring responses late and out of order.
"""

from __future__ import annotations

import contextlib
import copy
import json
import shlex
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from minimega import recording

CARDS = ("e1000", "e1000e", "virtio-net-pci", "rtl8139", "vmxnet3", "igb")
NODE = "node1"


class GuestMaker(Protocol):
    """Makes what is inside a guest. ``run`` gives what a program said; a file is its bytes."""

    def boot(self, name: str, data: Mapping[str, Any], folder: Path) -> None: ...
    def run(self, name: str, argv: list[str]) -> tuple[bytes, bytes]: ...
    def background(self, name: str, argv: list[str]) -> None: ...
    def read(self, name: str, path: str) -> bytes: ...
    def write(self, name: str, path: str, content: bytes) -> None: ...
    def end(self, name: str) -> None: ...
    def capture(self, name: str, to: Path) -> None: ...
    def end_capture(self, name: str) -> None: ...


@dataclass
class Fault:
    """What happens to the next command that holds ``text``, ``times`` times. ``kind``: error, slow, half, closed, garbage,
    silent."""

    text: str
    kind: str
    detail: str = ""
    times: int = 1


@dataclass
class Vm:
    row: dict[str, str]
    data: dict[str, Any]
    connected: bool = False

    @property
    def name(self) -> str:
        return str(self.data["Name"])


@dataclass
class Queued:
    number: int
    kind: str
    words: list[str]
    filter: str
    files: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass
class Namespace:
    name: str
    config: dict[str, list[str]] = field(default_factory=dict)
    vms: dict[str, Vm] = field(default_factory=dict)
    vlans: dict[str, int] = field(default_factory=dict)
    queue: list[Queued] = field(default_factory=list)
    filter: str = ""
    numbers: int = 0
    captures: dict[str, str] = field(default_factory=dict)
    affinity: str = "disabled"
    bridges: dict[str, str] = field(default_factory=dict)


class Refused(Exception):
    pass


class StandIn:
    """Serves while the block runs."""

    def __init__(self, base: Path, guests: GuestMaker | None = None, *, lag: Callable[[Queued], float] = lambda _: 0.0) -> None:
        self.base, self.guests, self.lag = base, guests, lag
        self.files = base / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        self.spaces = {"minimega": Namespace("minimega")}
        self.active = "minimega"
        self.heard: list[str] = []
        self.faults: list[Fault] = []
        self.chunk_bytes = 1 << 16
        self.pieces = 1
        self.boots = True
        self.prefix_makes = True
        self.nodes = [NODE]
        self.lock = threading.RLock()
        self._numbers = iter(range(10**9))
        self._vlans = iter(range(101, 4096))
        self._tickets: dict[str, list[threading.Event]] = {}
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(base / "minimega"))
        self._server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        (self.base / "minimega").unlink(missing_ok=True)

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        decoder, text = json.JSONDecoder(), ""
        with client, contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                text += data.decode()
                with contextlib.suppress(json.JSONDecodeError):
                    request, end = decoder.raw_decode(text)
                    text = text[end:]
                    self._answer(client, request["Command"])

    def _answer(self, client: socket.socket, line: str) -> None:
        with self.lock:
            self.heard.append(line)
            fault = next((each for each in self.faults if each.text in line), None)
            if fault is not None:
                fault.times -= 1
                if fault.times == 0:
                    self.faults.remove(fault)
        kind = fault.kind if fault else ""
        if kind == "slow":
            time.sleep(float(fault.detail if fault else 0))
        if kind == "silent":
            return
        empty = {"Response": "", "Header": None, "Tabular": None, "Error": "", "Data": None}
        try:
            if kind == "error":
                raise Refused(fault.detail if fault else "")
            with self.lock:
                result = self._command(line)
        except Refused as refusal:
            result = {"Error": str(refusal)}
        each = result.pop("Nodes", None) or {NODE: result}
        entries = [{**empty, **answered, "Host": node} for node, answered in each.items()]
        parts = [{"Resp": entries, "Rendered": "", "More": False, "Status": False}]
        for _ in range(self.pieces - 1):
            parts.insert(0, {"Resp": [], "Rendered": "", "More": True, "Status": False})
        sent = b"".join(json.dumps(part).encode() for part in parts)
        if kind == "garbage":
            sent = fault.detail.encode() if fault else b""
        if kind in ("half", "closed"):
            sent = sent[: len(sent) // 2 if kind == "half" else 0]
        for at in range(0, len(sent), self.chunk_bytes):
            client.sendall(sent[at : at + self.chunk_bytes])
        if kind in ("half", "closed"):
            client.shutdown(socket.SHUT_RDWR)

    def _command(self, line: str) -> dict[str, Any]:
        words = shlex.split(line, comments=True)
        literal, name = False, self.active
        while words and words[0] in (".preprocess", "namespace") and len(words) > 2:
            if words[0] == ".preprocess":
                literal = words[1] == "false"
            else:
                name = words[1]
                if name not in self.spaces and not self.prefix_makes:
                    raise Refused(f"no such namespace: {name}")
                self.spaces.setdefault(name, Namespace(name))
            words = words[2:]
        if not literal:
            words = [self._fetched(word) for word in words]
        space = self.spaces[name]
        for length in (4, 3, 2, 1):
            handler = getattr(self, "_do_" + "_".join(words[:length]).replace("-", "_"), None)
            if handler is not None:
                result: dict[str, Any] | None = handler(space, *words[length:])
                return result or {}
        raise Refused(f"invalid command: `{line}`")

    def _fetched(self, word: str) -> str:
        """What minimega takes for the address of a file of its own."""
        return f"{self.files}/{word.rpartition('/')[2]}" if word.startswith(("http://", "https://")) else word

    # The whole server

    def _do_version(self, _: Namespace) -> dict[str, Any]:
        return {"Response": recording.answer("version")["Response"]}

    def _do_host(self, _: Namespace) -> dict[str, Any]:
        return recording.answer("host")

    def _do_mesh_status(self, _: Namespace) -> dict[str, Any]:
        return {"Header": recording.header("mesh status"), "Tabular": [[str(len(self.nodes)), "0", "0", "minimega", "9000"]]}

    def _do_ns_add_hosts(self, _: Namespace, hosts: str) -> None:
        if unknown := set(hosts.split(",")) - set(self.nodes):
            raise Refused(f"not in the mesh: {unknown}")

    def _do_ns_bridge(self, space: Namespace, bridge: str, kind: str) -> None:
        space.bridges[bridge] = kind

    def _do_ns_run_bridge(self, space: Namespace) -> dict[str, Any]:
        return {"Nodes": {node: self._do_bridge(space) for node in self.nodes}}

    def _do_namespace(self, _: Namespace, name: str | None = None) -> dict[str, Any] | None:
        if name is not None:
            self.spaces.setdefault(name, Namespace(name))
            self.active = name
            return None
        rows = [[each, "101-4096" if each == "minimega" else "", str(each == self.active).lower()] for each in self.spaces]
        return {"Header": recording.header("namespace"), "Tabular": rows}

    def _do_clear_namespace(self, _: Namespace, name: str) -> None:
        space = self.spaces.pop(name, None)
        if space is None:
            raise Refused(f"unknown namespace `{name}`")
        for vm in space.vms.values():
            self._end(vm)
        if self.active == name:
            self.active = "minimega"

    def _do_file_list(self, _: Namespace) -> dict[str, Any]:
        rows = [
            ["<dir>" if path.is_dir() else "", path.name, str(path.stat().st_size), "2026-11-21T09:54:51Z"]
            for path in sorted(self.files.iterdir())
        ]
        return {"Header": recording.header("namespace lab1 file list"), "Tabular": rows}

    def _do_file_delete(self, _: Namespace, name: str) -> None:
        path = self.files / name
        if path.is_dir():
            for inside in sorted(path.rglob("*"), reverse=True):
                inside.rmdir() if inside.is_dir() else inside.unlink()
            path.rmdir()
        else:
            path.unlink()

    def _do_bridge(self, space: Namespace) -> dict[str, Any]:
        vlans = " ".join(f"{alias} ({vlan})" for alias, vlan in space.vlans.items())
        rows = [["mega_bridge", "true", f"[{vlans}]", "[]", "[]", "[]", "{}"]]
        rows += [[bridge, "false", "[]", "[]", "[mega_tap9]", "[]", "{}"] for bridge in space.bridges]
        return {"Header": recording.header("namespace lab1 bridge"), "Tabular": rows}

    # Guests

    def _do_vm_config(self, space: Namespace, field_: str | None = None, *values: str) -> None:
        known = ("memory", "vcpus", "net", "qemu", "cpu", "machine", "kernel", "initrd", "append", "disks", "filesystem")
        if field_ is None or field_ not in (*known, "virtio-ports", "colocate", "schedule"):
            raise Refused(f"invalid command: `namespace {space.name} vm config {field_}`")
        space.config[field_] = list(values)

    def _do_vm_launch(self, space: Namespace, kind: str, name: str) -> None:
        if name in space.vms:
            raise Refused(f"vm already exists with name `{name}`")
        config = {key: " ".join(value) for key, value in space.config.items()}
        row, data = (copy.deepcopy(part) for part in recording.machine("server"))
        spec = config["net"].split(",")
        mac = next((part for part in spec if part.count(":") == 5), "00:20:c0:60:03:7a")
        rest = [part for part in spec if part.count(":") != 5]
        driver = rest.pop() if rest[-1] in CARDS else "e1000"
        bridge, alias = (rest[0], rest[1]) if len(rest) == 2 else ("mega_bridge", rest[0])
        vlan = space.vlans.get(alias) or next(self._vlans)
        space.vlans[alias] = vlan
        number = next(self._numbers)
        failed = bridge not in ("mega_bridge", *space.bridges)
        network = data["Networks"][0] | {
            "Alias": alias,
            "VLAN": vlan,
            "Bridge": bridge,
            "Tap": "" if failed else f"mega_tap{number}",
            "MAC": mac,
            "Driver": driver,
            "Raw": config["net"],
        }
        data |= {
            "UUID": str(uuid.uuid4()),
            "ID": number,
            "Name": name,
            "Namespace": space.name,
            "Host": self._place(config),
            "Networks": [network],
            "VCPUs": int(config.get("vcpus", 1)),
            "Memory": int(config.get("memory", 2048)),
            "QemuPath": config.get("qemu", "kvm"),
            "KernelPath": config.get("kernel", ""),
            "InitrdPath": config.get("initrd", ""),
            "CPU": config.get("cpu", "host"),
            "Machine": config.get("machine", ""),
            "Append": config.get("append", "").split(),
            "Tags": {},
            "VirtioPorts": config.get("virtio-ports", ""),
        }
        if failed:
            data["Tags"] = {"error": recording.machine("broken")[1]["Tags"]["error"].replace("LAN", bridge)}
        row |= {"id": str(number), "name": name, "type": kind, "uuid": data["UUID"], "state": "ERROR" if failed else "BUILDING"}
        row |= {"memory": str(data["Memory"]), "vcpus": str(data["VCPUs"]), "filesystem": config.get("filesystem", "N/A")}
        row |= {"qos": "[]", "tags": json.dumps(data["Tags"])}
        space.vms[name] = Vm(row, data)
        (self.base / str(number)).mkdir()

    def _place(self, config: dict[str, str]) -> str:
        if scheduled := config.get("schedule"):
            return scheduled
        return self.nodes[0] if "colocate" in config or len(self.nodes) == 1 else self.nodes[-1]

    def _do_vm_start_all(self, space: Namespace) -> None:
        for vm in space.vms.values():
            if vm.row["state"] == "BUILDING":
                vm.row["state"], vm.data["State"] = "RUNNING", 2
                threading.Thread(target=self._boot, args=(vm,), daemon=True).start()

    def _boot(self, vm: Vm) -> None:
        if self.guests is not None:
            self.guests.boot(vm.name, vm.data, self.base / str(vm.data["ID"]))
        vm.connected = self.boots

    def _end(self, vm: Vm) -> None:
        if self.guests is not None and vm.row["state"] == "RUNNING":
            self.guests.end(vm.name)
        if vm.row["state"] != "ERROR":
            vm.row["state"], vm.data["State"] = "QUIT", 8
        vm.connected = False

    def _do_vm_kill(self, space: Namespace, name: str) -> None:
        if name != "all" and name not in space.vms:
            raise Refused(f"vm not found: {name}")
        for vm in list(space.vms.values()):
            if name in ("all", vm.name):
                self._end(vm)

    def _do_vm_flush(self, space: Namespace) -> None:
        space.vms = {name: vm for name, vm in space.vms.items() if vm.row["state"] not in ("QUIT", "ERROR")}

    def _do_vm_info(self, space: Namespace) -> dict[str, Any]:
        columns = recording.header("namespace lab1 vm info")
        each = {}
        for node in self.nodes:
            here = [vm for vm in reversed(list(space.vms.values())) if vm.data["Host"] == node]
            rows = [[vm.row[column] for column in columns] for vm in here]
            each[node] = {"Header": columns, "Tabular": rows or None, "Data": [vm.data for vm in here]}
        return {"Nodes": each}

    def _do_qos_add(self, space: Namespace, name: str, nic: str, kind: str, *values: str) -> None:
        if kind == "delay" and self.netem is False:
            raise Refused(recording.answer("namespace lab1 qos add client 0 delay 10ms")["Error"])
        if name not in space.vms:
            raise Refused(f"vm not found: {name}")
        space.vms[name].row["qos"] = f"[{nic}: {kind} {''.join(values)}]"

    netem = False

    def _do_vlans(self, space: Namespace) -> dict[str, Any]:
        rows = [[alias, str(vlan)] for alias, vlan in space.vlans.items()]
        return {"Header": recording.header("namespace lab1 vlans"), "Tabular": rows}

    def _do_vlans_add(self, space: Namespace, alias: str, vlan: str) -> None:
        space.vlans[alias] = int(vlan)

    def _do_optimize(self, space: Namespace) -> dict[str, Any]:
        row = ["disabled", "disabled", space.affinity]
        return {"Header": recording.header("namespace lab1 optimize"), "Tabular": [row]}

    def _do_optimize_affinity(self, space: Namespace, value: str) -> None:
        space.affinity = "enabled" if value == "true" else "disabled"

    def _do_capture(self, space: Namespace) -> dict[str, Any]:
        rows = [["mega_bridge", "pcap", nic, "", "", path] for nic, path in space.captures.items()]
        return {"Header": recording.header("namespace lab1 capture"), "Tabular": rows}

    def _do_capture_pcap_vm(self, space: Namespace, name: str, nic: str, file: str) -> None:
        if self.guests is not None:
            self.guests.capture(name, self.files / file)
        space.captures[f"{name}:{nic}"] = str(self.files / file)

    def _do_clear_capture(self, space: Namespace) -> None:
        for nic in space.captures:
            if self.guests is not None:
                self.guests.end_capture(nic.partition(":")[0])
        space.captures.clear()

    # Command and control

    def _do_cc_clients(self, space: Namespace) -> dict[str, Any]:
        rows = [
            [vm.data["UUID"], "(none)", "amd64", "linux", "[]", f"[{vm.data['Networks'][0]['MAC']}]"]
            for vm in space.vms.values()
            if vm.connected
        ]
        return {"Header": recording.header("namespace lab1 cc clients"), "Tabular": rows or None}

    def _do_cc_filter(self, space: Namespace, text: str) -> None:
        space.filter = text

    def _do_clear_cc_filter(self, space: Namespace) -> None:
        space.filter = ""

    def _do_cc_exec(self, space: Namespace, *words: str) -> dict[str, Any]:
        return self._queue(space, "exec", words)

    def _do_cc_background(self, space: Namespace, *words: str) -> dict[str, Any]:
        return self._queue(space, "background", words)

    def _do_cc_send(self, space: Namespace, *words: str) -> dict[str, Any]:
        return self._queue(space, "send", words)

    def _do_cc_recv(self, space: Namespace, *words: str) -> dict[str, Any]:
        return self._queue(space, "recv", words)

    def _queue(self, space: Namespace, kind: str, words: tuple[str, ...]) -> dict[str, Any]:
        space.numbers += 1
        queued = Queued(space.numbers, kind, list(words), space.filter)
        space.queue.append(queued)
        for vm in space.vms.values():
            if vm.connected and space.filter in ("", f"name={vm.name}", f"uuid={vm.data['UUID']}"):
                tickets = self._tickets.setdefault(vm.data["UUID"], [threading.Event()])
                tickets[0].set()
                tickets.append(threading.Event())
                threading.Thread(target=self._carry_out, args=(space, vm, queued, *tickets[-2:]), daemon=True).start()
        return {"Nodes": {node: {"Data": queued.number} for node in self.nodes}}

    def _carry_out(self, space: Namespace, vm: Vm, queued: Queued, ahead: threading.Event, mine: threading.Event) -> None:
        """A client takes its commands one after another, in their order."""
        ahead.wait()
        try:
            files = self._done(vm, queued)
        finally:
            mine.set()
        time.sleep(self.lag(queued))
        with self.lock:
            queued.files[vm.data["UUID"]] = {name: content.decode(errors="replace") for name, content in files.items()}
            for name, content in files.items():
                path = self.files / space.name / "miniccc_responses" / str(queued.number) / vm.data["UUID"] / name.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def _done(self, vm: Vm, queued: Queued) -> dict[str, bytes]:
        if self.guests is None:
            return {"stdout": " ".join(queued.words).encode() + b"\n"} if queued.kind == "exec" else {}
        if queued.kind == "exec":
            said = self.guests.run(vm.name, queued.words)
            return {name: text for name, text in zip(("stdout", "stderr"), said, strict=True) if text}
        if queued.kind == "background":
            self.guests.background(vm.name, queued.words)
        elif queued.kind == "send":
            name = queued.words[0]
            self.guests.write(vm.name, f"/tmp/miniccc/files/{name}", (self.files / name).read_bytes())
        else:
            return {queued.words[0]: self.guests.read(vm.name, queued.words[0])}
        return {}

    def _do_cc_commands(self, space: Namespace) -> dict[str, Any]:
        return {"Nodes": {node: self._commands(space, node) for node in self.nodes}}

    def _commands(self, space: Namespace, node: str) -> dict[str, Any]:
        here = {vm.data["UUID"] for vm in space.vms.values() if vm.data["Host"] == node}
        rows = []
        for each in space.queue:
            count = len(here & set(each.files))
            words = f"[{' '.join(each.words)}]"
            program = words if each.kind in ("exec", "background") else "[]"
            sent, received = (words if each.kind == kind else "[]" for kind in ("send", "recv"))
            background = str(each.kind == "background").lower()
            row = [str(each.number), "", program, str(count), background, "false", sent, received, "", "", each.filter]
            rows.append(row)
        return {"Header": recording.header("namespace lab1 cc commands"), "Tabular": rows or None}

    def _do_cc_responses(self, space: Namespace, which: str) -> dict[str, Any]:
        texts = dict.fromkeys(self.nodes, "")
        nodes = {vm.data["UUID"]: vm.data["Host"] for vm in space.vms.values()}
        for each in sorted(space.queue, key=lambda each: str(each.number)):
            for client, files in each.files.items() if which in ("all", str(each.number)) else ():
                for name, content in files.items():
                    texts[nodes[client]] += f"{each.number}/{client}/{name.lstrip('/')}:\n{content}\n"
        return {"Nodes": {node: {"Response": text} for node, text in texts.items()}}

    def _do_cc_delete_command(self, space: Namespace, which: str) -> None:
        space.queue = [each for each in space.queue if str(each.number) != which]

    def _do_cc_delete_response(self, space: Namespace, which: str) -> None:
        return None


@contextlib.contextmanager
def standing_in(base: Path, guests: GuestMaker | None = None, **settings: Any) -> Iterator[StandIn]:
    with StandIn(base, guests, **settings) as server:
        yield server
