"""What tables must be is what readers make: of every capture among the golden ones, and of every case of a format."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from format_cases import cases
from twinbed import _core, registry
from twinbed.contracts.format import FormatError
from twinbed.imports.text.source import File
from twinbed.readers.packets import link
from twinbed.results.schema import WrongTable, check

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = sorted(path for path in GOLDEN.rglob("*.pcap*") if path.is_file())


def of_a_run(table: pa.Table, *more: str) -> pa.Table:
    for name in (*more, "run"):
        if name not in table.column_names:
            table = table.add_column(0, name, pa.array(["r"] * table.num_rows, pa.string()))
    return table


def test_tables_of_captures_are_what_they_must_be() -> None:
    read = 0
    for path in CAPTURES:
        try:
            tables, _ = link.tables_of(path)
            steps, _ = _core.capture_tables(str(path), ["steps", "stalls"], ignore_checksums=True)
        except (OSError, ValueError):
            continue
        read += 1
        for name, table in {**tables, **steps}.items():
            if name == "fingerprints":  # which the instrument makes of both ends
                continue
            check(name, of_a_run(table, "link"))
    assert read > 100


def test_tables_of_imported_files_may_lack_columns() -> None:
    read = set()
    for case in cases():
        try:
            measurements = registry.formats()[case.format].read(File(case.input, case.input.name), case.options)
        except FormatError:
            continue
        for measurement in measurements:
            for name, table in measurement.tables.items():
                check(name, of_a_run(table), imported=True)
                read.add(name)
    assert {"flows", "intervals", "connections", "probes", "system_calls"} <= read


def test_a_table_of_a_run_that_lacks_a_column_is_named() -> None:
    with pytest.raises(WrongTable, match="has no column end"):
        check("intervals", pa.table({"run": ["r"], "host": ["h"]}))
