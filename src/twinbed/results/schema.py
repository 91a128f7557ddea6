"""The columns of tables, checked when a table is opened: it may come from a stranger, or from another version.

Each of twinbed's own tables lists the columns that are read: ``name:kind``. The kind is text, whole (a number), real (any
finite number) or flag. Mark ``!`` means never missing; mark ``?`` means that other versions lack the column, so that rows may
lack a value. Unlisted columns, and tables of others' plugins, may have any type with one value a row. Tables ``catalogue`` and
``planned`` are the runs of published results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from twinbed.metrics.metric import MOST, Layer, Scale
from twinbed.model.json import WRONG, named, parsed, why
from twinbed.model.run import Status, level

if TYPE_CHECKING:
    import pyarrow as pa

TABLES: Mapping[str, str] = {
    "runs": (
        "cell:text! testbed:text! levels:text! replicate:whole! block:whole! position:whole! status:text! "
        "failed_phase:text reason:text started_s:real! key:text!"
    ),
    "metrics": (
        "host:text! direction:text! metric:text! unit:text! layer:text! scale:text! headline:flag description:text "
        "margin:real value:real low:real? high:real?"
    ),
    "cautions": "kind:text! detail:text! subject:text!",
    "facts": "place:text! fact:text! value:text!",
    "catalogue": (
        "digest:text! key:text! cell:text! status:text! twinbed:text! lab:text! failed_phase:text reason:text replicate:whole! "
        "block:whole! position:whole! started_s:real! start_skew_s:real levels:text! settings:text! drawn:text! "
        "cautions:text! machine:text! about:text!"
    ),
    "planned": "cell:text! levels:text! replicate:whole! block:whole! position:whole!",
    "applied": "subject:text! setting:text! asked:text! found:text! source:text!",
    "alerts": "link:text? checksums:text? generator:whole signature_id:whole signature:text alerts:whole!",
    "answers": "start_s:real! seconds:real! answers:whole!",
    "connections": (
        "link:text! start_s:real! start_ns:whole! originator_port:whole! responder_port:whole! protocol:text! "
        "ip_protocol:whole! duration_s:real state:text! unseen_bytes:whole! history:text port:whole?"
    ),
    "counters": "host:text! source:text! key:text kind:text! difference:real mean:real seconds:real note:text",
    "delay_windows": "client:text! server:text! direction:text! begin_s:real! jitter_s:real",
    "events": ("host:text! source:text! event:text! device:text count:real seconds:real least_s:real mean_s:real most_s:real"),
    "exchanges": "link:text! status:whole start_s:real! start_ns:whole! duration_s:real complete:flag!",
    "extra_classes": "link:text! observer:text! checksums:text! class:text! connections:whole! frames:whole!",
    "fingerprints": "observer:text! host:text! feature:text! text:text value:real seen:whole!",
    "flows": (
        "link:text! first_packet:real last_packet:real elapsed_time:real total_packets:whole! complete_conn:text! "
        "total_packets_a2b:whole! total_packets_b2a:whole! unique_bytes_sent_a2b:whole! unique_bytes_sent_b2a:whole! "
        "rexmt_data_pkts_a2b:whole! rexmt_data_pkts_b2a:whole! initial_window_bytes_a2b:whole "
        "initial_window_bytes_b2a:whole throughput_a2b:real throughput_b2a:real"
    ),
    "interrupts": "host:text! line:text! count:real!",
    "intervals": (
        "host:text! end:text! start_s:real! seconds:real! bytes:whole! retransmissions:whole datagrams:whole "
        "lost_datagrams:whole jitter_s:real"
    ),
    "kernel_messages": "host:text! time_ns:whole! uncertain_s:real! text:text!",
    "latencies": "source:text! place:text! from_ns:whole to_ns:whole requests:whole!",
    "losses": "stage:text! packets:real!",
    "monitored_connections": (
        "link:text! observer:text! checksums:text! start_s:real! protocol:text! ip_protocol:whole! originator_port:whole! "
        "responder_port:whole! state:text! packets:whole!"
    ),
    "monitored_links": "link:text! seconds:real arp_frames:whole!",
    "packetisation": "link:text! direction:text! duration_s:real! packets:whole! nagle_wait_s:real?",
    "probes": "client:text! server:text! client_sent_ns:whole rtt_s:real",
    "reorder_density": "link:text! direction:text! packets:whole!",
    "requests": "host:text! start_s:real! total_s:real!",
    "segment_sizes": "link:text! direction:text! most_payload_bytes:whole! segments:whole!",
    "run_events": ("host:text! action:text! event:text! due_s:real! begun_s:real! in_force_s:real! found:text!"),
    "sockets": "host:text! socket:whole! time_s:real! cwnd:whole! srtt_s:real bytes_acked:whole",
    "stalls": (
        "link:text! originator_port:whole! responder_port:whole! start_ns:whole! duration_s:real! direction:text! "
        "unacknowledged_bytes:whole! retransmissions:whole! probes:whole! rto_s:real reason:text! ended_by:text!"
    ),
    "station_connections": (
        "host:text! connection:whole! own_address:text! own_port:whole! other_address:text! other_port:whole!"
    ),
    "station_probes": "host:text! clock:text! kernel:text! share:real!",
    "stations": (
        "host:text! station:text! connection:whole time_ns:whole! end_ns:whole sequence:whole! bytes:whole! flags:whole! "
        "thread:whole!"
    ),
    "step_packets": (
        "link:text! client_address:text! client_port:whole! server_address:text! server_port:whole! "
        "request_sequence:whole! number:whole! time_ns:whole! from:text! kind:text! position:whole! payload_bytes:whole! "
        "wire_packets:whole! acknowledges:whole"
    ),
    "step_waits": (
        "link:text! client_address:text! client_port:whole! server_address:text! server_port:whole! "
        "request_sequence:whole! kind:text! from:text! end_ns:whole! wait_ns:whole!"
    ),
    "steps": (
        "link:text! client_address:text! client_port:whole! server_address:text! server_port:whole! "
        "request_sequence:whole! complete:flag! syn_ns:whole syn_ack_ns:whole request_ns:whole! request_end_ns:whole! "
        "response_ns:whole response_end_ns:whole client_fin_ns:whole server_fin_ns:whole reset_ns:whole next_ns:whole "
        "request_end_sequence:whole! response_sequence:whole response_end_sequence:whole silence_ns:whole! "
        "silence_ended_by:text pattern:text!"
    ),
    "system_calls": "host:text! program:text call:text! calls:whole! seconds:real",
    "transitions": "host:text! program:text before_3:text before_2:text before_1:text call:text! count:whole!",
    "windows": (
        "link:text! direction:text! packets:whole! block:whole! seconds:real! gap_log_mean:real! gap_log_sd:real! "
        "gap_p10_s:real! gap_p50_s:real! gap_p90_s:real! burst_share:real! bytes_mean:real! bytes_sd:real! "
        "full_share:real! push_share:real! ack_share:real! retransmitted_share:real! turn_p50_s:real turn_p90_s:real "
        "window_mean:real ip_id_zero_share:real timestamp_rate_hz:real"
    ),
}
ALWAYS = frozenset({"runs", "metrics", "cautions", "facts", "applied", "catalogue", "planned"})
"""Tables of twinbed's own, for any kind of runs."""
WORDS: Mapping[tuple[str, str], frozenset[str]] = {
    ("runs", "status"): frozenset(Status),
    ("metrics", "layer"): frozenset(Layer),
    ("metrics", "scale"): frozenset(Scale),
}
"""All allowed values of a column."""


