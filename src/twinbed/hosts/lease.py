"""A lease: somebody's host, used during a run by ``twinbed-probe lease`` over SSH.

The probe and, if the study wants it, the image's root file system are put into a folder of the host once, by content. Every
change is first written down there (``undo``). When the connection ends, or the lease's time passes without a sign of life, the
host itself puts everything back (crates/probe/src/lease.rs).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from twinbed.contracts.command import PRELOAD
from twinbed.hosts import connection as wire
from twinbed.hosts import install, process, ssh
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.connection import Channel, Connection
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.hosts.session import FOLDER, Session, Wanted
from twinbed.hosts.ssh import Address
from twinbed.model.json import Document

ARTIFACTS = "/run/twinbed"
UNDO = "/run/twinbed-undo"
PROGRAMS = "/run/twinbed-bin"
_UNDO_LIMIT_S = 60.0
_BEATS = 4
"""Signs of life in the time of a lease."""
_NOT_UNDONE = 4

_SWEEP = """
for probe in $(ls -t "$1"/probes/*/twinbed-probe 2>/dev/null); do
  [ -x "$probe" ] && exec "$probe" lease --sweep --folder "$@"
done
exit 0
"""


class Lease:
    """A leased host: programs on it through ``host``, as on any other."""

    def __init__(self, wanted: Wanted, host: AgentHost, preamble: Mapping[str, str], session: Session) -> None:
        self.host, self.preamble = host, preamble
        self._wanted, self._session = wanted, session
        self._undone = 0
        self._over = threading.Event()
        threading.Thread(target=self._beat, name=f"lease {host.name}", daemon=True).start()

    @property
    def management(self) -> tuple[str, str] | None:
        """Return (controller's address, host's address) of the SSH connection as the host sees it, if sshd reports it."""
        words = self.preamble.get("from", "").split()
        return (words[0], words[2]) if len(words) == 4 and words[0] != "UNKNOWN" else None

    def undo(self, argv: Sequence[str], stdin: bytes | None = None) -> None:
        """Have the host run this program when the lease is over, the last entered first. Enter it before the change."""
        if stdin is None:
            self._enter({"argv": list(argv)})
            return
        name = f"{self._undone:03}.stdin"
        self.host.write(f"{UNDO}/{name}", stdin)
        self._enter({"argv": list(argv), "stdin": name})

    def undo_file(self, path: str, content: str) -> None:
        """Have the host write this file when the lease is over."""
        self._enter({"path": path, "content": content})

    def _enter(self, entry: Document) -> None:
        self.host.write(f"{UNDO}/{self._undone:03}.json", json.dumps(entry).encode())
        self._undone += 1

    def _beat(self) -> None:
        """Send signs of life, so that a long program without output does not end the lease."""
        with contextlib.suppress(HostError):
            channel = _Beats(self.host.connection, "signs of life")
            while not self._over.wait(self._wanted.seconds / _BEATS):
                channel.send(wire.PING, {})

    def hang_up(self) -> None:
        self._over.set()
        self.host.close()

    def ended(self) -> None:
        """Wait until the host has put everything back. Raises HostError if it did not, or did not report it."""
        self.hang_up()
        address = self._wanted.address
        code = self._session.wait(self._wanted.seconds + _UNDO_LIMIT_S)
        stderr = self._session.stderr_text()
        if code is None:
            raise LimitExceeded(
                f"{address.name}: ssh to {address.destination} did not end; the host puts everything back by itself"
            )
        if code == _NOT_UNDONE:
            raise HostError(f"{address.name}: the host could not put everything back: {stderr}")
        if code != 0:
            raise ssh.failed(address, code, stderr)


class _Beats(Channel):
    def deliver(self, kind: int, payload: bytes) -> None:
        """Drop the answers."""


@contextlib.contextmanager
def open_leases(wanted: Sequence[Wanted], probe: Path) -> Iterator[list[Lease]]:
    """Lease hosts side by side while the block runs. Afterwards each has carried out its ``undo``."""
    openings: list[Future[Lease]] = []
    try:
        process.side_by_side(lambda host: _open(host, probe), wanted, openings)
        leases = [opening.result() for opening in openings]
        yield leases
    except BaseException:
        leases = [opening.result() for opening in openings if not opening.exception()]
        for lease in leases:
            lease.hang_up()
        for lease in leases:
            with contextlib.suppress(HostError):
                lease.ended()
        raise
    for lease in leases:
        lease.hang_up()
    for lease in leases:
        lease.ended()


def sweep(address: Address, folder: str = FOLDER, *, only_list: bool = False) -> list[str]:
    """Undo leases without a keeper on a host, and return their folders. Raises HostError if one has a keeper."""
    return ssh.run(address, _SWEEP, [folder, *(["--list"] if only_list else [])], limit_s=_UNDO_LIMIT_S).splitlines()


def _open(wanted: Wanted, probe: Path) -> Lease:
    programs = [probe, *probe.parent.glob(PRELOAD)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in programs)).hexdigest()[:16]
    for _ in ("probe", "image", "neither is missing"):
        session = Session(wanted, digest)
        try:
            preamble = session.preamble()
        except BaseException:
            session.close()
            raise
        missing = preamble.get("missing")
        if missing is None:
            return _greeted(wanted, session, preamble)
        session.close()
        if preamble["system"] != "Linux x86_64":
            raise HostError(f"{wanted.address.name}: it is {preamble['system']}; use a host with Linux on x86_64")
        if missing == "probe":
            install.programs(wanted.address, wanted.folder, digest, programs)
        elif wanted.image is not None:
            install.image(wanted.address, wanted.folder, wanted.image)
    raise HostError(
        f"{wanted.address.name}: programs put into {wanted.folder} vanished or cannot run there; it may be mounted noexec",
        advice="set another folder: folder: /PATH",
    )


def _greeted(wanted: Wanted, session: Session, preamble: Mapping[str, str]) -> Lease:
    name = wanted.address.name
    connection = Connection(name, session.stream, session.why)
    try:
        connection.hello(wanted.seconds + _UNDO_LIMIT_S)
    except BaseException:
        connection.close()
        session.close()
        raise
    return Lease(wanted, AgentHost(name, connection, ARTIFACTS, bin=PROGRAMS), preamble, session)
