"""Driver ``qemu``: hosts are virtual machines, each a QEMU process with a NIC model, vCPUs and memory of its own."""

from twinbed.testbeds.qemu.driver import qemu

__all__ = ["qemu"]
