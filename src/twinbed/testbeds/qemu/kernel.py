"""The image that guests of a certain kernel boot: the study's own, or one that differs from it in the kernel alone."""

from __future__ import annotations

from twinbed.hosts.error import HostError
from twinbed.image import Image, find, with_kernel


def image_with(kernel: str | None, own: Image) -> Image:
    """Raises HostError where it has not been built, which preflight has said before."""
    if kernel is None:
        return own
    image = find(with_kernel(kernel))
    if image is None:
        raise HostError(f"no image with the kernel {kernel}; build it with `twinbed image build --kernel {kernel}`")
    return image
