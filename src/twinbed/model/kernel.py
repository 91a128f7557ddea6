"""Artifacts about a host's kernel that a lab writes and extraction reads."""

KERNEL_LOG = "kernel.log"
"""The host's kernel log from the run's mark on."""
KERNEL_CLOCK = "kernel.clock.json"
"""``ahead_s``: how far this machine's time of day is ahead of the host's, which is never set; ``uncertain_s``: the error of
that."""
KEPT_AWAKE = "kept-awake.json"
"""The CPUs that threads of the idle class kept awake (``idle: busy``); only if there were any."""
