"""Driver ``remote``: hosts that are there already, physical ones first of all, reached over SSH and leased for a run."""

from twinbed.testbeds.remote.driver import Remote, remote
from twinbed.testbeds.remote.uplinked import uplinked

__all__ = ["Remote", "remote", "uplinked"]
