"""`twinbed flows`: print the statistics of every TCP connection in a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinbed.cli import captures
from twinbed.cli.on import insecure, is_insecure
from twinbed.readers.refusals import refusals
from twinbed.render.output import STANDARD, put

if TYPE_CHECKING:
    from twinbed._core import FlowsSummary
    from twinbed.readers.flow_shares import Asked

STYLES = ["text", "csv", "json", "parquet"]
SIDES = ("_a2b", "_b2a")
"""Endings of the columns of each direction."""


@click.command(name="flows", epilog="docs/flows.md explains each column, and where twinbed differs from tcptrace.")
@captures.options(STYLES)
@click.option("--long", "is_long", is_flag=True, help="As text, print every statistic, one connection after another.")
@click.option("--threads", type=click.IntRange(1, 64), help="Threads that read. Default: one for each CPU.")
@click.option(
    "--on",
    metavar="EXECUTOR",
    help="Count on local:N processes, on tcp://SCHEDULER of dask, or on the cluster in a file. Each worker reads all packets "
    "and counts its share of the connections. docs/scale.md",
)
@insecure
def command(
    files: tuple[Path, ...],
    port: int | None,
    host: str | None,
    from_ns: int | None,
    until_ns: int | None,
    tunnels: bool,
    style: str | None,
    output: Path | None,
    is_long: bool,
    threads: int | None,
    on: str | None,
) -> int:
    """Print statistics of every TCP connection in the captures FILE..., as `tcptrace -l` counts them.

    \b
    Examples:
      twinbed flows server.pcap                         a table to read
      twinbed flows --long --port 80 server.pcap        all that tcptrace -l prints
      twinbed flows *.pcap.zst -o flows.parquet         for DuckDB, pandas, R

    Several files count as one capture, merged by packet time: pcap or pcapng, plain, .gz or .zst, or - for standard input.
    A missing value is empty (null), never 0. Exit code 1: a file is cut off or damaged; the rows describe the part before.
    """
    import os

    from twinbed import _core

    style = captures.chosen_style(style, output, STYLES)
    captures.refuse_what_was_not_kept(*files)
    paths = [str(file) for file in files]
    asked: Asked = {"tunnels": tunnels, "port": port, "host": host, "from_ns": from_ns, "until_ns": until_ns}
    file = output if output is not None and str(output) != STANDARD else None
    number = threads or len(os.sched_getaffinity(0))
    with refusals():
        if on:
            if threads:
                raise click.UsageError("--threads and --on exclude each other: give one of them")
            summary = _shared(on, paths, asked, style, file, is_long)
        elif style == "parquet" and file is not None:
            summary = _core.flows_to_parquet(paths, str(file), threads=number, **asked)
        elif style == "text":
            rows, summary = _core.flows(paths, as_rows=True, threads=number, **asked)
            _print(rows, output, is_long)
        else:
            table, summary = _core.flows(paths, threads=number, **asked)
            captures.write(table, style, output)
    return captures.ending(summary, summary["rows"], "TCP connection")


def _shared(on: str, paths: Sequence[str], asked: Asked, style: str, file: Path | None, is_long: bool) -> FlowsSummary:
    """Counted by workers."""
    from twinbed import _core
    from twinbed.executor import opened as executor
    from twinbed.readers.flow_shares import counted

    if STANDARD in paths:
        raise click.UsageError("--on cannot read standard input, as every worker reads all packets: give a file")
    given = {str(Path(path).absolute()): path for path in paths}
    paths = [str(Path(path).absolute()) for path in paths]
    below = file.absolute().parent if file else None
    with executor(on, insecure=is_insecure()) as workers, counted(paths, asked, workers, below) as (folders, summary):
        if style == "parquet" and file is not None:
            _core.flows_joined_to_parquet(folders, file)
        elif style == "text":
            _print(_core.flows_joined(folders, as_rows=True), file, is_long)
        else:
            captures.write(_core.flows_joined(folders), style, file)
    for cut in summary["truncated"]:
        cut["file"] = given[cut["file"]]
    return summary


def _print(rows: Sequence[Mapping[str, Any]], output: Path | None, is_long: bool) -> None:
    from twinbed.render.rows import as_text

    text = "\n".join(map(_long, rows)) if is_long else as_text([_short(row, rows[0]) for row in rows])
    put(text, output)


def _short(row: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, object]:
    """Return the columns that identify a connection and show whether it went well."""
    begun, origin = row["first_packet"], first["first_packet"]
    shown: dict[str, object] = {
        "a": _end(row, "a"),
        "b": _end(row, "b"),
        "start": None if begun is None else f"{begun - origin:.6f}",
        "seconds": None if row["elapsed_time"] is None else f"{row['elapsed_time']:.6f}",
        "complete": row["complete_conn"],
    }
    columns = {"packets": "total_packets", "bytes": "unique_bytes_sent", "rexmt": "rexmt_data_pkts"}
    for name, column in columns.items():
        shown |= {f"{name} {side}": row[column + ending] for side, ending in zip(("a>b", "b>a"), SIDES, strict=True)}
    for side, ending in zip(("a>b", "b>a"), SIDES, strict=True):
        rtt = row[f"rtt_avg{ending}"]
        shown[f"rtt {side}"] = None if rtt is None else f"{rtt * 1e3:.3f} ms"
    return shown


def _end(row: Mapping[str, Any], side: str) -> str:
    host = row[f"host_{side}"]
    return f"[{host}]:{row[f'port_{side}']}" if ":" in host else f"{host}:{row[f'port_{side}']}"


def _long(row: Mapping[str, Any]) -> str:
    """Return every statistic of a connection as text, directions side by side."""
    of_both = [name.removesuffix(SIDES[0]) for name in row if name.endswith(SIDES[0])]
    head = [f"{_end(row, 'a')} (a) <-> {_end(row, 'b')} (b)"]
    whole = [
        name for name in row if not name.endswith(SIDES) and name[:5] not in ("host_", "port_") and not name.endswith("_ns")
    ]
    lines = [*head, *(f"  {_words(name):<26}{_value(name, row[name])}" for name in whole)]
    lines.append(f"  {'':<26}{'a>b':>18}{'b>a':>18}")
    lines += [f"  {_words(name):<26}{''.join(f'{_value(name, row[name + side]):>18}' for side in SIDES)}" for name in of_both]
    return "\n".join(lines) + "\n"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(name: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if name in ("first_packet", "last_packet"):
            return datetime.fromtimestamp(value, UTC).isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")
        return f"{value:.6g}" if name == "throughput" else f"{value:.9f}".rstrip("0").rstrip(".")
    return str(value)
