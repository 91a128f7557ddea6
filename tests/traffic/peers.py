"""What tcptrace says of a capture, under the names and in the units of ``twinbed flows``, and how the two differ.

Names are tcptrace's in snake case with ``_a2b`` and ``_b2a``; times are seconds, where tcptrace prints milliseconds too.
A printed number keeps its last place: numbers agree that tcptrace would have printed alike.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

_COMMAND = ("tcptrace", "-n", "-l", "-r", "-W")
_DIRECTION = re.compile(r"_(a2b|b2a)$")
_PCAPNG = b"\x0a\x0d\x0d\x0a"

Cell = str | bool | int | None
Row = Mapping[str, object]
Documented = Mapping[str, Callable[[object, object, Row, str], bool]]
"""Column without its direction -> whether (ours, theirs) is the difference that is documented for it, by the rest of their row;
last comes the column's direction."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as printed: ``step`` is what one in its last place stands for. Both in base units."""

    value: Decimal
    step: Decimal

    def is_print_of(self, number: float | Decimal, off_by: Decimal = Decimal("0.5")) -> bool:
        """Binary fractions stand a little beside a half, hence the margin of a ten-thousandth of the last place."""
        return abs(Decimal(number) - self.value) <= self.step * (off_by + Decimal("0.0001"))


# tcptrace's spelling -> ours, where lower case and underscores are not enough.
_SPELLINGS = {"sack_blks/ack": "sack_blks_per_ack", "#_": "", "(last)": "last", "-": "_", " ": "_"}
_MILLISECONDS = re.compile(r"idletime_max|rtt_(?!samples|full_sz_smpls)\w+|\w+_retr_time")
# Means that tcptrace prints as whole numbers, some of them cut off instead of rounded.
_WHOLE_MEANS = frozenset({"avg_segm_size", "avg_win_adv", "avg_owin", "wavg_owin", "throughput"})
_TIMES = frozenset({"first_packet_ns", "last_packet_ns", "elapsed_time"})
# tcptrace prints 0 for what it has no sample of, and for the deviation of two; we say nothing.
# Allowed while the count of this name is at most so many; without a name always.
_UNMEASURED: tuple[tuple[re.Pattern[str], str, int], ...] = tuple(
    (re.compile(pattern), count, at_most)
    for pattern, count, at_most in (
        (r"(max|min|avg)_segm_size|initial_window_(bytes|pkts)|data_xmit_time|throughput", "actual_data_pkts", 0),
        (r"mss_requested", "syn_pkts_sent", 0),
        (r"rtt_(min|max|avg)", "rtt_samples", 0),
        (r"rtt_stdev", "rtt_samples", 2),
        (r"rtt_from_3whs", "", 0),
        (r"rtt_full_sz_(min|max|avg)", "rtt_full_sz_smpls", 0),
        (r"rtt_full_sz_stdev", "rtt_full_sz_smpls", 2),
        (r"rtt_(min|max|avg)_last", "ambiguous_acks", 0),
        (r"rtt_sdv_last", "ambiguous_acks", 2),
        (r"(min|max|avg)_retr_time", "max_retrans", 0),
        (r"sdv_retr_time", "", 0),
        (r"(max|min|avg)_win_adv|(max|min_non_zero|avg|wavg)_owin", "", 0),
    )
)


def tcptrace_rows(capture: Path) -> list[dict[str, object]]:
    """One row a connection, in tcptrace's order: numbers are ``int`` or ``Printed``, NA is None."""
    with tempfile.TemporaryDirectory() as folder:
        plain = capture
        if capture.read_bytes()[:4] == _PCAPNG:
            plain = Path(folder) / "capture.pcap"
            _said("editcap", "-F", "pcap", str(capture), str(plain))
        return _rows(_said(*_COMMAND, "--csv", str(plain)), _said(*_COMMAND, str(plain)), capture)


def stored_rows(capture: Path) -> list[dict[str, object]]:
    """As ``tcptrace_rows``, of what tcptrace said when the capture was made.

    Round trips of full-size segments are those of its build for 32 bits (full-size.tsv in the folder): the other takes a
    segment of one number for longer than all others (docs/flows.md).
    """
    table, text = (Path(f"{capture}.tcptrace.{ending}").read_text(errors="replace") for ending in ("csv", "txt"))
    rows = _rows(table, text, capture)
    for line in (capture.parent / "full-size.tsv").read_text().splitlines():
        name, number, way, *cells = line.split("\t")
        if name == capture.name:
            columns = (f"rtt_full_sz_{each}_{way}" for each in ("smpls", "min", "max", "avg", "stdev"))
            rows[int(number)] |= {
                column: _number(cell, column.removesuffix(f"_{way}")) for column, cell in zip(columns, cells, strict=True)
            }
    return rows


def _rows(table: str, text: str, capture: Path) -> list[dict[str, object]]:
    """The rows of ``--csv``, each with what the text has besides."""
    printed = [line for line in table.splitlines() if line.strip() and line[0] != "#"]
    whole = _connections(text)
    if not printed:
        return []
    header, *lines = [[cell.strip() for cell in line.rstrip(",\n ").split(",")] for line in printed]
    if len(lines) != len(whole) or any(len(line) != len(header) for line in lines):
        raise ValueError(f"{capture}: tcptrace's table and its text do not hold the same connections")
    rows = []
    for line, about in zip(lines, whole, strict=True):
        row = about
        for name, cell in zip(header, line, strict=True):
            row |= dict(_cells(name, cell))
        rows.append(row)
    return rows


