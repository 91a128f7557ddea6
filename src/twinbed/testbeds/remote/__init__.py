"""Driver ``remote``: existing hosts, usually physical, reached over SSH and leased for a run."""

from twinbed.testbeds.remote.driver import Remote, remote, uplinked

__all__ = ["Remote", "remote", "uplinked"]
