"""The place of the static program that is put on every host."""

from __future__ import annotations

from pathlib import Path

from twinbed.image.failure import ImageFailed

MOUNTED_AT = "/usr/bin/twinbed-probe"
"""Its place in every image."""


def probe_path() -> Path:
    """The probe installed with this package. Raises ImageFailed where it has not been built."""
    path = Path(__file__).parents[1] / "bin" / "twinbed-probe"
    if not path.is_file():
        raise ImageFailed(f"{path}: the probe has not been built", advice="run `make setup` in twinbed's source folder")
    return path
