"""How many fit, composed: what the analysis ``scaling`` finds by the rate of the study's workload, and whether the machine's
metrics tell contended runs."""

from __future__ import annotations

from dataclasses import replace

from twinbed import registry
from twinbed.analyses.contention.result import Contention
from twinbed.analyses.scaling.result import Scaling
from twinbed.contracts.plugins import AnyAnalysis
from twinbed.model.error import TwinbedError
from twinbed.model.tables import Tables
from twinbed.observations.numbered import measured
from twinbed.results.extract.rows import described
from twinbed.show.section import Section

LEAST_NUMBERS = 6
"""Tested N of a curve that shows bends: its second difference has two fewer."""
OF_THE_MACHINE = ("cpu_idle_seconds", "interrupts")
"""Metrics whose bends are compared with the rate's, as in the LDRD report's Figure 3.2."""


def scaling(tables: Tables, confidence: float | None = None) -> Scaling | None:
    """Return how many fit; None where the number of pairs does not vary, or no run has a rate. ``confidence`` is that of each
    statement: None takes the study's."""
    kinds = {str(record.settings["workload"]["kind"]) for record in tables.records}
    if len(kinds) != 1:
        return None
    rate = described(registry.PLUGINS.read[kinds.pop()], tables.records[0].settings["workload"]).rate
    analysis = registry.analysis("scaling")
    try:
        fits: Scaling | None = analysis.run(tables, analysis.params(response=rate, confidence=confidence)) if rate else None
    except TwinbedError:  # such as one number of pairs: nothing to say
        return None
    return fits


def fitting(tables: Tables) -> Section | None:
    """Return the section; None where ``scaling`` is None."""
    fits = scaling(tables)
    if fits is None:
        return None
    section = registry.analysis("scaling").section(fits)
    contended = registry.analysis("contention").section(_contention(tables, fits))
    assert isinstance(section, Section) and isinstance(contended, Section)
    contended = replace(contended, key="contended", title="Was a run contended?")
    return replace(section, items=(*section.items, contended))


def _contention(tables: Tables, fits: Scaling) -> Contention:
    """Return whether runs were contended, with curves where enough numbers were tested, and curves cost no detector."""
    analysis: AnyAnalysis = registry.analysis("contention")
    asked = analysis.params(response=fits.rate, over=fits.over, bends=False)
    result: Contention = analysis.run(tables, asked)
    known = measured(tables, "machine")
    present = tuple(name for name in OF_THE_MACHINE if f"{name}@machine" in known)
    if not present or fits.numbers < LEAST_NUMBERS:
        return result
    try:
        bent: Contention = analysis.run(tables, asked.model_copy(update={"bends": True, "curves": present}))
    except TwinbedError:
        return result
    return bent if len(bent.groups) == len(result.groups) else result
