"""An ssh configuration file that a study names: read only with permission from the command line, and only if it starts nothing.

Such a file gives user, address and key. A keyword that can run a program, load a library, open a socket or read another file is
an error. ssh reads the checked content, not the file.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from twinbed.hosts.error import HostError

OPTION = "--ssh-config"
_MOST_BYTES = 2**18
_KEYWORDS = """
    addressfamily batchmode bindaddress bindinterface casignaturealgorithms certificatefile checkhostip ciphers compression
    connectionattempts connecttimeout globalknownhostsfile hashknownhosts host hostkeyalgorithms hostkeyalias hostname

    identitiesonly identityfile ipqos kexalgorithms loglevel macs nohostauthenticationforlocalhost numberofpasswordprompts
    passwordauthentication port preferredauthentications pubkeyacceptedalgorithms pubkeyacceptedkeytypes pubkeyauthentication
    rekeylimit requesttty serveralivecountmax serveraliveinterval tcpkeepalive user userknownhostsfile
"""
"""The keywords that such a file may have (ssh_config(5))."""
_LINE = re.compile(r"[ \t]*([A-Za-z0-9]+)(?:[ \t=].*)?")
OFF = (
    *("-o", "ProxyCommand=none", "-o", "ProxyUseFdpass=no", "-o", "PermitLocalCommand=no", "-o", "LocalCommand=none"),
    *("-o", "KnownHostsCommand=none", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "StrictHostKeyChecking=yes"),
    *("-o", "UpdateHostKeys=no"),
)
"""Options with such a file. They come first on ssh's command line, and ssh takes the first value of an option."""
_allowed: set[Path] = set()


def allow(files: Iterable[Path]) -> None:
    """Permit these files for the life of this process."""
    _allowed.update(map(_real, files))


def options(file: Path) -> list[str]:
    """Return ssh's options for this file. Raises HostError without permission, or if the file could start something."""
    if _real(file) not in _allowed:
        raise HostError(
            f"config: {file}: a study's ssh configuration needs your permission: read the file, then add {OPTION} {file};"
            " or put its hosts into your own ~/.ssh/config"
        )
    return [*OFF, "-F", f"/proc/{os.getpid()}/fd/{_held(_checked(file))}"]


def _checked(file: Path) -> bytes:
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            content = stream.read(_MOST_BYTES + 1) or b""
    except OSError as error:
        raise HostError(f"{file}: {error.strerror}: give another file with {OPTION}") from None
    if len(content) > _MOST_BYTES or b"\0" in content:
        raise HostError(f"{file}: an ssh configuration must be text of at most {_MOST_BYTES} bytes")
    for number, line in enumerate(content.decode(errors="replace").split("\n"), start=1):
        if not line.strip(" \t\r\f") or line.lstrip(" \t").startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip("\r\f"))
        if match is None or match[1].lower() not in _KEYWORDS.split():
            raise HostError(
                f"{file}, line {number}: {match[1] if match else 'this line'} may start a program or read another file, and is"
                " refused in a study's file: put it into your own ~/.ssh/config"
            )
    return content


@functools.cache
def _held(content: bytes) -> int:
    """Return a descriptor of a private file with the content, which nobody can change after the check."""
    descriptor = os.memfd_create("ssh-config")
    os.write(descriptor, content)
    return descriptor


def _real(file: Path) -> Path:
    return file.expanduser().resolve()
