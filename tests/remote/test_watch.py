"""What is told at the end of a run of the hosts' links."""

from __future__ import annotations

from typing import Any

import pytest

from twinbed.model.caution import Kind
from twinbed.testbeds.remote.driver import watched


class Host:
    """Says what it is told to say."""

    name, changes = "client", 4

    def read(self, path: str) -> bytes:
        assert path == "/sys/class/net/exp/carrier_changes"
        return f"{self.changes}\n".encode()


@pytest.mark.parametrize(("changes", "said"), [(4, {}), (6, {Kind.LINK_DOWN: "client: exp's carrier changed 2 times"})])
def test_links(changes: int, said: dict[Kind, str]) -> None:
    host: Any = Host()
    at_end = watched({"client": (host, "exp")})
    host.changes = changes
    assert {caution.kind: caution.detail for caution in at_end()} == said
