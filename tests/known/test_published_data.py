"""The printed tables against the seeds' own text: every row of every table stands there, number by number, and no other does.

The text is not part of this repository.  Where it is (``../shared/seeds`` or the folder in TWINBED_SEEDS) each row is looked
for in it; without it the rest of the file still holds the data to what can be said of them: sizes, kinds, precision.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from twinbed.published.printed import Cell, Claim, Equation, Table, library

SEEDS = Path(os.environ.get("TWINBED_SEEDS", Path(__file__).parents[3] / "shared" / "seeds"))


@dataclass(frozen=True)
class Where:
    """The file's beginning, a table's block in it (from, to), the labels that make a row, and what a row begins with."""

    file: str
    begins: str
    ends: str
    row: tuple[str, ...]
    lead: tuple[str, ...] = ()
    """Labels that stand at the row's beginning; the row's own where none are said."""


def icnc(name: str, row: tuple[str, ...] = ("link", "payload"), lead: tuple[str, ...] = ("payload",)) -> Where:
    return Where("003", r"^(Size Physical|Sequence No Skip)", rf"TABLE {name}:", row, lead)


PAYLOAD = (("link", "payload"), ("payload",))
WHERE = {
    "2017-1": Where("000", "# KVM Environment", "# Multi-host", ("testbed", "offloading")),
    "2017-2": Where("000", "# Multi-host", "# Anatomy", ("testbed", "offloading")),
    "2019-1": Where("001", "Result: Application-level", "Table: Mean requests", *PAYLOAD),
    "2019-2": Where("001", "Result: OS-level", "Table: Mean number of read", *PAYLOAD),
    "2019-3": Where("001", "Result: Network-level", "Table: Mean number of packets", *PAYLOAD),
    **{f"ICNC-{name}": icnc(name) for name in ("I", "II", "III", "IV", "V", "VI", "VII")},
    **{f"ICNC-{name}": icnc(name, ("testbed",), ("testbed",)) for name in ("VIII", "IX")},
    "LDRD-3.1": Where("002", r"Table 3\.1\. Env", "We performed similar|1Gbps", ("testbed",)),
    "LDRD-3.2": Where("002", r"Table 3\.2\. Instr", "understand the effects", ("class",)),
    "LDRD-3.3": Where("002", r"Table 3\.3\. Testbed", "- Dual Intel", ("parameter",)),
    "LDRD-3.4": Where("002", r"Table 3\.4\. Requests", "Note:", ("term",)),
    "ONL-2": Where("004", "Number of Parallel Flows\t", "Table 2: First", ("flows", "seconds", "congestion_control")),
    "ONL-3": Where("004", "Number of Receiving Servers\t", "Table 3: Loss", ("replication",)),
    "ONL-4": Where("004", "Component\tSum", "Table 4: Analysis", ("component",)),
    "ONL-5": Where("004", "Effect\tConfidence", "Table 5: Confidence", ("receivers", "against")),
}
TIMES = {"2017-1": 4, "2017-2": 3}
"""How often a table is printed in its source; the others once."""
AS_TEXT = {"no": "N", "yes": "Y", "y": "$y$", "mean": "$y_{..}$", "y - mean": "$y - y_{..}$", "errors": "Errors"}


def rows(table: Table) -> dict[str, list[Cell]]:
    """What a row begins with -> its cells, in the order of print."""
    where = WHERE[table.id]
    found: dict[str, list[Cell]] = {}
    for cell in table.cells:
        found.setdefault("\t".join(cell.labels[name] for name in where.row), []).append(cell)
    return {_lead(table, cells[0]) + f"\0{key}": cells for key, cells in found.items()}


def _lead(table: Table, cell: Cell) -> str:
    where = WHERE[table.id]
    if table.id == "ONL-3":
        return f"Replication {cell.labels['replication']}"
    if table.id == "ONL-5":
        index = {name: value if len(value) == 1 else f"{{{value}}}" for name, value in cell.labels.items()}
        return rf"$\alpha_{index['receivers']} - \alpha_{index['against']}$"
    return "\t".join(AS_TEXT.get(cell.labels[name], cell.labels[name]) for name in where.lead or where.row)


def pattern(lead: str, cells: list[Cell]) -> re.Pattern[str]:
    """A whole line: the lead, then each printed number or mark, with no digit between them."""
    printed: list[str] = []
    for cell in cells:
        if printed and cell.table == "LDRD-3.1" and cell.labels["placement"] == "noncolocated":
            printed[-1] += f"/{re.escape(cell.printed)}"
        else:
            printed.append(re.escape(cell.printed))
    begins = re.escape(lead.partition("\0")[0]).replace("\\\t", r"[\t ]+")
    return re.compile(rf"^\W*(?:network driver\W+)?{begins}[^\w.+-]*?" + r"[^\d\n.✗✓]*?".join(printed) + r"\W*$", re.M)


def block(table: Table) -> str:
    """The part of the text that holds the table, in plain characters."""
    where = WHERE[table.id]
    [file] = SEEDS.glob(f"{where.file}*.txt")
    text = file.read_text(encoding="utf-8").replace("−", "-").replace("<i>", "").replace("</i>", "")
    text = text.replace(" ²", "²").replace("±plus-or-minus\\pm", "±").replace("$\\pm$", "±")
    # Where italics began and ended there are spaces left.
    text = re.sub(r" +([,;:)]|\.(?!\d))", r"\1", re.sub(r"\( +", "(", re.sub(r" +", " ", text.replace("\\_", "_"))))
    end = re.search(where.ends, text[re.search(where.begins, text, re.M).start() :], re.M)  # type: ignore[union-attr]
    assert end is not None, table.id
    stop = re.search(where.begins, text, re.M).start() + end.start()  # type: ignore[union-attr]
    begins = [found.start() for found in re.finditer(where.begins, text, re.M) if found.start() < stop]
    return text[begins[0] if where.file == "000" else begins[-1] : stop]


def look_for_rows(name: str) -> None:
    table = library().tables[name]
    text = block(table)
    lines = 0
    for lead, cells in rows(table).items():
        found = len(pattern(lead, cells).findall(text))
        assert found == TIMES.get(name, 1), (lead, [cell.printed for cell in cells], text)
        lines += found
    # No row of numbers is left: what has two numbers or marks and is not matched is a heading.
    left = [line for line in text.splitlines() if not any(pattern(*item).match(line) for item in rows(table).items())]
    heading = re.compile(r"Table 3|on\W+off|Worker|Number of|^\W*1\t2\t3|Size Phys|Gbps|pairs|Replic|Component|NIC|^- |^$")
    assert not [line for line in left if len(re.findall(r"\d+\.\d+|[✗✓]|NT", line)) > 1 and not heading.search(line)], left


FILES = {"2017": "000", "2019": "001", "LDRD": "002", "ICNC": "003", "ONL": "004"}


def words(text: str) -> str:
    """Letters and digits only, so that markup, line ends and kinds of quotation marks make no difference."""
    # ICNC's text has each formula three times on end.
    text = re.sub(r"</?i>|\\frac", "", text.replace("101010%", "10%"))
    return re.sub(r"[^A-Za-z0-9.]+|\.(?!\d)", "", text)


def look_for_sentence(told: Claim | Equation) -> None:
    [file] = SEEDS.glob(f"{FILES[told.source]}*.txt")
    text = words(file.read_text(encoding="utf-8"))
    for part in told.quote.split("[...]"):
        assert words(part) in text, part


def look_for_caption(table: Table) -> None:
    [file] = SEEDS.glob(f"{FILES[table.source]}*.txt")
    text = file.read_text(encoding="utf-8")
    assert words(table.caption) in words(text), table.id
    if table.id == "ICNC-F1":
        # The text has each formula three times on end: .01.01.01.
        assert all(cell.printed * 2 in text for cell in table.cells)


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds' text is not here")
def test_every_row_caption_and_sentence_stands_in_the_text() -> None:
    for name in WHERE:
        look_for_rows(name)
    for table in library().tables.values():
        look_for_caption(table)
    for told in (*library().claims, *library().equations):
        look_for_sentence(told)


def test_every_table_is_looked_for() -> None:
    assert {*WHERE, "ICNC-F1"} == library().tables.keys()


def test_the_tables_have_as_many_numbers_as_rows_and_columns() -> None:
    counts = Counter({name: len(table.cells) for name, table in library().tables.items()})
    assert counts == {
        **dict.fromkeys(("2017-1", "2017-2"), 8 * 3 * 2),
        **dict.fromkeys(("2019-1", "2019-3", "ICNC-I", "ICNC-II", "ICNC-VI", "ICNC-VII"), 3 * 3 * 2),
        **dict.fromkeys(("2019-2", "ICNC-IV", "ICNC-V"), 3 * 3),
        "ICNC-III": 4 * 3 * 2,
        "ICNC-VIII": 3 * 2,
        "ICNC-IX": 2 * 2,
        "ICNC-F1": 4,
        "LDRD-3.1": 3 * 6 * 2,
        "LDRD-3.2": 5 * 2 + 1,
        "LDRD-3.3": 7,
        "LDRD-3.4": 19 * 3 + 2,
        "ONL-2": 8 * 4,
        "ONL-3": 5 * 10,
        "ONL-4": 2 + 2 + 3 + 6 + 4,
        "ONL-5": 9 * 2 + 2,
    }


def test_no_label_is_missing_and_no_cell_is_twice() -> None:
    for table in library().tables.values():
        keys = [(*cell.labels.values(), cell.metric, cell.kind) for cell in table.cells]
        assert len(set(keys)) == len(keys), table.id
        assert all(cell.labels.keys() == table.cells[0].labels.keys() and all(cell.labels.values()) for cell in table.cells)
        assert all(cell.printed for cell in table.cells)
        assert all((cell.value is None) == (cell.unit == "") for cell in table.cells), table.id


def test_precision_is_as_printed() -> None:
    tables = library().tables
    mean = tables["2019-3"].cell(payload="500B", testbed="virtio", kind="mean")
    assert (mean.printed, mean.value, mean.decimals, mean.significant_digits) == ("5.00", 5, 2, 3)
    assert (mean.range.low, mean.range.high) == (Fraction("4.995"), Fraction("5.005"))
    count = tables["LDRD-3.4"].cell(term="Observations")
    assert (count.value, count.decimals, count.range.low) == (80286, 0, 80286)
    power = tables["ICNC-IX"].cell(testbed="virtio", skip="1M")
    assert (power.printed, power.value) == ("E-28214", -28214)
    assert tables["ICNC-F1"].cell(**{"from": "open", "to": "error"}).value == Fraction(1, 100)
    loss = tables["ONL-3"].cell(replication="1", receivers="7")
    assert (loss.printed, loss.decimals, loss.range.high) == ("22", 3, Fraction("22.0005"))
    mark = tables["LDRD-3.1"].where(testbed="virtio", setting="hyperthreading", level="off")
    assert [cell.printed for cell in mark] == ["✗", "✓"] and all(cell.value is None for cell in mark)


def test_trailing_zeros_of_the_loss_table_were_dropped() -> None:
    """Its note says that 22 is 22.000: iperf3 prints losses above 10 % as whole per cents, of which each value is a mean."""
    for cell in library().tables["ONL-3"].cells:
        flows = int(cell.labels["receivers"])
        if flows >= 7:
            assert abs(Fraction(round(cell.number * flows), flows) - cell.number) <= Fraction(1, 2000), cell.name


def test_each_source_page_and_number_of_runs() -> None:
    tables = library().tables
    assert {table.source for table in tables.values()} == set(library().sources)
    assert {name: table.page for name, table in tables.items() if table.page} == {
        "LDRD-3.1": 21,
        "LDRD-3.2": 22,
        "LDRD-3.3": 23,
        "LDRD-3.4": 24,
    }
    assert tables["2017-1"].n is None and "neither" in tables["2017-1"].n_said
    assert tables["ICNC-I"].n == 10 and tables["ONL-3"].n == 5
