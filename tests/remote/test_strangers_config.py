"""An ssh configuration that came with a study: OpenSSH's own client runs programs for it, twinbed's commands run none."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import twinbed
from tests.remote.machines import BARE_LOGIN, until
from twinbed.hosts import ssh, ssh_config
from twinbed.hosts.error import HostError

pytestmark = pytest.mark.privileged

PLANTED = {
    "ProxyCommand": "ProxyCommand {run}; exec nc {address} %p",
    "Match exec": 'Match exec "{run}"',
    "Match exec with =": 'Match=exec "{run}"',
    "Match exec in quotes": '"Match" exec "{run}"',
    "Match exec after a tab": '\tmAtCh\texec "{run}"',
    "Include": "Include {folder}/included",
    "LocalCommand": "PermitLocalCommand yes\nLocalCommand {run}",
    "KnownHostsCommand": "KnownHostsCommand {folder}/program %H",
    "ProxyJump": "ProxyJump -oProxyCommand={folder}/program",
}
"""Lines of such a file that make ssh run ``{run}``, or a program that does, and for which a host that answers is needed."""
BARRED = (
    *("IdentityAgent /run/agent", "PKCS11Provider /evil.so", "SecurityKeyProvider /evil.so", "XAuthLocation /evil"),
    *("ControlMaster auto", "ControlPath /run/any", "SendEnv *", "SetEnv A=b", "ForwardAgent yes", "ForwardX11 yes"),
    *(
        "LocalForward 1 a:1",
        "RemoteForward 1 a:1",
        "DynamicForward 1",
        "Tunnel yes",
        "RemoteCommand id",
        "CanonicalizeHostname yes",
    ),
    *("StrictHostKeyChecking no", "UpdateHostKeys yes", "GSSAPIAuthentication yes", "ProxyUseFdpass yes", "EscapeChar ~"),
    *("=ProxyCommand x", "\\ProxyCommand x", "User\rroot", "'User' root", "user\vroot", "nothing", "IgnoreUnknown *"),
)


class Planted:
    """A study's folder, with a configuration by which ssh reaches an sshd of this machine's as ``host``."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.canary, self.config, self.port = folder, folder / "canary", folder / "lab.conf", port

    def write(self, line: str) -> None:
        run = f"touch {self.canary}"
        more = line.format(run=run, folder=self.folder, address="127.0.0.1")
        (self.folder / "included").write_text(f'Match exec "{run}"\n')
        key = self.folder.parent / "served"
        self.config.write_text(
            f"# as the study's author wrote it\n\nHost host\n  HostName 127.0.0.1\n  Port {self.port}\n  User root\n"
            f"  IdentityFile {key}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {key}/known\n"
            f"  GlobalKnownHostsFile none\n{more}\n"
        )

    def study(self, destination: str = "host", **host: object) -> Path:
        hosts = {"client": {"ssh": destination, **host}, "server": {"ssh": f"{destination}2", **host}}
        testbeds = {"physical": {"driver": "remote", "image": "none", "hosts": hosts}}
        file = self.folder / "study.yaml"
        file.write_text(json.dumps({"study": "s", "testbeds": testbeds, "workload": {"kind": "http"}}))
        return file

    def twinbed(self, *words: str) -> str:
        """What it printed."""
        ssh_config._allowed.clear()  # which a process begins with
        done = twinbed(*words, cwd=self.folder)
        assert done.returncode in (2, 3), done
        return " ".join((done.stdout + done.stderr).split())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an sshd on this machine's loopback."""
    folder = tmp_path_factory.getbasetemp() / "served"
    folder.mkdir()
    for name in ("user", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    options = {"HostKey": f"{folder}/host", "AuthorizedKeysFile": f"{folder}/user.pub", "StrictModes": "no", "UsePAM": "no"}
    options |= {"PermitRootLogin": "yes", "PidFile": "none", "ListenAddress": f"127.0.0.1:{port}"}
    sshd = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *(f"-o{name}={value}" for name, value in options.items())]
    argv = ["unshare", "-m", "setpriv", "--pdeathsig", "KILL", "sh", "-c", f"{BARE_LOGIN}; exec {shlex.join(sshd)}"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        until("sshd listens", lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        yield port
        daemon.kill()


@pytest.fixture
def planted(served: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    folder = tmp_path_factory.getbasetemp() / f"study-{tmp_path.name}"
    folder.mkdir()
    found = Planted(folder, served)
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {found.canary}\n")
    program.chmod(0o755)
    return found


def plainly(planted: Planted, *options: str) -> int:
    """OpenSSH's exit code."""
    argv = ["ssh", "-o", "BatchMode=yes", *options, "-F", str(planted.config), "host", "true"]
    return subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60).returncode


@pytest.mark.parametrize("what", PLANTED)
def test_a_study_s_own_configuration_runs_nothing(what: str, planted: Planted) -> None:
    planted.write(PLANTED[what])
    plainly(planted)
    if what != "ProxyJump":  # which ssh itself refuses
        assert planted.canary.exists(), "or this test shows nothing"
        planted.canary.unlink()
    study = str(planted.study(config="lab.conf"))
    for command in (["check", study], ["plan", study], ["run", study, "--no-report"]):
        said = planted.twinbed(*command) if command[0] != "plan" else ""
        assert command[0] == "plan" or "add --ssh-config lab.conf" in said
        assert not planted.canary.exists(), command
    for command in ("check", "run"):
        said = planted.twinbed(command, study, "--ssh-config", str(planted.config))
        assert "lab.conf, line 11:" in said and "put it into your own ~/.ssh/config" in said
        assert not planted.canary.exists(), command


@pytest.mark.parametrize("what", ["ProxyCommand", "LocalCommand", "KnownHostsCommand"])
def test_the_command_line_wins_over_the_file(what: str, planted: Planted) -> None:
    """Were such a line ever taken from a file: ssh takes the first value that it is given."""
    planted.write(PLANTED[what])
    assert plainly(planted, *ssh_config.OFF) == 0
    assert not planted.canary.exists()


@pytest.mark.parametrize("line", BARRED, ids=repr)
def test_only_who_where_and_which_key_are_taken(line: str, planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "_allowed", set())
    planted.write("")
    planted.config.write_text(planted.config.read_text() + line + "\n")
    ssh_config.allow([planted.config])
    with pytest.raises(HostError, match=r"lab\.conf, line 12: "):
        ssh_config.options(planted.config)


def test_a_configuration_with_leave_is_used_as_it_was_checked(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "_allowed", set())
    planted.write("")
    address = ssh.Address("client", "host", config=planted.config)
    with pytest.raises(HostError, match="needs your permission"):
        ssh.run(address, "echo in")
    ssh_config.allow([planted.config])
    assert ssh.run(address, "echo in") == "in\n"
    command = ssh.command(address, "echo in")
    planted.write(PLANTED["Match exec"])
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == b"in\n"
    assert not planted.canary.exists(), "the file that is there now is not read"
    with pytest.raises(HostError, match="line 11: Match may start a program"):
        ssh.run(address, "echo in")


@pytest.mark.parametrize("kind", ["folder", "device", "missing", "large", "zero"])
def test_what_is_no_configuration_is_refused(kind: str, planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "_allowed", set())
    file = {"folder": planted.folder, "device": Path("/dev/zero")}.get(kind, planted.folder / kind)
    if kind in ("large", "zero"):
        file.write_bytes(b"#" * 2**19 if kind == "large" else b"User root\0\nMatch exec x")
    ssh_config.allow([file])
    with pytest.raises(HostError):
        ssh_config.options(file)


@pytest.mark.parametrize(
    "destination",
    [
        *(
            "-oProxyCommand=touch canary",
            "root@-oProxyCommand=x",
            "-l",
            "host -oProxyCommand=x",
            "host;touch canary",
            "$(touch canary)",
        ),
        *(
            "`touch canary`",
            "a|b",
            "a&b",
            "root@$(id)@host",
            "%h",
            "root@%d",
            "ssh://host",
            "host\ntouch canary",
            "",
            "a'b",
            'a"b',
            "a\\b",
        ),
    ],
)
def test_a_study_names_a_host_and_nothing_that_a_shell_reads(destination: str, planted: Planted) -> None:
    """OpenSSH puts names into the user's own ProxyCommand as they are (CVE-2023-51385)."""
    for settings in (
        {"driver": "remote", "hosts": {"client": destination, "server": "s"}},
        {"driver": "minimega", "head": destination},
    ):
        more = {"kernel": "/k"} if settings["driver"] == "minimega" else {}
        study = {"study": "s", "testbeds": {"bed": {**settings, **more}}, "workload": {"kind": "http"}}
        (planted.folder / "study.yaml").write_text(json.dumps(study))
        assert "study.yaml:1:" in planted.twinbed("check", "study.yaml")
    assert not planted.canary.exists()


@pytest.mark.parametrize(
    "destination", ["c1", "root@c1", "lab_user.x+1@c-1.example.org", "10.0.0.1", "root@fe80::1%eth0", "::1"]
)
def test_hosts_have_the_names_that_they_had(destination: str) -> None:
    from twinbed.testbeds.minimega.settings import MinimegaSettings
    from twinbed.testbeds.remote.settings import RemoteHost

    assert RemoteHost.model_validate(destination).ssh == destination
    assert MinimegaSettings(head=destination, kernel="/k").head == destination
