"""Settings of guests in a study file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from twinbed.contracts.host_settings import LabHostSettings, OnOff
from twinbed.contracts.params import HostNeed
from twinbed.model.declaration import Also
from twinbed.model.nic import NIC_MODELS, VIRTIO
from twinbed.model.units import Size, format_size

if TYPE_CHECKING:
    NicName: TypeAlias = str
else:
    NicName = Literal[tuple(NIC_MODELS)]
FEATURES = {
    "csum": 0,
    "guest_csum": 1,
    "guest_tso4": 7,
    "guest_tso6": 8,
    "guest_ecn": 9,
    "guest_ufo": 10,
    "host_tso4": 11,
    "host_tso6": 12,
    "host_ecn": 13,
    "host_ufo": 14,
    "mrg_rxbuf": 15,
    "ctrl_vq": 17,
    "indirect_desc": 28,
    "event_idx": 29,
    "packed": 34,
}
"""Features of a virtio NIC that can be turned on and off, by QEMU's names, and the bit of each among the negotiated features.
Source: Virtual I/O Device (VIRTIO) Version 1.2, 5.1.3 and 6."""


DEFAULT_BOOT: Literal["snapshot", "fresh"] = "fresh"
"""The meaning of ``boot: auto``. Both give the same measurements only as far as the study ``studies/boots.yaml`` has shown."""
DEVICE_COALESCING = {"e1000": "mitigation"}
"""Model to the property of QEMU's device that is its interrupt coalescing."""
QEMU_BYTES = 192 * 2**20
"""QEMU's own memory in addition to the guest's: 161 to 179 MB under TCG with a busy Linux guest, most of it translated code;
KVM has no such code."""
_QEMU_TASKS = 9
"""QEMU's threads without vCPUs (5 to 7), the agent's and the controller's."""


class QemuSettings(LabHostSettings):
    nic: Annotated[NicName, Also(("card", "nic_model", "network_card", "adapter", "device"))] = Field(
        VIRTIO, description="QEMU's model of the guests' network card"
    )
    queues: int = Field(
        1,
        ge=1,
        le=64,
        examples=[2],
        description="queue pairs of a virtio-net-pci, each with interrupts of its own; at most vcpus",
    )
    vhost: Literal["auto", "on", "off"] = Field(
        "auto", description="this machine's kernel moves a virtio-net-pci's packets; auto: if it has /dev/vhost-net"
    )
    nic_features: str | None = Field(
        None,
        examples=["mrg_rxbuf=off"],
        description="features of a virtio-net-pci, such as mrg_rxbuf=off,csum=off; others keep QEMU's default; "
        f"names are {', '.join(FEATURES)}",
    )
    machine: Literal["q35", "pc"] = Field("q35", description="QEMU's model of the computer")
    cpu: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_.-]+(,[+-][a-z0-9_.-]+)*$",
        examples=["Haswell,-avx2"],
        description="QEMU's model of the CPU, such as Haswell,-avx2; null: this machine's under KVM, Nehalem,+rdrand under TCG",
    )
    vcpus: Annotated[int, Also(("cores", "smp", "cpu_count"))] = Field(
        1, ge=1, le=64, examples=[2], description="virtual CPUs of each guest"
    )
    memory: Annotated[Size, Also(("ram", "mem"))] = Field(
        192 * 2**20, ge=128 * 2**20, examples=["256MiB"], description="memory of each guest"
    )
    kernel: str | None = Field(
        None,
        pattern=r"^linux-image-[a-z0-9.+-]+$",
        examples=["linux-image-6.12-amd64"],
        description="Debian package of the guests' kernel, such as linux-image-6.12-amd64; null: the image's own",
    )
    accelerator: Annotated[Literal["auto", "kvm", "tcg"], Also(("kvm", "accel"))] = Field(
        "auto", description="auto: KVM if it really boots a guest, else TCG (software emulation), with a caution"
    )

    boot: Literal["auto", "snapshot", "fresh"] = Field(
        "auto",
        exclude_if=lambda boot: boot == "auto",
        description="snapshot: each guest continues one that booted once and was saved; fresh: each guest boots; "
        f"auto: {DEFAULT_BOOT}",
    )

    @model_validator(mode="after")
    def _virtio_only(self) -> QemuSettings:
        self.features()
        asked = {"queues": self.queues > 1, "vhost": self.vhost == "on", "nic_features": self.nic_features is not None}
        given = [name for name, is_given in asked.items() if is_given]
        if given and self.nic != VIRTIO:
            raise ValueError(f"{', '.join(given)}: only {VIRTIO} has these settings, not {self.nic}")
        if self.queues > self.vcpus:
            raise ValueError(f"{self.queues} queues need {self.queues} vcpus, not {self.vcpus}: each needs one of its own")
        return self

    def features(self) -> dict[str, OnOff]:
        """Return ``nic_features`` by name. Raises ValueError."""
        asked: dict[str, OnOff] = {}
        for part in self.nic_features.split(",") if self.nic_features is not None else ():
            name, _, value = part.strip().partition("=")
            if name not in FEATURES or name in asked or value not in ("on", "off"):
                raise ValueError(
                    f"nic_features takes NAME=on or NAME=off, each once, joined by commas, not {part!r}; "
                    f"names are {', '.join(FEATURES)}"
                )
            asked[name] = "on" if value == "on" else "off"
        return asked

    def moderation(self) -> OnOff | None:
        """Return the coalescing to set in the guest. Linux's driver of QEMU's e1000 cannot set it: the device can."""
        return None if self.nic in DEVICE_COALESCING else self.coalescing

    def cpu_flags(self) -> dict[str, bool]:
        """Return the flags that ``cpu`` adds to its model (True) or removes (False)."""
        return {flag[1:]: flag[0] == "+" for flag in (self.cpu or "").split(",")[1:]}

    def megabytes(self) -> int:
        """Return the memory in whole MiB, as QEMU takes it."""
        return -(-self.memory // 2**20)

    def guest_kernel(self) -> str | None:
        return self.kernel

    def estimate_seconds(self) -> float:
        """Return the seconds that a run adds to its workload."""
        return 6.0

    def host_need(self) -> HostNeed:
        """Count all of the guest's memory: a guest gives no memory back."""
        memory = self.megabytes() * 2**20
        return HostNeed(
            memory + QEMU_BYTES,
            _QEMU_TASKS + self.vcpus,
            f"a guest of {format_size(memory)} with {format_size(QEMU_BYTES)} for QEMU itself",
        )
