"""What is installed is what was tested: every requirement has one version, with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned(file: str) -> dict[str, str]:
    """Name to version; every entry has hashes."""
    text = (ROOT / file).read_text()
    entries = re.findall(r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", text, re.M)
    versions = {name.replace(".", "-"): version for name, version, _ in entries}
    assert len(versions) == len(entries) == text.count("==")
    return versions


def named(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", each)[0].lower().replace("_", "-").replace(".", "-") for each in requirements}  # type: ignore[index]


def test_every_requirement_has_one_version_and_hashes() -> None:
    groups = PROJECT["dependency-groups"]
    names = named([*PROJECT["project"]["dependencies"], *groups["dev"], *PROJECT["build-system"]["requires"]])
    assert len(names) > 10
    assert names | {"uv"} <= set(pinned("constraints.txt"))


def test_so_has_what_makes_the_wheel() -> None:
    versions = pinned("packaging/constraints.txt")
    assert named(PROJECT["dependency-groups"]["wheel"]) <= set(versions)
    assert versions["maturin"] == pinned("constraints.txt")["maturin"]
