"""The handbook has measured ratios beside the printed ones."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manual.handbook import text

from synthetic_results import write_study


def test_with_results_what_is_measured_stands_beside_what_is_printed(tmp_path: Path) -> None:
    """ICNC-I prints that e1000 gives 0.45 of the physical testbed's at 500 B, and 1.01 at 1 MB. Planted is 0.5 at both."""
    noise = random.Random(1)

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = 1000 * (0.5 if testbed == "e1000" else 1.0) * math.exp(noise.gauss(0, 0.01))
        return {"requests": 1000, "requests_per_second": rate, "packets": 10_000, "bytes": 1_000_000}

    results = write_study(tmp_path / "own", ["physical", "e1000"], {"payload": ["500B", "1MiB"]}, 6, respond)
    made = text([results])
    [small] = [line for line in made.splitlines() if line.startswith("| ICNC-I | e1000 | 500B |")]
    [large] = [line for line in made.splitlines() if line.startswith("| ICNC-I | e1000 | 1MB |")]
    assert small.endswith("(different) | agree |") and large.endswith("(different) | differ |")
    assert "e1000 gives 0." in made and "no machine: physical and e1000" in made
