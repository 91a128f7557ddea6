"""Why an image could not be built, with the command that would mend it."""

from __future__ import annotations

from twinbed.model.error import TwinbedError


class ImageFailed(TwinbedError):
    """Preflight's exit code: without an image there is no testbed."""

    exit_code = 3
