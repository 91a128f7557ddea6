"""Find runs that never settle, by the metric of the drift inside them: their mean depends on their length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinbed.metrics.runs import DRIFT
from twinbed.model.caution import Caution, Kind
from twinbed.observations.inside import unsettled
from twinbed.observations.samples import Samples
from twinbed.statistics.steady import settling

KEY = (DRIFT.name, "", "")


def of_cells(samples: Samples, margin: float, level: float) -> Mapping[tuple[str, str], Caution]:
    """Return (cell, testbed) -> the caution that all its runs, or one of them, never settle."""
    cautions: dict[tuple[str, str], Caution] = {}
    for cell, groups in samples.groups.items():
        for testbed, group in groups.items():
            drifts = group.values.get(KEY)
            detail = unsettled(settling(drifts, margin, level)) if drifts else None
            if detail is not None:
                cautions[cell, testbed] = Caution(Kind.UNSETTLED, detail, testbed)
    return cautions


def of_study(cautions: Mapping[tuple[str, str], Caution], cells: int) -> Iterator[Caution]:
    """Yield cautions for the whole study, one for each testbed."""
    of_testbeds: dict[str, list[Caution]] = {}
    for (_cell, testbed), caution in cautions.items():
        of_testbeds.setdefault(testbed, []).append(caution)
    for testbed, own in of_testbeds.items():
        where = f"in {len(own)} of {cells} cells: " if cells > 1 else ""
        yield Caution(Kind.UNSETTLED, f"{where}{own[0].detail}", testbed)
