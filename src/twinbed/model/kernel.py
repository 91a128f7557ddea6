"""The artifacts of a host's kernel log: ``lab/watch`` writes them, extraction reads them."""

KERNEL_LOG = "kernel.log"
"""The host's kernel log from the run's mark on."""
KERNEL_CLOCK = "kernel.clock.json"
"""``ahead_s``: how far this machine's clock of the day is ahead of the host's that is never set; ``uncertain_s``: by how much
that may be wrong."""
