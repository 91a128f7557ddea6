"""Driver ``minimega``: hosts are guests of a running minimega, reached through its command and control."""

from twinbed.testbeds.minimega.driver import minimega

__all__ = ["minimega"]
