"""The place of the probe, the static program on every host."""

from __future__ import annotations

import platform
from pathlib import Path

from twinbed.image.failure import ImageFailed

MOUNTED_AT = "/usr/bin/twinbed-probe"
"""Its place in every image."""


def probe_path() -> Path:
    """Return the probe installed with this package. Raises ImageFailed if it has not been built, or cannot be."""
    path = Path(__file__).parents[1] / "bin" / "twinbed-probe"
    if path.is_file():
        return path
    if (machine := platform.uname().machine) != "x86_64":
        advice = "run the study on Linux on x86_64; results can be analysed here"
        raise ImageFailed(f"the programs for hosts need x86_64, and this machine is {machine}", advice=advice)
    raise ImageFailed(f"{path}: the probe has not been built", advice="make setup   (in twinbed's source folder)")
