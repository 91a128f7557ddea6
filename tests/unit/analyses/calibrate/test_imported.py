"""`twinbed calibrate` on a table of others: sizes as tools write them, and a line that limits both testbeds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes

SIZES = ("1k", "4k", "16k", "64k", "256k", "1m", "4m", "16m")
MANIFEST = """reference: metal
files:
  - pattern: runs.csv
    format: generic-csv
    options:
      {testbed: bed, replicate: rep, levels: {size: size}, columns: {rate: goodput}, units: {rate: bit/s}}
    metrics: [{name: goodput, unit: bit/s, layer: application, headline: true}]
"""
CARRIED = 40e9 * 1448 / 1538
"""Of 40 Gbit/s: a segment's payload by its frame with preamble and gap (IEEE 802.3), 37.66 Gbit/s."""


def calibrated(folder: Path, capfd: pytest.CaptureFixture[str], *, helps: bool) -> tuple[dict[str, Any], str]:
    """Containers at eight sizes, metal at every second and the last; without ``helps`` containers go up and down."""
    noise = np.random.default_rng(6)
    lines = ["bed,size,rep,rate"]
    for at, size in enumerate(SIZES):
        metal = 0.9995 * CARRIED / (1 + 6 * math.exp(-1.8 * at))
        own = 0.8 * metal if helps else 0.4 * CARRIED * math.exp(0.5 * (-1) ** (at // 2))
        for rep in range(1, 5):
            lines.append(f"container,{size},{rep},{own * math.exp(0.02 * noise.normal()):.0f}")
            if at % 2 == 0 or at == len(SIZES) - 1:
                lines.append(f"metal,{size},{rep},{metal * math.exp(0.0005 * noise.normal()):.0f}")
    folder.mkdir()
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")
    (folder.parent / "m.yaml").write_text(MANIFEST)
    results = folder.parent / "results"
    given = ("--manifest", str(folder.parent / "m.yaml"), "--link-rate", "40gbit", "-o", str(results))
    assert run(["import", str(folder), *given]) == codes.DONE, capfd.readouterr().err
    capfd.readouterr()
    assert run(["calibrate", str(results)]) == codes.DONE
    text = capfd.readouterr().out
    assert run(["calibrate", str(results), "--format", "json"]) == codes.DONE
    return json.loads(capfd.readouterr().out), text


def test_short_sizes_are_numbers_and_predictions_stay_below_the_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found, text = calibrated(tmp_path / "in", capfd, helps=True)
    assert [row["size"] for row in found["predictions"]] == list(SIZES), "1m comes after 256k"
    assert "8 cells of size on container, 5 on metal" in text
    told = [row for row in found["predictions"] if row["value"] is not None]
    assert len(told) == len(SIZES)
    assert max(row["high"] for row in told) <= CARRIED * (1 + 1e-9)
    cut = [row for row in told if row["cut_at"] is not None]
    assert cut and cut[0]["cut_at"] == pytest.approx(CARRIED)
    assert f"{len(cut)} prediction" in text and "cut at 37.66 Gbit/s, the most that the link can carry" in text
    assert "container helps" in text
    (summary,) = found["calibrations"]
    assert summary["unmeasured"] == 3 and "median of 3 cells not measured there" in text
    kept = tmp_path / "results/calibrations/container-metal.json"
    assert run(["predict", str(kept), "--size", "1m"]) == codes.DONE
    assert "size 1m" in capfd.readouterr().out


def test_a_cheap_testbed_that_does_not_help_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found, text = calibrated(tmp_path / "in", capfd, helps=False)
    (summary,) = found["calibrations"]
    assert summary["uses_cheap"] is False and summary["slope"] is None
    assert summary["error"] == summary["error_alone"] < summary["error_with_cheap"]
    assert summary["cheap_share"] == 0
    assert "container does not help and is not used" in text
