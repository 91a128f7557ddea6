"""The analysis ``passport``: the differences between two testbeds, or two results, most suspicious first.

A passport is everything known about a testbed's hosts.  In: the passports, the settings that were read back, and the settings
of the runs, for each of two sides.  Out: the table ``differences`` has every fact that is not the same, with all its values
on either side.  It says how suspicious the fact is (``observations.suspicion``), and whether the fact also varies within a
side, which makes it a lesser suspect.  Facts that only one side has recorded come after all others of their kind, since an
unknown value may be the same.
"""

from __future__ import annotations

from pydantic import Field

from twinbed.analyses.passport.result import Passports
from twinbed.analyses.passport.words import section
from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.model.tables import Tables
from twinbed.observations.passports import Side, between
from twinbed.show.section import Section


class PassportParams(NoSettings):
    """The facts to compare."""

    everything: bool = Field(False, description="compare all names and every package of the image, too")


class PassportAnalysis(Analysis[PassportParams, Passports]):
    """Differences between testbeds' passports."""

    name = "passport"
    params = PassportParams

    def run(self, source: Tables, params: PassportParams | None = None) -> Passports:
        """Compare each testbed of one results folder with its reference."""
        everything = (params or PassportParams()).everything
        reference = source.outline.reference
        of_reference = Side(source, reference, str(reference))
        others = [Side(source, name, name) for name in source.outline.testbeds if name != reference]
        return Passports(tuple(between(of_reference, other, everything=everything) for other in others))

    def section(self, result: Passports) -> Section:
        return section(result)


analysis = PassportAnalysis()
