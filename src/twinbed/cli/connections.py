"""`twinbed connections`: list the connections of captures, as Zeek logs them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from twinbed.cli import captures
from twinbed.model.amount import amount
from twinbed.readers.refusals import refusals
from twinbed.render.output import opened, put
from twinbed.terminal import say

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed._core import ChecksumVerdicts

STYLES = ["text", "zeek", "zeek-json", "csv", "json", "parquet"]


class _Reading(TypedDict):
    """Selects packets and connections."""

    tunnels: bool
    ignore_checksums: bool
    port: int | None
    host: str | None
    from_ns: int | None
    until_ns: int | None


@click.command(name="connections", epilog="docs/connections.md explains each column, and where twinbed differs from Zeek.")
@captures.options(STYLES)
@click.option("--ignore-checksums", is_flag=True, help="Count packets with bad checksums too (as Zeek's -C).")
def command(
    files: tuple[Path, ...],
    port: int | None,
    host: str | None,
    from_ns: int | None,
    until_ns: int | None,
    tunnels: bool,
    style: str | None,
    output: Path | None,
    ignore_checksums: bool,
) -> int:
    """List the TCP, UDP and ICMP connections in the captures FILE..., with states and histories as in Zeek's conn.log.

    \b
    Examples:
      twinbed connections server.pcap                            a table to read
      twinbed connections --format zeek *.pcap -o conn.log       Zeek's own file
      twinbed connections *.pcap -o connections.parquet          for DuckDB, pandas, R

    Several files count as one capture, merged by packet time: pcap or pcapng, plain, .gz or .zst, or - for standard input.
    Exit code 1: a file is cut off or damaged; the rows describe the part before.
    """
    from twinbed import _core

    style = captures.chosen_style(style, output, STYLES)
    captures.refuse_what_was_not_kept(*files)
    paths = [str(file) for file in files]
    reading: _Reading = {
        "tunnels": tunnels,
        "ignore_checksums": ignore_checksums,
        "port": port,
        "host": host,
        "from_ns": from_ns,
        "until_ns": until_ns,
    }
    if style == "text":
        with refusals():
            rows, summary = _core.connection_log(paths, as_rows=True, **reading)
        count = len(rows)
        _print(rows, output)
    else:
        with refusals():
            table, summary = _core.connection_log(paths, **reading)
        count = table.num_rows
        table = table.sort_by("start_ns")
        if style.startswith("zeek"):
            _write_zeek(table, style, output)
        else:
            captures.write(table, style, output)
    _say_checksums(summary["checksums"], summary["ignored_packets"])
    return captures.ending(summary, count, "connection")


def _print(unsorted: Sequence[Mapping[str, Any]], output: Path | None) -> None:
    from twinbed.render.rows import as_text

    # Rows without a time come last, as in the other formats.
    rows = sorted(unsorted, key=lambda row: (row["start_ns"] is None, row["start_ns"] or 0))
    put(as_text([_short(row, rows[0]["start_ns"]) for row in rows]), output)


def _short(row: Mapping[str, Any], origin_ns: int | None) -> dict[str, object]:
    ends = {end: f"{row[f'{end}_address']} {row[f'{end}_port']}" for end in ("originator", "responder")}
    shown: dict[str, object] = {
        "start": None if row["start_ns"] is None else f"{(row['start_ns'] - (origin_ns or 0)) / 1e9:.6f}",
        **ends,
        "protocol": row["protocol"],
        "seconds": None if row["duration_s"] is None else f"{row['duration_s']:.6f}",
        "state": row["state"],
        "history": row["history"],
    }
    for name, column in (("packets", "packets"), ("bytes", "bytes")):
        shown |= {f"{name} {arrow}": row[f"{end}_{column}"] for arrow, end in ((">", "originator"), ("<", "responder"))}
    return shown | {"unseen": row["unseen_bytes"]}


def _write_zeek(table: pa.Table, style: str, output: Path | None) -> None:
    from twinbed.exporting import zeek

    with opened(output) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        (zeek.write_tsv if style == "zeek" else zeek.write_json)(table, text)
        text.detach()


def _say_checksums(verdicts: Mapping[str, ChecksumVerdicts], ignored: int) -> None:
    """Print bad and unfinished checksums on standard error: they show what happened to packets before the capture."""
    bad = {protocol: verdict["bad"] for protocol, verdict in verdicts.items() if verdict["bad"]}
    partial = sum(verdict["partial"] for verdict in verdicts.values())
    if bad:
        counts = ", ".join(f"{count:,} {protocol}" for protocol, count in bad.items())
        rest = f"; {amount(ignored, 'packet')} not counted (--ignore-checksums counts them)" if ignored else ""
        say(f"  caution: bad checksums: {counts}{rest}", err=True)
    if partial:
        what = f"{amount(partial, 'checksum')} {'is' if partial == 1 else 'are'} unfinished"
        say(f"  caution: {what}: left to the NIC (checksum offload)", err=True)
