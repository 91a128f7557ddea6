"""QEMU's models of network cards for guests: a row a model, from which everything else about it is derived.

Settings take its name, read-back expects its driver, the image contains its modules, preflight tries it, and
``tests/e2e/test_nics.py`` boots it and passes traffic through it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NicModel:
    """A network card as QEMU emulates it."""

    name: str
    """QEMU's name, for ``-device``."""
    driver: str
    """The Linux driver that a guest must show (``ETHTOOL_GDRVINFO``)."""
    other_modules: tuple[str, ...] = ()
    """Kernel modules that guests load for it in addition to the driver's."""
    filters_by_first_address: bool = False
    """True if it takes only frames for the hardware address that QEMU made it with, although its driver sets another."""
    keeps_address_while_up: bool = False
    """True if its Linux driver refuses another hardware address while it is up."""
    since: str = ""
    """The first QEMU that has it, if not every QEMU does."""


VIRTIO = "virtio-net-pci"
NIC_MODELS = {
    model.name: model
    for model in (
        NicModel("e1000", "e1000"),
        NicModel("e1000e", "e1000e"),
        NicModel("igb", "igb", since="8.0"),
        NicModel(VIRTIO, "virtio_net"),
        NicModel("vmxnet3", "vmxnet3", filters_by_first_address=True),
        NicModel("rtl8139", "8139cp", ("8139too",)),
        NicModel("pcnet", "pcnet32", keeps_address_while_up=True),
        NicModel("ne2k_pci", "ne2k-pci", filters_by_first_address=True, keeps_address_while_up=True),
    )
}
"""By name."""
