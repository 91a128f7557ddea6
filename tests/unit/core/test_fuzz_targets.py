"""Nothing else builds the fuzz targets, a workspace of their own: its manifest names each of them, and each is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

FUZZ = Path(__file__).parents[3] / "crates/core/fuzz"


def test_every_target_is_in_the_manifest() -> None:
    manifest = tomllib.loads((FUZZ / "Cargo.toml").read_text())
    named = {target["name"]: target["path"] for target in manifest["bin"]}
    assert named == {file.stem: f"fuzz_targets/{file.name}" for file in (FUZZ / "fuzz_targets").glob("*.rs")}
