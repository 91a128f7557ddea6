"""The manual's examples and the ready study are studies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minimega import recording
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.testbeds.minimega import launch
from twinbed.testbeds.minimega.socket import CommandSocket

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", (REPOSITORY / "docs/minimega.md").read_text(), re.MULTILINE | re.DOTALL)
READY = (REPOSITORY / "studies/minimega.yaml").read_text()


@pytest.mark.parametrize("text", [*EXAMPLES, READY])
def test_each_example_is_a_study(text: str) -> None:
    study = load(text, "example.yaml", catalogue())
    assert "minimega" in {each.kind for variants in study.testbeds.values() for each in variants}


def test_what_is_sent_is_what_the_recorded_server_took() -> None:
    """The settings of the recorded conversation: word for word the recorded commands, but for the hardware address."""
    settings = PLUGINS.drivers["minimega"].params(
        qemu="/opt/qemu", cpu="qemu64", kernel="/opt/guest.kernel", initrd="/opt/guest.initrd", append="console=ttyS0"
    )
    guest = launch.Wanted("server", "10.0.0.1/24", "02:00:0a:00:00:01", "virtio-net-pci", None)
    socket = CommandSocket(Path("/nowhere"), "lab1")
    sent = [socket.command("vm", "config", *words) for words in launch.describe(settings, guest, None)]
    taken = {command for command, objects in recording.entries() if not objects[0]["Resp"][0]["Error"]}
    assert {line.replace(f"{guest.mac},", "") for line in sent} <= taken
    for words in (
        *(("vm", "launch", "kvm", "server"), ("vm", "start", "all"), ("vm", "info"), ("cc", "clients"), ("cc", "commands")),
        *(("cc", "filter", "name=client"), ("clear", "cc", "filter"), ("qos", "add", "client", "0", "rate", "100", "mbit")),
        *(("capture", "pcap", "vm", "client", "0", "client.pcap"), ("capture",), ("clear", "capture"), ("vlans",), ("bridge",)),
        *(
            ("vm", "kill", "all"),
            ("vm", "flush"),
            ("cc", "exec", "uname", "-a"),
            ("cc", "recv", "/proc/net/netstat"),
        ),
    ):
        assert socket.command(*words) in taken
    everywhere = CommandSocket(Path("/nowhere"))
    for words in (("version",), ("mesh", "status"), ("namespace",), ("clear", "namespace", "lab1")):
        assert everywhere.command(*words) in taken


def test_a_disk_is_written_to_by_nobody() -> None:
    """Asked for by itself, and before the disk; a guest without a disk needs it not."""
    guest = launch.Wanted("server", "10.0.0.1/24", "02:00:0a:00:00:01", "e1000", None)
    driver = PLUGINS.drivers["minimega"]
    plan = launch.describe(driver.params(disk="/d.qcow2"), guest, None)
    assert plan.index(("snapshot", "true")) == plan.index(("disks", "/d.qcow2")) - 1
    assert ("snapshot", "true") not in launch.describe(driver.params(kernel="/k"), guest, None)
