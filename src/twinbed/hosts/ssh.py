"""Programs on a host over SSH, with OpenSSH's client: its user's keys, known hosts, agent and configuration hold.

Nothing is ever asked on the terminal: a password, a passphrase or an unknown host key is an error that says what to do.
Units: seconds.  What runs there runs as root: by logging in as root, or by ``sudo`` where that needs no password.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from twinbed.hosts import process, ssh_config
from twinbed.hosts.error import HostError

PROGRAM = "ssh"
_DESTINATION = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.+-]*@)?[A-Za-z0-9_:][A-Za-z0-9_.:-]*(%[A-Za-z0-9_.-]+)?")
"""What a study may name: no option, and nothing that a shell reads, as the user's own ProxyCommand may hold ``%h``."""
CONNECT_LIMIT_S = 10
_LOST_AFTER = 3
"""The connection ends after so many unanswered questions in a row."""
_SSH_FAILED = 255
"""The exit code of ssh for failures of its own."""

# sudo hides who is connected from what it runs.
_AS_ROOT = (
    'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; s=; [ "$(id -u)" = 0 ] || s="sudo -n"; '
    'exec $s env PATH="$PATH" TWINBED_FROM="$SSH_CONNECTION" sh -c "$@"'
)
_ITS_OWN = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is another than the known one",
        "find out why; then ssh-keygen -R",
    ),
    ("Host key verification failed", "its host key is not known", "connect once by hand and compare the key: ssh {}"),
    ("Permission denied", "it lets nobody in with the keys there are", "ssh-copy-id {}, or ssh-add the key that it knows"),
    ("Connection refused", "no sshd listens there", "start sshd, or give the right port"),
    ("Could not resolve hostname", "there is no such name", "give an address, or a Host entry in the ssh configuration"),
    ("timed out", "it does not answer", "is it on, and the management network up? try ssh {}"),
    ("No route to host", "there is no way to it", "is it on, and the management network up? try ssh {}"),
    ("Network is unreachable", "there is no way to it", "is the management network up? try ssh {}"),
    ("not responding", "it stopped answering", "look at the management network"),
)
"""What ssh says, what it means, what to do."""
_THERE = (
    ("sudo: ", "its user is not root and may not become it", "log in as root, or allow the user sudo without a password"),
    ("No space left on device", "its disk is full", "make room, or give a folder on another disk"),
    ("Read-only file system", "its folder cannot be written", "give a folder that can: folder: /PATH"),
    ("there is no tar", "it cannot unpack the image", "install tar there, or use its own tools: image: none"),
)
"""What programs on the host say."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host is reached; ``name`` is the host's own in the study."""

    name: str
    destination: str
    """USER@HOST, HOST, or a Host entry of the ssh configuration, as ``destination`` lets it be."""
    port: int | None = None
    config: Path | None = None
    """Another configuration file than the user's, with leave (``ssh_config``)."""

    @property
    def options(self) -> list[str]:
        """Return ssh's options as a user types them."""
        config = ["-F", str(self.config)] if self.config else []
        return config + (["-p", str(self.port)] if self.port else [])


def destination(given: str) -> str:
    """Return it. Raises ValueError where it is no plain name of a host, with or without a user."""
    if _DESTINATION.fullmatch(given) is None:
        raise ValueError(f"{given!r} is no host for ssh: USER@HOST, HOST or a Host entry, of letters, digits and . _ - + :")
    return given


def there() -> str | None:
    """Where the client is on this machine."""
    return shutil.which(PROGRAM)


def command(address: Address, script: str, arguments: Sequence[str] = (), *, alive_s: float = CONNECT_LIMIT_S) -> list[str]:
    """ssh's argument list that runs a POSIX shell script as root on the host.

    A host that has not answered for ``alive_s`` to twice as long is lost. Raises HostError where the host's configuration file
    may not be read.
    """
    every = max(1, round(alive_s / _LOST_AFTER))
    return [
        *(PROGRAM, "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_LIMIT_S}"),
        *("-o", f"ServerAliveInterval={every}", "-o", f"ServerAliveCountMax={_LOST_AFTER}"),
        *("-o", "ClearAllForwardings=yes", "-o", "EscapeChar=none"),
        *(ssh_config.options(address.config) if address.config else ()),
        *(("-p", str(address.port)) if address.port else ()),
        *("--", address.destination),
        shlex.join(["sh", "-c", _AS_ROOT, "sh", script, "sh", *arguments]),
    ]


def run(
    address: Address, script: str, arguments: Sequence[str] = (), *, stdin: BinaryIO | None = None, limit_s: float = 30.0
) -> str:
    """Run a script to its end; returns what it printed. Raises HostError with the reason and what mends it."""
    try:
        done = process.run(command(address, script, arguments), stdin=stdin, limit_s=limit_s, check=False)
    except process.ProcessFailed as error:
        by_hand = " ".join([*address.options, address.destination])
        mend = f"what its user's shell starts at login must end, and print little; try ssh {by_hand} true"
        raise HostError(f"{address.name} ({address.destination}): ssh: {error.why}: {mend}") from None
    if done.code != 0:
        raise failed(address, done.code, done.stderr.decode(errors="replace"))
    return done.text


def failed(address: Address, code: int, stderr: str) -> HostError:
    """What an ssh that ended with ``code`` means: who, what, why, and what mends it."""
    text = stderr.strip()
    by_hand = " ".join([*address.options, address.destination])
    whole = "".join(f"\n    {line.strip()}" for line in text.splitlines()[-6:])
    for mark, why, mend in (*(_ITS_OWN if code == _SSH_FAILED else ()), *_THERE):
        if mark in text:
            return HostError(f"{address.name} ({address.destination}): {why}: {mend.format(by_hand)}{whole}")
    what = "ssh failed" if code == _SSH_FAILED else f"its shell ended with code {code}"
    return HostError(f"{address.name} ({address.destination}): {what}{whole}")
