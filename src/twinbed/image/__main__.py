"""``python -m twinbed.image``: ``twinbed image build`` for set-up, before the extension module exists."""

import sys
from functools import partial

from twinbed.image import build
from twinbed.model.error import TwinbedError
from twinbed.terminal import say, say_error

try:
    image = build(say=partial(say, err=True))
except TwinbedError as error:
    say_error(error.message, error.advice, before="")
    sys.exit(1)
say(str(image.rootfs.parent))
