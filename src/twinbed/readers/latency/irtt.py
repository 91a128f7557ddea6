"""The JSON of irtt 0.9's client.

An interrupted client writes its results without waiting for replies that are still on their way.  So probes sent less than
three of the longest round trips before its end are not judged lost; irtt itself waits as long where it is not interrupted.
Source: irtt-client(1), "OUTPUT".
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinbed.model.json import loads
from twinbed.readers.latency.files import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from twinbed.readers.latency.probes import (
    ABSENT,
    ARRIVED,
    LOST,
    MISSING,
    UNKNOWN,
    Flags,
    Integers,
    Pair,
    Stamps,
)

_WAITED = 3
_SHOWN = 300
"""Characters of the error output of a client that broke off."""
_FATES = {
    b"false": (ARRIVED, ARRIVED),
    b"true_up": (LOST, ABSENT),
    b"true_down": (ARRIVED, LOST),
    b"true": (UNKNOWN, UNKNOWN),
}
"""irtt's ``lost`` -> the probe's fate there and back."""
_TIMES = rb'\{(?:\s*"wall":\s*(\d+),\s*"monotonic":\s*(\d+)\s*)?\}'
_BOTH = rb'\{\s*"receive":\s*' + _TIMES + rb',\s*"send":\s*' + _TIMES + rb"\s*\}"
_TRIP = re.compile(
    rb'"seqno":\s*(\d+),\s*"lost":\s*"(\w+)",\s*"timestamps":\s*\{\s*"client":\s*' + _BOTH + rb',\s*"server":\s*' + _BOTH
)
_WITHOUT_TRIPS = re.compile(rb'("round_trips":\s*)\[.*\](\s*\}\s*)\Z', re.DOTALL)
"""Most of the file is probes: an expression reads them in a third of JSON's time. Where the expression does not fit, that is
an error, never a missing probe."""


def read(file: Path) -> Pair:
    """Read a file. Raises OSError, ValueError or LookupError where it is not irtt's, or was cut off."""
    server = file.name.removeprefix("irtt-").removesuffix(".json")
    try:
        return parsed(file.read_bytes(), f"{file.name} of {file.parent.name}", file.parent.name, server)
    except (ValueError, LookupError) as error:
        errors = file.with_name(f"{file.name}.out.err")
        if not errors.exists():
            raise
        why = " ".join(errors.read_text(errors="replace")[:_SHOWN].split())
        raise ValueError(f"{error}; irtt wrote: {why}") from None


def parsed(text: bytes, where: str, client: str, server: str) -> Pair:
    """Read a text, which messages call ``where``. Raises ValueError, LookupError, or OverflowError for impossible times."""
    try:
        report = loads(_WITHOUT_TRIPS.sub(rb"\1[]\2", text))
    except ValueError as error:
        raise ValueError(f"{where}: is not the JSON of a client that ended normally: {error}") from None
    broken = {name: cause for name in ("send_err", "receive_err") if (cause := _cause(report.get(name))) is not None}
    if broken:
        raise ValueError(f"{where}: the client broke off: {broken}")
    trips = _TRIP.findall(text)
    probes = text.count(b'"seqno"')
    if not trips or len(trips) != probes:
        raise ValueError(f"{where}: {len(trips)} of {probes} probes could be read")
    columns = list(zip(*trips, strict=True))
    numbers = [np.array([int(cell) if cell else MISSING for cell in column], dtype=np.int64) for column in columns[2:]]
    monotonic = _stamps(numbers[1::2])
    fates = np.array([_FATES[fate] for fate in columns[1]], dtype=np.int64)
    return Pair(
        client=client,
        server=server,
        sequence=np.array(columns[0], dtype=np.int64),
        wall=_stamps(numbers[0::2]),
        monotonic=monotonic,
        fate={CLIENT_TO_SERVER: fates[:, 0], SERVER_TO_CLIENT: fates[:, 1]},
        settled=_settled(monotonic, report["stats"]["duration"]),
        duplicates=report["stats"]["duplicates"],
    )


def _cause(error: object) -> object:
    """Return irtt's own code, or the system's errno of a socket; None without an error.

    A refused last probe is no error: the server is ended just after the client, and one that ends earlier fails the run.
    """
    if not error:
        return None
    inner = error.get("Err") if isinstance(error, dict) else None
    number = inner.get("Err") if isinstance(inner, dict) else None
    if number == errno.ECONNREFUSED:
        return None
    return error.get("Code", number or error) if isinstance(error, dict) else error


def _stamps(columns: Sequence[Integers]) -> Stamps:
    """Return stamps of columns in irtt's order."""
    client_received, client_sent, server_received, server_sent = columns
    return Stamps(client_sent, server_received, server_sent, client_received)


def _settled(stamps: Stamps, duration_ns: int) -> Flags:
    """Return whether each probe had the time to come back before the client's end."""
    back = stamps.client_received != MISSING
    longest = int((stamps.client_received - stamps.client_sent)[back].max()) if back.any() else 0
    settled: Flags = stamps.client_sent <= stamps.client_sent[0] + duration_ns - _WAITED * longest
    return settled
