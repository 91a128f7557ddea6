"""Commands of the stand-in about programs and files in guests: queued, carried out in each guest's order, answered later."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any

from minimega import recording
from minimega.state import Namespace, Queued, State, Vm


class ControlCommands(State):
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

    def _do_cc_tunnel(self, space: Namespace, which: str, port: str, host: str, to: str) -> dict[str, Any]:
        """Every node is asked. The one that has the guest listens, minimega on all of its addresses, and goes on alone."""
        vm = next((vm for vm in space.vms.values() if which in (vm.name, vm.data["UUID"])), None)
        each = {node: {"Error": f"vm not found: {which}"} for node in self.nodes}
        if vm is not None:
            each[vm.data["Host"]] = dict(recording.TUNNEL_MADE)
            listener = socket.socket()
            try:
                listener.bind(("127.0.0.1", int(port)))
            except OSError:
                return {"Nodes": each | {vm.data["Host"]: {"Error": f"listen tcp :{port}: bind: address already in use"}}}
            listener.listen()
            space.tunnels.append(listener)
            threading.Thread(target=self._accept_for, args=(vm.name, listener, host, to), daemon=True).start()
        return {"Nodes": each}

    def _accept_for(self, name: str, listener: socket.socket, host: str, to: str) -> None:
        with contextlib.suppress(OSError):
            while True:
                stream = listener.accept()[0]
                assert self.guests is not None
                threading.Thread(target=self.guests.tunnel, args=(name, host, to, stream), daemon=True).start()

    def _do_cc_exec(self, space: Namespace, *words: str) -> dict[str, Any]:
        return self._queue(space, "exec", words)

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
        if queued.kind == "send":
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
