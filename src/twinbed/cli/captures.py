"""The options that commands reading captures share, their output, and the summary of what was read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import IO, TYPE_CHECKING, ParamSpec, TypeVar

import click

from twinbed.contracts import exit_codes as codes
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.readers.packets.unread import TUNNEL
from twinbed.render.output import opened
from twinbed.render.spreadsheet import harmless_table
from twinbed.terminal import as_json, say

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed._core import FlowsSummary, LogSummary

Arguments = ParamSpec("Arguments")
Code = TypeVar("Code")


TUNNELS = "Count the innermost packet of tunnels (IP-in-IP, GRE, VXLAN, GENEVE, ERSPAN, GTP-U, Teredo)."


class Host(click.ParamType[str]):
    """Parses an IPv4 or IPv6 address."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(ip_address(str(value)))
        except ValueError:
            self.fail(f"{value!r} is not an IP address, such as 10.0.0.1", param, ctx)


class Moment(click.ParamType[int]):
    """Parses a time to nanoseconds since the epoch: seconds since the epoch, or ISO 8601 (UTC unless it has a zone)."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        whole, _, part = text.partition(".")
        if whole.isdigit() and (part.isdigit() or not part):
            return int(whole) * 10**9 + int(part[:9].ljust(9, "0"))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{value!r} is neither seconds since the epoch nor a date such as 2019-02-21T10:00:00", param, ctx)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000


def options(styles: list[str]) -> Callable[[Callable[Arguments, Code]], Callable[Arguments, Code]]:
    """Add the arguments and options of a command that reads captures into rows."""
    added = (
        click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True)),
        click.option("--port", type=click.IntRange(0, 65535), help="Only connections with this port at either end."),
        click.option("--host", type=Host(), help="Only connections with this address at either end."),
        click.option(
            "--from",
            "from_ns",
            type=Moment(),
            metavar="TIME",
            help="Only packets from this time on: 1550743200.5, 2019-02-21T10:00:00.",
        ),
        click.option("--until", "until_ns", type=Moment(), metavar="TIME", help="Only packets before this time."),
        click.option("--tunnels", is_flag=True, help=TUNNELS),
        click.option(
            "--format",
            "style",
            type=click.Choice(styles),
            help="Format to write. Default: parquet for a .parquet file, else text.",
        ),
        click.option(
            "--output",
            "-o",
            type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
            help="File to write. Default: standard output.",
        ),
    )

    def add(command: Callable[Arguments, Code]) -> Callable[Arguments, Code]:
        for decorate in reversed(added):
            command = decorate(command)
        return command

    return add


def chosen_style(style: str | None, output: Path | None, styles: list[str]) -> str:
    """Return the given format, else the one that the output's name ends in, else text.

    Raises TwinbedError for Parquet on a terminal."""
    if style is None:
        suffix = output.suffix.removeprefix(".") if output else ""
        style = suffix if suffix in styles else "text"
    if style == "parquet" and output is None and sys.stdout.isatty():
        raise TwinbedError("Parquet cannot be shown on a terminal", advice="give a file: -o rows.parquet")
    return style


def refuse_what_was_not_kept(*files: Path) -> None:
    """Raise TwinbedError for a capture in results that was cut or deleted (`keep:`)."""
    from twinbed.results.keep import missing

    for file in files:
        missing.refuse_what_was_not_kept(file)


def write(table: pa.Table, style: str, output: Path | None) -> None:
    """Write a table as CSV, JSON (one array, one row a line) or Parquet."""
    with opened(output) as file:
        if style == "csv":
            from pyarrow import csv

            csv.write_csv(harmless_table(table), file)
        elif style == "json":
            _write_json(table, file)
        else:
            from pyarrow import parquet

            parquet.write_table(table, file)


def _write_json(table: pa.Table, file: IO[bytes]) -> None:
    between = b"[\n"
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            file.write(between + as_json(row, None, allow_nan=False).encode())
            between = b",\n"
    file.write(b"\n]\n" if table.num_rows else b"[]\n")


def ending(summary: FlowsSummary | LogSummary, rows: int, what: str) -> int:
    """Print on standard error what was read, skipped and cut, and return the exit code. ``what`` is the noun of a row."""
    say(f"{amount(rows, what)} in {amount(summary['packets'], 'packet')}", err=True)
    for kind, count in summary["not_ip"].items():
        say(f"  {count:,} not IP: {kind.replace('_', ' ')}", err=True)
    for reasons in (summary["skipped"], summary["notes"]):
        for reason, count in reasons.items():
            remedy = "; --tunnels reads them" if reason.endswith(TUNNEL) else ""
            say(f"  {count:,} {reason.replace('_', ' ')}{remedy}", err=True)
    for stop in summary["truncated"]:
        say(f"twinbed: {stop['file']}: stopped at byte {stop['byte']:,}: {stop['reason']}", err=True)
    return codes.INPUT_CUT if summary["truncated"] else codes.DONE
