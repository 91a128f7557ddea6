"""twinbed: how faithful a virtual testbed is to the real one, for your workload, and what to do about it."""

__version__ = "0.1.0"
