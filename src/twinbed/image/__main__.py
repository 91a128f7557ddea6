"""``python -m twinbed.image``: ``twinbed image build`` for set-up, which has no extension module yet."""

import sys

from twinbed.image import build
from twinbed.model.error import TwinbedError


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


try:
    image = build(say=_say)
except TwinbedError as error:
    sys.exit(f"{error.message}\n{error.advice}")
sys.stdout.write(f"{image.rootfs.parent}\n")
