"""The analysis ``passport``: what differs between two testbeds, or two results, most suspicious first.

In: the passports, the settings that were read back, and the settings of the runs, for each of two sides.  Out: the table
``differences`` has every fact that is not the same, with all its values on either side.  It says how suspicious the fact is
(``observations.suspicion``), and whether it also varies within a side, which makes it a lesser suspect.  Facts that only one
side has recorded come after all others of their kind, since an unknown value may be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from pydantic import BaseModel, ConfigDict, Field

from twinbed.analyses.passport.result import Passports
from twinbed.contracts.analysis import Analysis, Section
from twinbed.model.tables import Tables
from twinbed.observations.passports import Side, between
from twinbed.show.table import Row


class PassportParams(BaseModel):
    """Which facts to compare."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    everything: bool = Field(False, description="names of things and the image's lesser packages, too")


class PassportAnalysis(Analysis[PassportParams, Passports]):
    """What differs between testbeds."""

    name = "passport"
    params = PassportParams
    summary = "what differs between two testbeds, or two results, most suspicious first"

    def run(self, source: Tables, params: PassportParams | None = None) -> Passports:
        """Each testbed of one results folder against its reference."""
        everything = (params or PassportParams()).everything
        reference = source.outline.reference
        one = Side(source, reference, str(reference))
        others = [Side(source, name, name) for name in source.outline.testbeds if name != reference]
        return Passports(tuple(between(one, other, everything=everything) for other in others))

    def tables(self, result: Passports) -> Mapping[str, Sequence[Row]]:
        rows = [{"between": pair.left, "and": pair.right, **asdict(row)} for pair in result.pairs for row in pair.differences]
        return {"differences": rows, "summary": [pair.summary for pair in result.pairs]}

    def section(self, result: Passports) -> Section:
        from twinbed.analyses.passport.section import section

        return section(result)


analysis = PassportAnalysis()
