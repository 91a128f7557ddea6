"""tcptrace's text and CSV give the table ``flows`` that twinbed makes of the same captures, as far as they print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.traffic.documented import UNREADABLE

from twinbed import _core
from twinbed.imports.text.source import File
from twinbed.registry import PLUGINS

GOLDEN = Path(__file__).parents[3] / "golden"
CAPTURES = [path for path in sorted((GOLDEN / "tcp").glob("*.pcap")) if path.stem not in UNREADABLE]
SAME = (
    *("host_a", "port_a", "host_b", "port_b", "total_packets_a2b", "total_packets_b2a", "actual_data_bytes_a2b"),
    *("actual_data_bytes_b2a", "actual_data_pkts_a2b", "unique_bytes_sent_b2a", "syn_pkts_sent_a2b", "fin_pkts_sent_b2a"),
)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_the_table_is_that_of_flows(capture: Path) -> None:
    file = Path(f"{capture}.tcptrace.csv")
    (measurement,) = PLUGINS.formats["tcptrace-csv"].read(File(file, file.name), {})
    ours, _ = _core.flows([str(capture)])
    theirs = measurement.tables["flows"]
    # Where sequence numbers wrap, tcptrace prints 2^64 less something here.
    assert all("max_owin" in diagnostic.text for diagnostic in measurement.diagnostics)
    for field in theirs.schema:
        assert ours.schema.field(field.name).type == field.type, field.name
    assert theirs.select(SAME).to_pylist() == ours.select(SAME).to_pylist()


@pytest.mark.parametrize("name", ["kept-alive", "retransmitted", "reset"])
def test_text_and_csv_say_the_same(name: str) -> None:
    text, table = (
        each.read(File(GOLDEN / "formats" / each.name / name / f"input.{ending}", name), {})[0]
        for each, ending in ((PLUGINS.formats["tcptrace-text"], "txt"), (PLUGINS.formats["tcptrace-csv"], "csv"))
    )
    of_text, of_csv = text.tables["flows"], table.tables["flows"]
    both = [column for column in of_csv.column_names if column in of_text.column_names]
    assert len(both) > 120
    assert of_text.select(both).to_pylist() == of_csv.select(both).to_pylist()
    assert {each.metric: each.value for each in text.values} == {each.metric: each.value for each in table.values}
