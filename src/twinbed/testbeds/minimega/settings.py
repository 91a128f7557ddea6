"""Settings of a minimega testbed in a study file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.ssh import destination
from twinbed.model.units import Size

Name = r"^[A-Za-z][A-Za-z0-9_.-]*$"


class MinimegaSettings(HostSettings):
    typical: ClassVar[Mapping[str, object]] = {"kernel": "/images/vmlinuz", "initrd": "/images/initrd"}

    cpus: Literal["auto", "none"] = Field(
        "none", description="auto: pins each guest's QEMU to CPUs of its node; none: the scheduler decides"
    )
    base: str = Field("/tmp/minimega", description="minimega's base folder, with its command socket and files folder")
    head: str | None = Field(
        None,
        examples=["root@node1"],
        description="the head node, where ssh connects, such as root@node1; null: minimega runs on this machine",
    )
    namespace: str = Field("twinbed", pattern=Name, description="first part of the names of the runs' own namespaces")
    type: Literal["kvm", "container"] = Field("kvm", description="kvm: virtual machines; container: minimega's own containers")
    kernel: str | None = Field(None, examples=["/images/vmlinuz"], description="path on the head node of the guests' kernel")
    initrd: str | None = Field(
        None,
        examples=["/images/initrd"],
        description="path on the head node of the initial RAM file system; it must hold miniccc",
    )
    append: str | None = Field(None, examples=["console=ttyS0"], description="kernel command line")
    disk: str | None = Field(
        None,
        examples=["/images/guest.qcow2"],
        description="path on the head node of a disk image to boot from; nothing writes to it",
    )
    filesystem: str | None = Field(
        None, examples=["/images/rootfs"], description="path on the head node of a container's root file system"
    )
    qemu: str | None = Field(
        None, examples=["/usr/bin/qemu-system-x86_64"], description="QEMU's program; null: minimega's own choice"
    )
    cpu: str | None = Field(None, examples=["Haswell"], description="CPU model; null: minimega's own choice, the host's")
    machine: str | None = Field(None, examples=["q35"], description="QEMU's machine type; null: QEMU's own choice")
    vcpus: int = Field(1, ge=1, le=64, description="virtual CPUs of each guest")
    memory: Size = Field(256 * 2**20, ge=64 * 2**20, description="memory of each guest, whole MiB")
    nic: str = Field("virtio-net-pci", pattern=Name, description="QEMU's model of the guests' network card")
    client_nic: str | None = Field(
        None, pattern=Name, examples=["e1000"], description="the clients' network card; null: as nic"
    )
    server_nic: str | None = Field(
        None, pattern=Name, examples=["e1000"], description="the servers' network card; null: as nic"
    )
    network: str = Field("LAN", pattern=Name, description="name of the network; minimega gives it a VLAN")
    vlan: int | None = Field(None, ge=1, le=4094, examples=[100], description="VLAN of the network; null: the next free one")
    bridge: str | None = Field(
        None, pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,14}$", examples=["mega_bridge"], description="bridge; null: minimega's own"
    )
    nodes: Sequence[str] = Field(
        (),
        examples=[["node1", "node2"]],
        description="nodes of the cluster: clients run on the first and, with a trunk, servers on the second; with"
        " client_machines, more clients from the third node on",
    )
    control: Literal["auto", "virtio-serial", "cc"] = Field(
        "auto",
        description="how twinbed talks to the agent in a guest: over a virtio-serial port, or a tunnel of minimega's cc;"
        " auto: the port, or cc if there is none",
    )
    guest_files: str = Field("/tmp/miniccc/files", description="folder in which the guests' client puts files that it gets")
    capture: Literal["on", "off"] = Field("off", description="on: minimega captures every guest's packets at its tap")

    @field_validator("head")
    @classmethod
    def _plain(cls, given: str | None) -> str | None:
        return given if given is None else destination(given)

    @model_validator(mode="before")
    @classmethod
    def _of_containers(cls, given: object) -> object:
        """Leave the buffers of containers as they are by default, since minimega's containers cannot write their sysctls."""
        if isinstance(given, dict) and given.get("type") == "container":
            return {"buffers": "native", **given}
        return given

    @model_validator(mode="after")
    def _possible(self) -> MinimegaSettings:
        if self.type == "kvm":
            if self.kernel is None and self.disk is None:
                raise ValueError("type kvm needs something to boot: set kernel and initrd, or disk")
            if self.filesystem is not None:
                raise ValueError("type kvm takes no filesystem: set kernel and initrd, or disk; or set type: container")
        elif self.filesystem is None:
            raise ValueError("type container needs filesystem")
        if self.type == "container" and self.control == "virtio-serial":
            raise ValueError("containers have no virtio-serial ports: set control: auto or control: cc")
        if self.type == "container" and self.cpus == "auto":
            raise ValueError("cpus: auto pins QEMU's threads, and containers have none: set cpus: none")
        if self.initrd is not None and self.kernel is None:
            raise ValueError("initrd needs a kernel: set kernel")
        if self.append is not None and not self.append.split():
            raise ValueError("append is empty: leave it out")
        if self.append is not None and self.kernel is None:
            raise ValueError("append is a kernel's command line and needs a kernel: set kernel")
        return self

    def card(self, role: Literal["client", "server"]) -> str:
        return (self.client_nic if role == "client" else self.server_nic) or self.nic

    @property
    def own_kernel(self) -> bool:
        return self.type == "kvm"

    def megabytes(self) -> int:
        return -(-self.memory // 2**20)

    def files(self) -> dict[str, str]:
        """Return the paths on the head node of the guests' files, by setting."""
        wanted = ("filesystem",) if self.type == "container" else ("kernel", "initrd", "disk")
        return {name: path for name in wanted if (path := getattr(self, name)) is not None}

    @property
    def from_image(self) -> bool:
        return False

    def estimate_seconds(self) -> float:
        """Return the seconds that a run adds to its workload."""
        return 20.0
