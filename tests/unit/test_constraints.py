"""What is installed is what was tested: every requirement has one version, with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_one_version_and_hashes() -> None:
    entries = re.findall(
        r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", (ROOT / "constraints.txt").read_text(), re.M
    )
    pinned = {name for name, _, _ in entries}
    assert len(pinned) == len(entries) == (ROOT / "constraints.txt").read_text().count("==")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"], *project["build-system"]["requires"]]
    names = {re.match(r"[\w.-]+", each)[0].lower().replace("_", "-").replace(".", "-") for each in wanted}  # type: ignore[index]
    assert len(names) > 10
    assert names | {"uv"} <= {name.replace(".", "-") for name in pinned}
