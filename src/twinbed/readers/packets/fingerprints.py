"""Features of the hosts at a capture's ends, by their SYNs, as rows of the table ``fingerprints``.

Columns: observer (``passive``), host, feature, text, value, seen (number of packets behind it).  docs/fingerprint.md lists the
features.  There is no address, port or time in it: features are those of a host, not of a run.
Limit: on a link with several hosts of a role, the one that sent the most SYNs counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ROLES = {"client": "originator", "server": "responder"}
"""Clients open connections, servers answer."""


def of_link(host: str, table: pa.Table) -> pa.Table:
    """Return the rows of the link's host; ``table`` is ``_core``'s."""
    role = ROLES["client" if host.startswith("client") else "server"]
    return _rows(host, role, table)


def of_both_ends(table: pa.Table) -> pa.Table:
    """Return the rows of both ends of a capture that was made at an unknown place: ``client`` and ``server``."""
    import pyarrow as pa

    return pa.concat_tables([_rows(host, role, table) for host, role in ROLES.items()])


def _rows(host: str, role: str, table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = table.filter(pc.equal(table["role"], role))
    # Hosts with the most SYNs come first.
    rows = rows.filter(pc.equal(rows["address"], rows["address"][0])) if rows.num_rows else rows
    named = [pa.array([value] * rows.num_rows, pa.string()) for value in ("passive", host)]
    columns = ["feature", "text", "value", "seen"]
    return pa.table([*named, *(rows[name] for name in columns)], names=["observer", "host", *columns])
