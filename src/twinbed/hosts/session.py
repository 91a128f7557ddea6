"""One run of the ssh program that holds a lease: the host's report before its agent starts, and how it ended.

Units: seconds.
"""

from __future__ import annotations

import secrets
import socket
import time
from dataclasses import dataclass

from twinbed.hosts import process, ssh
from twinbed.hosts.error import LimitExceeded
from twinbed.hosts.ssh import Address
from twinbed.model.image import Image

FOLDER = "/var/lib/twinbed"
"""The default folder on the host. Only root may write there, since programs there run as root."""
_GREETING_LIMIT_S = 30.0
"""From the start, connecting included."""
_WHY_LIMIT_S = 1.0
"""The limit for ssh to end after its stream: it may report why."""
_LONGEST_LINE = 4096
_AHEAD_BYTES = 1 << 16
MOST_PREAMBLE_BYTES = 2**20
"""The most bytes that a login may print before the agent greets: far more than any message of the day."""
_BUFFER_BYTES = 4 * 2**20
"""So large that ssh, which hands over 32 KiB at a time, need not wait for this process."""

# Lines that begin with the token come from this script; the login shell may print others before.
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
    """A host to lease. ``seconds``: how long it goes on without a sign of life. ``image``: None for the host's own tools."""

    address: Address
    seconds: float
    image: Image | None
    folder: str = FOLDER


class Session:
    """The ssh program; ``stream`` leads to its standard input and output."""

    def __init__(self, wanted: Wanted, probe_digest: str) -> None:
        self._address = wanted.address
        self._token = f"twinbed-{secrets.token_hex(8)}"
        self._printed = 0
        arguments = [
            *(self._token, wanted.folder, probe_digest, wanted.image.digest if wanted.image else ""),
            *("--id", secrets.token_hex(5), "--seconds", f"{wanted.seconds:g}", "--wait", f"{wanted.seconds + 10:g}"),
        ]
        argv = ssh.command(wanted.address, _BEGIN, arguments, alive_s=wanted.seconds)
        self.stream, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        with theirs:
            self._process = process.Staying(argv, theirs)

    def preamble(self, limit_s: float = _GREETING_LIMIT_S) -> dict[str, str]:
        """Read the facts that the host reports before its agent starts, by name.

        Raises HostError if there is no host, LimitExceeded if its login prints for longer than ``limit_s`` or more than
        MOST_PREAMBLE_BYTES."""
        preamble: dict[str, str] = {}
        deadline, line = time.monotonic() + limit_s, b""
        while "missing" not in preamble and "begin" not in preamble:
            ahead, taken = self._ahead(deadline, limit_s), 0
            while taken < len(ahead) and "missing" not in preamble and "begin" not in preamble:
                end = ahead.find(b"\n", taken) + 1
                piece = ahead[taken : end or len(ahead)]
                taken, line = taken + len(piece), (line + piece)[:_LONGEST_LINE]
                if end:
                    preamble.update(self._fact(line))
                    line = b""
            # No byte further: the next bytes belong to the agent.
            self._printed += len(self.stream.recv(taken, socket.MSG_WAITALL))
            if self._printed > MOST_PREAMBLE_BYTES:
                raise self._endless(f"printed more than {MOST_PREAMBLE_BYTES:,} bytes at login")
        self.stream.settimeout(None)
        return preamble

    def _fact(self, line: bytes) -> dict[str, str]:
        """Read a line: one fact if it is of this script, else none."""
        token, _, rest = line.decode(errors="replace").partition(" ")
        key, _, value = rest.partition(" ")
        return {key.strip(): value.strip()} if token == self._token else {}

    def _ahead(self, deadline: float, limit_s: float) -> bytes:
        """Return the bytes that have come and are not taken yet, at least one."""
        self.stream.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            ahead = self.stream.recv(_AHEAD_BYTES, socket.MSG_PEEK)
        except TimeoutError:
            ahead = None
        if ahead is None or time.monotonic() > deadline:
            raise self._endless(f"did not end its login after {limit_s:g} s and {self._printed:,} bytes")
        if not ahead:
            code = self.wait(ssh.CONNECT_LIMIT_S)
            raise self._flood() or ssh.failed(self._address, code or 0, self.stderr_text())
        return ahead

    def _endless(self, what: str) -> LimitExceeded:
        by_hand = " ".join(["ssh", *self._address.options, self._address.destination, "true"])
        return LimitExceeded(
            f"{self._address.name} ({self._address.destination}): it {what}",
            advice=f"make programs that its user's shell starts at login end, and print little; try {by_hand}",
        )

    def _flood(self) -> LimitExceeded | None:
        """Return the error if ssh was killed for its output; else None."""
        most = f"{process.MOST_WORDS_BYTES:,}"
        return self._endless(f"wrote more than {most} bytes of error output") if self._process.flooded else None

    def stderr_text(self) -> str:
        """Return the error output of ssh and of the program on the host."""
        return self._process.words()

    def why(self) -> str:
        """Return why the stream has ended, if ssh or the host reported it. If this process ended it, ssh still waits for the
        host to put everything back."""
        code = self._process.code(_WHY_LIMIT_S)
        if flood := self._flood():
            return flood.message.partition(": ")[2]
        text = self.stderr_text()
        return str(ssh.failed(self._address, code, text)).partition(": ")[2] if code and text else text

    def wait(self, limit_s: float) -> int | None:
        """Wait for ssh's exit code. If it does not end by itself, kill it and return None."""
        return self._process.end(limit_s)

    def close(self) -> None:
        self.stream.close()
        self.wait(ssh.CONNECT_LIMIT_S)
