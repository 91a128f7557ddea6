"""The page's colours by day, for figures in files, which have no style sheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def light() -> Mapping[str, str]:
    """Return name -> ``#rrggbb``, as the first rule of ``page.css`` has them."""
    rule = (Path(__file__).parent / "page.css").read_text().partition("}")[0]
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", rule))
