"""``python -m twinbed.image [--image SOURCE] [PACKAGE ...]``: ``twinbed image build`` for root, whose PATH may lack twinbed,
and for set-up, before the extension module exists."""

import argparse
import sys
from functools import partial
from pathlib import Path

from twinbed.image import build
from twinbed.model.error import TwinbedError
from twinbed.model.image import Added
from twinbed.readers.container_image import Unreadable, digest, located
from twinbed.terminal import say, say_error

parser = argparse.ArgumentParser(prog="python -m twinbed.image")
parser.add_argument("--image", help="container image to add: oci-archive:FILE, docker-archive:FILE or a folder")
parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="Debian package to add")
given = parser.parse_args()
try:
    source = located(given.image, Path.cwd()) if given.image else None
    added = Added(tuple(given.packages), source, digest(source) if source else None)
    image = build(say=partial(say, err=True), added=added)
except TwinbedError as error:
    say_error(error.message, error.advice, before="")
    sys.exit(1)
except Unreadable as error:
    say_error(str(error), "", before="")
    sys.exit(2)
say(str(image.rootfs.parent))
