"""Cells that spreadsheets run: OWASP's list in "CSV Injection" (owasp.org/www-community/attacks/CSV_Injection)."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest

from twinbed.render.rows import as_csv
from twinbed.render.spreadsheet import harmless, harmless_table


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\t=1", "\r=1", "-"])
def test_what_a_spreadsheet_would_run_is_a_text(text: str) -> None:
    assert harmless(text) == f"'{text}".replace("\r", "\n")


@pytest.mark.parametrize("text", ["", "e1000", "a=b", "-1", "-1.5e-3", "+2", "-inf", "10.77.0.1", "'=1"])
def test_other_texts_and_numbers_stay_as_they_are(text: str) -> None:
    assert harmless(text) == text


def test_rows_for_programs() -> None:
    text = as_csv([{"host": "=cmd", "+value": -1.5, "missing": None, "two lines": "a\rb"}])
    heads = ["host", "'+value", "missing", "two lines"]
    assert list(csv.reader(io.StringIO(text, newline=""))) == [heads, ["'=cmd", "-1.5", "", "a\nb"]]


def test_tables() -> None:
    columns = {
        "plain": pa.array(["a", None, "-5"]),
        "run": pa.array(["@a", None, "-5"]),
        "coded": pa.array(["=x", "y", None]).dictionary_encode(),
        "number": pa.array([-1.0, None, 2.0]),
    }
    table = pa.table(columns)
    assert harmless_table(table).to_pydict() == {
        "plain": ["a", None, "-5"],
        "run": ["'@a", None, "-5"],
        "coded": ["'=x", "y", None],
        "number": [-1.0, None, 2.0],
    }
    assert harmless_table(table.select(["plain", "number"])).equals(table.select(["plain", "number"]))
