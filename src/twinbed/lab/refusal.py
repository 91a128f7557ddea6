"""A study that this machine cannot carry out: what is wrong with it here, and the mends."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.check import Check
from twinbed.model.error import TwinbedError


class PreflightFailed(TwinbedError):
    """This machine cannot carry the study out."""

    exit_code = codes.PREFLIGHT

    def __init__(self, study: str, problems: Sequence[Check], advice: str) -> None:
        lines = [f"  {check.what}: {check.found}" + (f"\n      {check.mend}" if check.mend else "") for check in problems]
        super().__init__("\n".join([f"{study}: this machine cannot carry it out:", *lines]), advice=advice)
