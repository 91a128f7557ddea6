"""Commands of the stand-in about guests: their description, their life, their links."""

from __future__ import annotations

import copy
import json
import threading
import uuid
from typing import Any

from minimega import recording
from minimega.state import Namespace, Refused, State, Vm
from twinbed.hosts.error import HostError

CARDS = ("e1000", "e1000e", "virtio-net-pci", "rtl8139", "vmxnet3", "igb")


class MachineCommands(State):
    def _do_vm_config(self, space: Namespace, field_: str | None = None, *values: str) -> None:
        known = ("memory", "vcpus", "net", "qemu", "cpu", "machine", "kernel", "initrd", "append", "disks", "filesystem")
        if field_ is None or field_ not in (*known, "virtio-ports", "colocate", "schedule", "snapshot"):
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
            "Snapshot": config.get("snapshot", "true") == "true",
            "Tags": {},
            "VirtioPorts": config.get("virtio-ports", ""),
        }
        if failed:
            data["Tags"] = {"error": recording.machine("broken")[1]["Tags"]["error"].replace("LAN", bridge)}
        row |= {"id": str(number), "name": name, "type": kind, "uuid": data["UUID"], "state": "ERROR" if failed else "BUILDING"}
        row |= {"memory": str(data["Memory"]), "vcpus": str(data["VCPUs"]), "filesystem": config.get("filesystem", "N/A")}
        row["disks"] = config.get("disks", "")
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
            try:
                self.guests.boot(vm.name, vm.data, self.base / str(vm.data["ID"]))
            except HostError as error:
                vm.row["state"], vm.data["State"], vm.data["Tags"] = "ERROR", 16, {"error": str(error)}
                vm.row["tags"] = json.dumps(vm.data["Tags"])
                return
            vm.row["pid"] = str(self.guests.pid(self.base / str(vm.data["ID"])))
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

    def _do_vlans(self, space: Namespace) -> dict[str, Any]:
        rows = [[alias, str(vlan)] for alias, vlan in space.vlans.items()]
        return {"Header": recording.header("namespace lab1 vlans"), "Tabular": rows}

    def _do_vlans_add(self, space: Namespace, alias: str, vlan: str) -> None:
        space.vlans[alias] = int(vlan)

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
