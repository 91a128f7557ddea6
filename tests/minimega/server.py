"""Commands of the stand-in about the whole server: nodes, namespaces, files, bridges."""

from __future__ import annotations

import socket
import subprocess
from typing import Any

from minimega import recording
from minimega.machines import MachineCommands
from minimega.state import Namespace, Refused


class ServerCommands(MachineCommands):
    def _do_version(self, _: Namespace) -> dict[str, Any]:
        return {"Response": recording.answer("version")["Response"]}

    def _do_host(self, _: Namespace) -> dict[str, Any]:
        return recording.answer("host")

    def _do_mesh_status(self, _: Namespace) -> dict[str, Any]:
        return {"Header": recording.header("mesh status"), "Tabular": [[str(len(self.nodes)), "0", "0", "minimega", "9000"]]}

    def _do_mesh_send_all_file(self, _: Namespace, *words: str) -> None:
        raise Refused(f"file not found: {words[-1]}")

    def _do_mesh_send(self, _: Namespace, node: str, shell: str, *argv: str) -> dict[str, Any]:
        """The other nodes are this machine too."""
        if node not in self.nodes or shell != "shell":
            raise Refused(f"no such client {node}, or not `shell`")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        answered = {"Response": done.stdout, "Error": done.stderr if done.returncode else ""}
        return {"Nodes": {node: answered}}

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
        for listener in space.tunnels:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
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
