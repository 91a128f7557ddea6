"""``python -m twinbed.image``: ``twinbed image build`` for set-up, which has no extension module yet."""

import sys

from twinbed.image import build
from twinbed.model.error import TwinbedError

try:
    image = build(say=lambda line: sys.stderr.write(f"{line}\n"))
except TwinbedError as error:
    sys.exit(f"{error.message}\n{error.advice}")
sys.stdout.write(f"{image.rootfs.parent}\n")
