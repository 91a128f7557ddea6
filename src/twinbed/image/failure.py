"""The error of an image that cannot be built or used, with the command that fixes it."""

from __future__ import annotations

from twinbed.model.error import TwinbedError


class ImageFailed(TwinbedError):
    """An image cannot be built or used. It has preflight's exit code: without an image there is no testbed."""

    exit_code = 3
