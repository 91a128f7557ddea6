"""Values of a table beside the runs that they are of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from synthetic_results import planted_response, write_study
from twinbed.observations.samples import gather
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted


def test_values_of_runs_that_there_are_not_are_none(tmp_path: Path) -> None:
    """A table's part may name other runs than the results have."""
    folder = write_study(tmp_path / "x", ["a", "b"], {"payload": ["500B"]}, 3, planted_response({"a": 1.0, "b": 1.0}, 0.1, 1))
    store = extract(folder, {"planted": planted}, {})
    table = store.table("metrics")
    assert gather(store).metrics

    class Others:
        def __init__(self, metrics: pa.Table) -> None:
            self.metrics = metrics

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def table(self, _: str) -> pa.Table:
            return self.metrics

    at, others = table.schema.get_field_index("run"), pa.array(["a\nb"] * table.num_rows, pa.string())
    for metrics in (table.set_column(at, "run", others), pa.table({})):
        assert not gather(Others(metrics)).metrics  # type: ignore[arg-type]
