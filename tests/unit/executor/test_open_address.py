"""Without TLS a scheduler is on this machine, or the user says that it need not be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from twinbed.cli.main import cli, run
from twinbed.executor import NoExecutor, cluster, opened
from twinbed.executor.cluster import refuse_open

CAPTURE = str(Path(__file__).parents[2] / "golden" / "captures" / "http-short.pcap")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://127.9.9.9:1", "tcp://[::1]:8786", "tcp://localhost:8786"])
def test_this_machine_needs_no_tls(address: str) -> None:
    refuse_open(address, address, False)


@pytest.mark.parametrize(
    "address", ["tcp://192.0.2.1:8786", "tcp://0.0.0.0:1", "tcp://[2001:db8::1]:8786", "tcp://two.invalid:8786", "tcp://:8786"]
)
def test_another_machine_does(address: str) -> None:
    with pytest.raises(NoExecutor, match="no TLS") as caught:
        refuse_open(address, address, False)
    assert "--insecure" in caught.value.advice and "docs/scale.md" in caught.value.advice
    refuse_open(address, address, True)
    refuse_open(address.replace("tcp", "tls"), address, False)


def test_a_name_of_several_addresses_is_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = [(0, 0, 0, "", ("127.0.0.1", 0)), (0, 0, 0, "", ("192.0.2.1", 0))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: answer)
    with pytest.raises(NoExecutor, match="no TLS"):
        refuse_open("tcp://both:8786", "tcp://both:8786", False)


def test_commands_refuse_before_they_connect(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["flows", "--on", "tcp://192.0.2.1:8786", CAPTURE]) == 2
    assert "--insecure" in capsys.readouterr().err


def test_a_cluster_that_a_file_describes_needs_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Described(SimpleNamespace):
        def __enter__(self) -> Described:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    made = Described(scheduler_address="tcp://192.0.2.1:8786", security=None, scale=asked.append)
    monkeypatch.setattr("distributed.SSHCluster", lambda **_: made)
    monkeypatch.setattr("twinbed.executor.cluster.ANSWER_S", 0.2)
    file = tmp_path / "cluster.yaml"
    file.write_text("cluster: {kind: ssh, workers: 2, hosts: [a, b]}")
    with pytest.raises(NoExecutor, match="no TLS"), opened(str(file)):
        pass
    assert not asked
    with pytest.raises(NoExecutor, match=r"192\.0\.2\.1"), opened(str(file), insecure=True):
        pass
    assert asked == [2] and cluster.ANSWER_S == 0.2


def test_every_command_with_on_has_the_flag() -> None:
    assert isinstance(cli, click.Group)
    context = click.Context(cli)
    with_on = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        for each in command.commands.values() if isinstance(command, click.Group) else [command]:
            options = {parameter.name for parameter in each.params}
            if "on" in options:
                with_on.append(name)
                assert "insecure" in options, name
    assert {"compare", "run", "flows", "report"} <= set(with_on)