class WrongTable(ValueError):
    """A table is not as its readers expect."""


class _Column(NamedTuple):
    name: str
    kind: str
    never_missing: bool
    may_lack: bool


@cache
def _columns(name: str) -> Sequence[_Column]:
    columns = [_Column("run", "text", never_missing=True, may_lack=False)] if name in TABLES else []
    for text in TABLES.get(name, "").split():
        column, _, kind = text.partition(":")
        columns.append(_Column(column, kind.rstrip("?!"), "!" in kind, "?" in kind))
    return columns


def check(name: str, table: pa.Table, asked: Sequence[str] | None = None, *, imported: bool = False) -> None:
    """Check a table, or the requested columns of it. Raises WrongTable, which names the column. With ``imported`` rows may come
    from other programs' files, which lack columns and values of tables other than ``ALWAYS``."""
    lax = imported and name not in ALWAYS
    names = table.column_names
    if twice := sorted({column for column in names if names.count(column) > 1}):
        raise WrongTable(f"has the column {twice[0]} twice")
    for field in table.schema:
        if _kind(field.type) is None:
            raise WrongTable(f"has the column {field.name} with values of type {field.type!s:.60}")
    for column in _columns(name):
        if asked is None or column.name in asked:
            if column.name in names:
                _check_column(name, column._replace(never_missing=False) if lax else column, table[column.name])
            elif not column.may_lack and not lax:
                raise WrongTable(f"has no column {column.name}")


def check_distinct(table: pa.Table) -> None:
    """Check that no run is in the table of runs twice. Raises WrongTable."""
    if "run" in table.column_names and len(table["run"].unique()) != table.num_rows:
        raise WrongTable("has a run twice")


def _check_column(name: str, column: _Column, values: pa.ChunkedArray) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = _kind(values.type)
    if pa.types.is_null(values.type):
        kind = column.kind
    if kind != column.kind and not (column.kind == "real" and kind == "whole"):
        raise WrongTable(f"has the column {column.name} with values of type {values.type}, expected {column.kind}")
    if column.never_missing and values.null_count:
        raise WrongTable(f"has the column {column.name} with {values.null_count:,} missing values")
    if pa.types.is_floating(values.type):
        if pc.all(pc.is_finite(values)).as_py() is False:
            raise WrongTable(f"has the column {column.name} with a value that is not finite")
        if pc.any(pc.greater(pc.abs(values), MOST)).as_py():
            raise WrongTable(f"has the column {column.name} with a value above {MOST:g}, which no measurement has")
    if (name, column.name) == ("runs", "levels"):
        _check_levels(values.unique().to_pylist())
    if known := WORDS.get((name, column.name)):
        strange = sorted({value for value in values.unique().to_pylist() if value is not None} - known)
        if strange:
            raise WrongTable(
                f"has the column {column.name} with {strange[0]!r:.60}, expected one of {', '.join(sorted(known))}"
            )


def _check_levels(texts: Sequence[str]) -> None:
    for text in texts:
        try:
            named(level)(parsed(text))
        except WRONG as error:
            raise WrongTable(f"has the column levels with {text!r:.60}: {why(error)}") from error


def _kind(type_: pa.DataType) -> str | None:
    """Return the kind of a type; None for values made of others."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    if types.is_string(type_) or types.is_large_string(type_):
        return "text"
    if types.is_boolean(type_):
        return "flag"
    if types.is_integer(type_):
        return "whole"
    if types.is_floating(type_):
        return "real"
    return "nothing" if types.is_null(type_) else None
