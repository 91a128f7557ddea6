"""A head node behind SSH: OpenSSH's server, spoken to over a pipe, so that nothing goes over any network."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.remote.machines import BARE_LOGIN

from minimega.standin import StandIn
from twinbed.contracts.site import Site
from twinbed.hosts import ssh_forward
from twinbed.hosts.error import HostError
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS
from twinbed.testbeds.minimega.head import open_head

DRIVER = PLUGINS.drivers["minimega"]


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a machine that ssh gets to."""
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / key)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    served = tmp_path / "sshd_config"
    served.write_text(
        f"HostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
        "PasswordAuthentication no\nLogLevel ERROR\n"
    )
    known = tmp_path / "known"
    known.write_text("head " + (tmp_path / "host.pub").read_text())
    client = tmp_path / "ssh_config"
    client.write_text(
        f"Host head\n  User root\n  IdentityFile {tmp_path}/user\n  UserKnownHostsFile {known}\n"
        f"  ProxyCommand unshare -m sh -c {shlex.quote(f'{BARE_LOGIN}; exec /usr/sbin/sshd -i -f {served}')}\n"
        "Host nobody\n  ProxyCommand false\n"
    )
    monkeypatch.setattr(ssh_forward, "SSH", (ssh_forward.SSH[0], "-F", str(client), *ssh_forward.SSH[1:]))
    return "head"


def test_the_socket_and_files_of_another_machine(server: StandIn, head: str, tmp_path: Path) -> None:
    with open_head(str(server.base), head) as there:
        assert there.socket.ask("version").entries[0].text.startswith("minimega 3.0")
        there.put("a file", b"\0\xff content")
        assert (server.files / "a file").read_bytes() == b"\0\xff content"
        there.get(there.file("a file"), tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == b"\0\xff content"
        assert there.digest(there.file("a file")) == hashlib.sha256(b"\0\xff content").hexdigest()
        assert there.digest("/not/there") is None
        assert (server.files / "a file").stat().st_mode & 0o777 == 0o755
        there.remove("a file")
        assert list(server.files.iterdir()) == []
        with pytest.raises(HostError, match="No such file"):
            there.get("/not/there", tmp_path / "copy")


@pytest.mark.usefixtures("head")
def test_a_machine_that_is_not_there() -> None:
    with (
        pytest.raises(HostError, match=r"nobody: ssh cannot forward .*: .*Connection"),
        open_head("/tmp/minimega", "nobody"),
    ):
        pass


@pytest.mark.parametrize("control", ["virtio-serial", "cc"])
def test_a_bed_behind_ssh(real: StandIn, head: str, site: Callable[..., Site], control: str) -> None:
    params = DRIVER.params(base=str(real.base), head=head, kernel="/opt/k", control=control)
    with DRIVER.up(params, Topology(), site()) as bed:
        assert bed.hosts["client"].run(["hostname"]).text.strip() == "client"
        assert [item for item in bed.applied if not item.agrees] == []
    assert set(real.spaces) == {"minimega"}
    assert list(real.files.iterdir()) == []
