"""One run of the ssh program that holds a lease: what the host says before its agent does, and how it ended.

Units: seconds.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import BinaryIO

from twinbed.hosts import process, ssh
from twinbed.hosts.error import LimitExceeded
from twinbed.hosts.ssh import Address
from twinbed.model.image import Image

FOLDER = "/var/lib/twinbed"
"""The default folder on the host. Only root may write there, as what is there runs as root."""
_GREETING_LIMIT_S = 30.0
"""From the beginning, connecting included."""
_WHY_LIMIT_S = 1.0
"""For ssh to end after its stream has: it may say why."""
_LONGEST_LINE = 4096
_BUFFER_BYTES = 4 * 2**20
"""So that ssh need not wait for us between the 32 KiB in which it hands over what it has decrypted."""

# Lines that begin with the token are ours, whatever the login shell prints before.
_BEGIN = """
t=$1 b=$2 p=$3 i=$4; shift 4
echo "$t from $TWINBED_FROM"
echo "$t system $(uname -sm)"
echo "$t os $( (. /etc/os-release && echo "$PRETTY_NAME") 2>/dev/null)"
echo "$t sshd $(sshd -V 2>&1 | grep ^OpenSSH)"
[ -x "$b/probes/$p/twinbed-probe" ] || { echo "$t missing probe"; exit 0; }
[ -z "$i" ] || [ -d "$b/images/$i" ] || { echo "$t missing image"; exit 0; }
[ -z "$i" ] || set -- "$@" --root "$b/images/$i"
echo "$t begin"
exec "$b/probes/$p/twinbed-probe" lease --folder "$b" --programs "$b/probes/$p" --from "$TWINBED_FROM" "$@"
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A host to lease. ``seconds`` is for how long it goes on without hearing of us; ``image`` None for its own tools."""

    address: Address
    seconds: float
    image: Image | None
    folder: str = FOLDER


class Session:
    """The ssh program, with its standard input and output at the other end of ``stream``."""

    def __init__(self, wanted: Wanted, probe_digest: str) -> None:
        self._address = wanted.address
        self._token = f"twinbed-{secrets.token_hex(8)}"
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the session)
        arguments = [
            *(self._token, wanted.folder, probe_digest, wanted.image.digest if wanted.image else ""),
            *("--id", secrets.token_hex(5), "--seconds", f"{wanted.seconds:g}", "--wait", f"{wanted.seconds + 10:g}"),
        ]
        argv = ssh.command(wanted.address, _BEGIN, arguments, alive_s=wanted.seconds)
        self.stream, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        with theirs:
            self._process = process.attached(argv, theirs, self._log)

    def preamble(self) -> dict[str, str]:
        """What the host says before the agent does: fact -> text. Raises HostError where there is no host."""
        preamble: dict[str, str] = {}
        deadline = time.monotonic() + _GREETING_LIMIT_S
        while "missing" not in preamble and "begin" not in preamble:
            token, _, rest = self._line(deadline).partition(" ")
            if token == self._token:
                key, _, value = rest.partition(" ")
                preamble[key] = value.strip()
        return preamble

    def _line(self, deadline: float) -> str:
        """Up to the end of the line and no byte further: what follows is the agent's."""
        line = bytearray()
        while not line.endswith(b"\n"):
            self.stream.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                byte = self.stream.recv(1)
            except TimeoutError:
                by_hand = " ".join(["ssh", *self._address.options, self._address.destination, "true"])
                raise LimitExceeded(
                    f"{self._address.name}: {self._address.destination} let us in, and then said nothing for"
                    f" {_GREETING_LIMIT_S:g} s: what its user has started at login may be waiting for something; try {by_hand}"
                ) from None
            if not byte:
                code = self.wait(ssh.CONNECT_LIMIT_S)
                raise ssh.failed(self._address, code or 0, self.stderr_text())
            if len(line) < _LONGEST_LINE:
                line += byte
        self.stream.settimeout(None)
        return line.decode(errors="replace").rstrip("\n")

    def stderr_text(self) -> str:
        """ssh's error output, and that of the program on the host."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def why(self) -> str:
        """Why the stream has ended, where ssh or the host said so. Where we ended it, ssh still waits for the host to put
        everything back."""
        code = self._code(_WHY_LIMIT_S)
        text = self.stderr_text()
        return str(ssh.failed(self._address, code, text)).partition(": ")[2] if code and text else text

    def wait(self, limit_s: float) -> int | None:
        """ssh's exit code; None, and an end to it, where it does not end by itself."""
        code = self._code(limit_s)
        if code is None:
            self._process.kill()
            self._process.wait()
        return code

    def _code(self, limit_s: float) -> int | None:
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        self.stream.close()
        self.wait(ssh.CONNECT_LIMIT_S)
