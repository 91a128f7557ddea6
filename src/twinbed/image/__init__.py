"""The root file system and guest kernel that every testbed runs, built once and identified by content."""

from twinbed.image.assembly import build, find
from twinbed.image.cache import images
from twinbed.image.layer import LAYER_FILE, has_program
from twinbed.image.probe import probe_path
from twinbed.image.specification import TWINBED, Specification, with_kernel
from twinbed.model.image import Image

__all__ = [
    "LAYER_FILE",
    "TWINBED",
    "Image",
    "Specification",
    "build",
    "find",
    "has_program",
    "images",
    "probe_path",
    "with_kernel",
]