def differences(ours: Sequence[Row], theirs: Sequence[Row], documented: Documented) -> list[str]:
    """Every cell that tcptrace would not have printed as it did, and every column of its that ours lack."""
    if len(ours) != len(theirs):
        return [f"{len(ours)} connections where tcptrace has {len(theirs)}"]
    found = []
    for number, (own, peer) in enumerate(zip(ours, theirs, strict=True), start=1):
        for column, printed in peer.items():
            base = _DIRECTION.sub("", column)
            if column not in own:
                found.append(f"connection {number}: no column {column}")
            elif not _agree(own[column], printed, column, peer):
                excuse = documented.get(base)
                if excuse is None or not excuse(own[column], printed, peer, column[len(base) :]):
                    said = printed.value if isinstance(printed, Printed) else printed
                    found.append(f"connection {number}: {column} is {own[column]}, tcptrace prints {said}")
    return found


def _agree(ours: object, printed: object, column: str, peer: Row) -> bool:
    base = _DIRECTION.sub("", column)
    if ours is None:
        return printed is None or (_is_zero(printed) and _may_be_unmeasured(column, base, peer))
    if isinstance(printed, Printed):
        if isinstance(ours, bool) or not isinstance(ours, int | float):
            return False
        return printed.is_print_of(ours, Decimal(1) if base in _WHOLE_MEANS | _TIMES else Decimal("0.5"))
    return isinstance(ours, bool) == isinstance(printed, bool) and ours == printed


def _is_zero(printed: object) -> bool:
    return (printed.value if isinstance(printed, Printed) else printed) == 0


def _may_be_unmeasured(column: str, base: str, peer: Row) -> bool:
    for pattern, count, at_most in _UNMEASURED:
        if pattern.fullmatch(base):
            samples = peer[count + column[len(base) :]] if count else 0
            return isinstance(samples, int) and samples <= at_most
    return False


def _said(*command: str) -> str:
    """tcptrace escapes nothing: file names and warnings may hold any bytes."""
    return subprocess.run(command, check=True, capture_output=True).stdout.decode(errors="replace")


def _cells(name: str, cell: str) -> list[tuple[str, object]]:
    """A cell of the table under our names: some of tcptrace's hold two values."""
    for theirs, own in _SPELLINGS.items():
        name = name.replace(theirs, own)
    name = name.lower()
    base, ending = _DIRECTION.sub("", name), name[len(_DIRECTION.sub("", name)) :]
    if base == "conn_#":
        return []
    if base in ("first_packet", "last_packet"):
        return [(f"{base}_ns", _nanoseconds(cell))]
    if base == "syn/fin_pkts_sent":
        return [(f"{flag}_pkts_sent{ending}", int(count)) for flag, count in zip(("syn", "fin"), cell.split("/"), strict=True)]
    if base == "req_1323_ws/ts":
        return [(f"req_1323_{which}{ending}", said == "Y") for which, said in zip(("ws", "ts"), cell.split("/"), strict=True)]
    if base == "req_sack":
        return [(name, cell == "Y")]
    if base in ("host_a", "host_b"):
        return [(name, _address(cell))]
    return [(name, _number(cell, base))]


def _number(cell: str, base: str) -> object:
    if cell == "NA":
        return None
    number = Decimal(cell)
    if base == "missed_data" and number >= 1 << 63:  # Below zero, printed as unsigned.
        number -= 1 << 64
    if "." not in cell and base not in _WHOLE_MEANS:
        return int(number)
    scale = Decimal("0.001") if _MILLISECONDS.fullmatch(base) else Decimal(1)
    return Printed(number * scale, scale.scaleb(int(number.as_tuple().exponent)))


def _nanoseconds(cell: str) -> Printed:
    """tcptrace prints microseconds without their leading zeros: 1389719042.4547 is 1389719042.004547."""
    seconds, microseconds = cell.split(".")
    return Printed(Decimal(int(seconds) * 1_000_000_000 + int(microseconds) * 1_000), Decimal(1_000))


def _address(cell: str) -> str:
    """tcptrace writes fd09::0001 for fd09::1."""
    return re.sub(r"(^|:)0+(?=[0-9a-f])", r"\1", cell)


def _connections(text: str) -> list[dict[str, object]]:
    """What the text says of each connection as a whole, and the table does not."""
    rows = []
    for part in re.split(r"^TCP connection \d+:$", text, flags=re.MULTILINE)[1:]:
        lines = {key.strip(): value.strip() for key, value in re.findall(r"^\t([\w ]+):(.*)$", part, re.MULTILINE)}
        said = re.fullmatch(r"(\w+)(?:\s+\(SYNs: (\d)\)\s+\(FINs: (\d)\))?", lines["complete conn"])
        hours = re.fullmatch(r"(\d+):(\d+):(\d+\.\d+)", lines["elapsed time"])
        if not said or not hours:
            raise ValueError(f"tcptrace said: {part[:300]}")
        seconds = int(hours[1]) * 3600 + int(hours[2]) * 60 + Decimal(hours[3])
        row: dict[str, object] = {
            "complete_conn": said[1].lower(),
            "elapsed_time": Printed(seconds, Decimal("0.000001")),
            "total_packets": int(lines["total packets"]),
        }
        if said[2]:
            row |= {"syns": int(said[2]), "fins": int(said[3])}
        rows.append(row)
    return rows
