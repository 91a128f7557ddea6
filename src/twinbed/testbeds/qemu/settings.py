"""What a study file may say of guests."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from twinbed.model.hostsettings import HostSettings
from twinbed.model.units import Size


class QemuSettings(HostSettings):
    nic: Literal["e1000", "e1000e", "virtio-net-pci", "vmxnet3", "rtl8139"] = Field(
        "virtio-net-pci", description="QEMU's model of the guests' network card"
    )
    vcpus: int = Field(1, ge=1, le=64, description="virtual CPUs of each guest")
    memory: Size = Field(192 * 2**20, ge=128 * 2**20, description="memory of each guest")
    accelerator: Literal["auto", "kvm", "tcg"] = Field(
        "auto", description="auto: KVM where it really boots a guest, else TCG (software emulation), with a caution"
    )

    def megabytes(self) -> int:
        """QEMU takes whole MiB."""
        return -(-self.memory // 2**20)

    def estimate_seconds(self) -> float:
        """What a run takes beside its workload."""
        return 6.0
