"""`twinbed match`: match two captures of one path, packet by packet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinbed.cli import captures
from twinbed.contracts import exit_codes as codes
from twinbed.model.amount import amount
from twinbed.readers.packets.path import unknown_row, unknown_table
from twinbed.readers.refusals import refusals
from twinbed.render.output import put
from twinbed.show.quantities import quantity, share
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed._core import PairedCapture, PairSummary

STYLES = ["text", "csv", "json", "parquet"]
CAPTURE = click.Path(path_type=Path, allow_dash=False)


@click.command(name="match")
@click.argument("first", metavar="FIRST", type=CAPTURE)
@click.argument("second", metavar="SECOND", type=CAPTURE)
@click.option(
    "--mtu", type=click.IntRange(68), default=1500, show_default=True, help="Larger IP packets count as super-packets."
)
@click.option(
    "--tunnels",
    is_flag=True,
    help=captures.TUNNELS,
)
@click.option("--format", "style", type=click.Choice(STYLES), help="Format to write. Default: by the name of -o, else text.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="File to write. Default: standard output."
)
def command(first: Path, second: Path, mtu: int, tunnels: bool, style: str | None, output: Path | None) -> int:
    """Find each packet of the capture FIRST in the capture SECOND of the same traffic.

    \b
    Examples:
      twinbed match client.pcap server.pcap
      twinbed match client.pcap server.pcap --mtu 9000 -o path.csv
      twinbed match outer.pcap inner.pcap --tunnels --format json

    A row for each connection and direction shows packets lost, delayed, reordered, duplicated, split and merged on the path.
    Clocks need not agree: only the variation of the delay is used. The clock offset is estimated for a symmetric path.
    Packets whose addresses were rewritten on the path (NAT) do not match.

    Exit code 1: the captures share no packet, so nothing is known about the path (null, not 0), or one is cut off.
    """
    from twinbed import _core

    style = captures.chosen_style(style, output, STYLES)
    captures.refuse_what_was_not_kept(first, second)
    paths = str(first), str(second)
    if style == "text":
        from twinbed.render.rows import as_text

        with refusals():
            rows, summary = _core.match_captures(*paths, mtu=mtu, tunnels=tunnels, as_rows=True)
        if summary["nothing_matched"]:
            rows = [unknown_row(row) for row in rows]
        put(as_text([_short(row) for row in rows]), output)
    else:
        with refusals():
            table, summary = _core.match_captures(*paths, mtu=mtu, tunnels=tunnels)
        captures.write(unknown_table(table) if summary["nothing_matched"] else table, style, output)
    if summary["nothing_matched"]:
        # Kept out of rows that a program reads.
        say(f"No packet in common: {summary['nothing_matched']}", err=style != "text" and output is None)
    else:
        say(f"{amount(summary['matches'], 'packet')} found in both", err=True)
    offset = summary["clock_offset_if_symmetric_s"]
    if offset is not None:
        ahead = f"{quantity(abs(offset), 's')} {'behind' if offset < 0 else 'ahead of'}"
        say(f"  the second clock is {ahead} the first, if the path is symmetric", err=True)
    for way, text in _reordered(summary).items():
        say(f"  {way}: {text}", err=True)
    stops = [(capture, side["stopped"]) for capture, side in _sides(first, second, summary) if side["stopped"]]
    for capture, reason in stops:
        say(f"twinbed: {capture}: {reason}", err=True)
    if summary["nothing_matched"]:
        return codes.NOTHING_SHARED
    return codes.INPUT_CUT if stops else codes.DONE


def _reordered(summary: PairSummary) -> dict[str, str]:
    """Return the reorder density (RFC 5236) of each direction with displaced packets, in per cent of packets."""
    ways: dict[str, list[tuple[int, int]]] = {}
    for way, displacement, packets in summary["reorder_density"]:
        ways.setdefault(way, []).append((displacement, packets))
    return {way.replace("_", " "): text for way, counts in ways.items() if (text := _displaced(counts))}


def _displaced(counts: Sequence[tuple[int, int]]) -> str:
    whole = sum(packets for _, packets in counts)
    parts = [f"{by:+d}: {packets:,} ({share(round(packets / whole, 4))})" for by, packets in counts if by]
    return f"packets displaced by {', '.join(parts)}" if parts else ""


def _sides(first: Path, second: Path, summary: PairSummary) -> tuple[tuple[Path, PairedCapture], tuple[Path, PairedCapture]]:
    return (first, summary["sender_side"]), (second, summary["receiver_side"])


def _short(row: Mapping[str, Any]) -> dict[str, object]:
    """Return the columns of the text table; the other formats have all."""
    ports = [row["source_port"], row["destination_port"]]
    ends = [f"{row[f'{end}_address']}:{port}" for end, port in zip(("source", "destination"), ports, strict=True)]
    shown: dict[str, object] = {"from": ends[0], "to": ends[1], "protocol": row["protocol"]}
    counts = ("sent", "arrived", "lost", "duplicated", "reordered", "split", "merged")
    shown |= {name: row[f"{name}_packets"] for name in counts}
    for name, column in (
        ("delay p50", "delay_variation_p50_s"),
        ("p95", "delay_variation_p95_s"),
        ("max", "delay_variation_max_s"),
    ):
        shown[f"{name} above least"] = None if row[column] is None else quantity(row[column], "s")
    return shown
