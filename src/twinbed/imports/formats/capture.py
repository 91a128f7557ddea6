"""Format ``capture``: a capture of packets, pcap or pcapng, plain or compressed by gzip or Zstandard.

It is read as a stream, by the readers of the instrument ``packets``: the same metrics and tables, for one capture.  The side
that opened a connection is its client.  ``link`` of the tables is the file's name.  A capture that ends early gives the packets
that are there.

Limits: a capture does not say where it was made.  Loss and jitter of iperf3's datagrams are judged where the datagrams arrive,
so they are values only where the manifest says ``captured_at: client`` or ``server``; the table ``streams`` is always there.
The option ``tunnels: true`` counts the packets inside VXLAN, GRE and the like instead of those that carry them.  Without it TCP
inside them is missing, not 0.  ``twinbed match`` compares two points of capture (``paths``): it needs both captures.
Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import chosen
from twinbed.imports.text.source import read_by_path
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import COUNTED, EXCHANGES, MEASURED, METRICS, STREAMS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.packets import fingerprints, link, unread
from twinbed.readers.packets.path import stream_values

if TYPE_CHECKING:
    import pyarrow as pa

_PCAP = tuple(bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"))
_PCAPNG = bytes.fromhex("0a0d0d0a")
_BYTE_ORDERS = (bytes.fromhex("1a2b3c4d"), bytes.fromhex("4d3c2b1a"))
_GIVEN = {*COUNTED, *MEASURED, *EXCHANGES, *STREAMS}
_GIVEN |= {"connections", "incomplete_connections", "other_packets", "captured_packets", "capture_drops"}
_ARRIVES = {"client": "server_to_client", "server": "client_to_server"}


def _recognises(head: bytes) -> bool:
    return head.startswith(_PCAP) or (head.startswith(_PCAPNG) and head[8:12] in _BYTE_ORDERS)


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    at = options.get("captured_at")
    if at is not None and (not isinstance(at, str) or at not in _ARRIVES):
        raise FormatError(f"captured_at is {at!r}, expected client or server")
    tunnels = options.get("tunnels", False)
    if not isinstance(tunnels, bool):
        raise FormatError(f"tunnels is {tunnels!r}, expected true or false")
    (tables, summary), damaged = read_by_path(source, "a capture", lambda path: link.tables_of(path, tunnels=tunnels))
    if summary["truncated"] and not summary["packets"]:
        raise FormatError(f"ends before its first packet: {summary['truncated'][0]['reason']}")
    named = {name: _of_link(source.name, table) for name, table in tables.items()}
    named["fingerprints"] = fingerprints.of_both_ends(tables["fingerprints"])
    return [
        Measurement(
            list(_values(source, tables, summary, at)),
            named,
            _cautions(summary),
            [*damaged, *_diagnostics(summary, tunnels=tunnels)],
            {"tunnels": True} if tunnels else {},
            summary["first_s"],
        )
    ]


def _values(
    source: Source, tables: Mapping[str, pa.Table], summary: _core.LogSummary, captured_at: str | None
) -> Iterator[Value]:
    read = link.Capture(source.path, tables, summary["packets"], (), None, unread.hidden(summary))
    yield from link.values([read], "")
    for value in link.of_the_file(read):
        dropped = value.metric == "capture_drops"
        yield Value(value.metric, summary["dropped_packets"] if dropped else value.value, value.unit)
    if captured_at is not None:
        streams = tables["streams"]
        direction = _ARRIVES[captured_at]
        yield from stream_values(streams.filter(_from_client(read, streams, direction)), "", direction)


def _from_client(read: link.Capture, streams: pa.Table, direction: str) -> pa.BooleanArray:
    """Return which streams go that way: a flow's first packet is the client's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from_client = pc.is_in(streams["source_address"], pa.array(sorted(read.originators), pa.string()))
    return from_client if direction == "client_to_server" else pc.invert(from_client)


def _of_link(name: str, rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    return rows.add_column(0, "link", pa.array([name] * rows.num_rows, pa.string()))


def _cautions(summary: _core.LogSummary) -> list[Caution]:
    cautions = list(link.checksums("in the capture", summary["checksums"]))
    if dropped := summary["dropped_packets"]:
        cautions.append(
            Caution(Kind.CAPTURE_DROPS, f"{dropped} packets were dropped, says the file; it holds {summary['packets']}")
        )
    return cautions


def _diagnostics(summary: _core.LogSummary, *, tunnels: bool) -> list[Diagnostic]:
    ends = [Diagnostic(f"ends early, after byte {cut['byte']}: {cut['reason']}") for cut in summary["truncated"]]
    ends += [Diagnostic(f"{count} not IP: {link.words(kind)}") for kind, count in summary["not_ip"].items()]
    ends += [Diagnostic(f"{count} {link.words(why)}") for why, count in summary["skipped"].items()]
    return ends + [Diagnostic(text) for text in unread.texts(summary, tunnels=tunnels)]


FORMATS = (
    Format(
        "capture", "packets: pcap or pcapng, as tcpdump or dumpcap writes them", chosen(METRICS, _GIVEN), _recognises, _read
    ),
)
