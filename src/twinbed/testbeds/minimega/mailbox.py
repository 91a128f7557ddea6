"""A control stream to an agent in a guest through ``cc exec`` alone: for guests without a port of ours.

The guest runs ``twinbed-probe mailbox serve``; every ``twinbed-probe mailbox exchange`` brings it the next bytes, and prints
what the agent has said, in base64.  Exchanges are numbered: one that minimega delivers twice is answered alike, and once.
"""

from __future__ import annotations

import base64
import binascii
import select
import socket
import threading

from twinbed.hosts.error import HostError
from twinbed.testbeds.minimega.control import Control, Guest

_BYTES = 48 * 1024
"""In one exchange: in base64 it stays below the kernel's limit for an argument (128 KiB)."""
_WAIT_MS = 100
"""How long an exchange that brings something waits in the guest for what is said to it. What is asked meanwhile waits too."""
_FIRST_PAUSE_S = 0.02
_LAST_PAUSE_S = 0.3
"""Between exchanges when nothing is said on either side: while a workload runs the guest is left alone that long."""
_EXCHANGE_LIMIT_S = 30.0


class Mailbox:
    """``stream`` is the controller's end."""

    def __init__(self, control: Control, guest: Guest, program: str, path: str) -> None:
        self._control, self._guest = control, guest
        self._words = (program, "mailbox", "exchange", path)
        self.stream, self._ours = socket.socketpair()
        self.failure: HostError | None = None
        self._thread = threading.Thread(target=self._carry, name=f"mailbox {guest.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The controller's end is closed by whoever has it: waits until nothing is carried any more."""
        self._thread.join()

    def _carry(self) -> None:
        sequence, pause = 0, 0.0
        try:
            with self._ours as ours:
                while True:
                    readable, _, _ = select.select([ours], [], [], pause)
                    data = ours.recv(_BYTES) if readable else b""
                    if readable and not data:
                        return
                    sequence += 1
                    answer = self._exchange(sequence, data, 0 if pause else _WAIT_MS)
                    ours.sendall(answer)
                    pause = 0.0 if data or answer else min(max(2 * pause, _FIRST_PAUSE_S), _LAST_PAUSE_S)
        except HostError as error:
            self.failure = error
        except OSError:
            return  # the controller has gone

    def _exchange(self, sequence: int, data: bytes, wait_ms: int) -> bytes:
        handed = [base64.b64encode(data).decode()] if data else []
        output = self._control.run(
            self._guest, *self._words, str(sequence), str(_WAIT_MS if data else wait_ms), *handed, limit_s=_EXCHANGE_LIMIT_S
        )
        if "stderr" in output:
            raise HostError(f"{self._guest.name}: {output['stderr'].strip()}")
        try:
            return base64.b64decode(output.get("stdout", "").strip(), validate=True)
        except binascii.Error:
            raise HostError(f"{self._guest.name}: an exchange was answered with {output['stdout'][:200]!r}") from None
