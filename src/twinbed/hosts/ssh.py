"""Programs on a host over SSH, with OpenSSH's client and its user's keys, known hosts, agent and configuration.

Nothing is ever asked on the terminal: a password, a passphrase or an unknown host key is an error with a remedy. Programs there
run as root: by a login as root, or by ``sudo`` without a password. Units: seconds.
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
"""Destinations that a study may name: no option and nothing special to a shell, as a user's ProxyCommand may hold ``%h``."""
CONNECT_LIMIT_S = 10
_LOST_AFTER = 3
"""The connection ends after this many unanswered messages in a row."""
_SSH_FAILED = 255
"""The exit code of ssh for failures of its own."""

# sudo hides SSH_CONNECTION from the programs that it runs.
_AS_ROOT = (
    'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; s=; [ "$(id -u)" = 0 ] || s="sudo -n"; '
    'exec $s env PATH="$PATH" TWINBED_FROM="$SSH_CONNECTION" sh -c "$@"'
)
_FROM_SSH = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key differs from the known key",
        "find out why; then ssh-keygen -R HOST, with the name that ssh prints",
    ),
    ("Host key verification failed", "its host key is unknown", "connect once by hand and compare the key: ssh {}"),
    ("Permission denied", "it accepts none of your keys", "ssh-copy-id {}, or ssh-add the key that it knows"),
    ("Connection refused", "no sshd listens there", "start sshd, or set the right port"),
    ("Could not resolve hostname", "its name is unknown", "set an address, or a Host entry in the ssh configuration"),
    ("timed out", "it does not answer", "check that it is on and the management network is up; try ssh {}"),
    ("No route to host", "no route leads to it", "check that it is on and the management network is up; try ssh {}"),
    ("Network is unreachable", "no route leads to it", "check that the management network is up; try ssh {}"),
    ("not responding", "it stopped answering", "check the management network; try ssh {}"),
)
"""Error of ssh, its meaning, its remedy."""
_FROM_HOST = (
    ("sudo: ", "its user is not root and may not become root", "log in as root, or allow the user sudo without a password"),
    ("No space left on device", "its disk is full", "free space there, or set a folder on another disk: folder: /PATH"),
    ("Read-only file system", "its folder cannot be written", "set a writable folder: folder: /PATH"),
    ("there is no tar", "it cannot unpack the image", "apt-get install tar there, or use its own tools: image: none"),
)
"""Error of a program on the host, its meaning, its remedy."""


@dataclass(frozen=True, slots=True)
class Address:
    """The place of a host for ssh; ``name`` is the host's name in the study."""

    name: str
    destination: str
    """USER@HOST, HOST, or a Host entry of the ssh configuration, as the function ``destination`` accepts it."""
    port: int | None = None
    config: Path | None = None
    """A configuration file in place of the user's, with permission (``ssh_config``)."""

    @property
    def options(self) -> list[str]:
        """Return ssh's options as a user types them."""
        config = ["-F", str(self.config)] if self.config else []
        return config + (["-p", str(self.port)] if self.port else [])


def destination(given: str) -> str:
    """Return a destination for ssh. Raises ValueError unless it is a plain name of a host, with or without a user."""
    if _DESTINATION.fullmatch(given) is None:
        raise ValueError(f"{given!r} must be USER@HOST, HOST or a Host entry for ssh, of letters, digits and . _ - + :")
    return given


def there() -> str | None:
    """Return the path of the client on this machine; None if it is not installed."""
    return shutil.which(PROGRAM)


def command(address: Address, script: str, arguments: Sequence[str] = (), *, alive_s: float = CONNECT_LIMIT_S) -> list[str]:
    """Return ssh's argument list that runs a POSIX shell script as root on the host.

    A host without an answer for ``alive_s`` to twice as long is lost. Raises HostError if the host's configuration file may not
    be read.
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
    """Run a script to its end and return its output. Raises HostError with the reason and a remedy."""
    try:
        done = process.run(command(address, script, arguments), stdin=stdin, limit_s=limit_s, check=False)
    except process.ProcessFailed as error:
        by_hand = " ".join([*address.options, address.destination])
        remedy = f"make programs that its user's shell starts at login end, and print little; try ssh {by_hand} true"
        raise HostError(f"{address.name} ({address.destination}): ssh: {error.why}: {remedy}") from None
    if done.code != 0:
        raise failed(address, done.code, done.stderr.decode(errors="replace"))
    return done.text


def failed(address: Address, code: int, stderr: str) -> HostError:
    """Explain an ssh that ended with ``code``: the host, the reason, the remedy and the last lines of its output."""
    text = stderr.strip()
    by_hand = " ".join([*address.options, address.destination])
    output = "".join(f"\n    {line.strip()}" for line in text.splitlines()[-6:])
    for mark, why, remedy in (*(_FROM_SSH if code == _SSH_FAILED else ()), *_FROM_HOST):
        if mark in text:
            return HostError(f"{address.name} ({address.destination}): {why}: {remedy.format(by_hand)}{output}")
    what = "ssh failed" if code == _SSH_FAILED else f"its shell ended with code {code}"
    return HostError(f"{address.name} ({address.destination}): {what}{output}")
