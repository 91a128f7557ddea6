"""Where a testbed is put up: what drivers need to know of this machine and of the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from twinbed.model.image import Image


@dataclass(frozen=True, slots=True)
class Installed:
    """What every testbed is made from: the program that is put on hosts, and the image."""

    probe: Path
    image: Image


@dataclass(frozen=True, slots=True)
class Site:
    """``run`` is the run's id; ``artifacts`` its folder of artifacts, one folder in it a place; ``cpus`` those that this
    process may use; ``seed`` the study's."""

    run: str
    probe: Path
    image: Image
    artifacts: Path
    cpus: tuple[int, ...]
    seed: int = 0
    programs: Mapping[str, Collection[str]] = field(default_factory=dict)
    """What the run starts on hosts (host -> programs), for drivers whose hosts can be asked only once they are up."""
    real_root: Collection[str] = ()
    """Hosts on which the run starts what needs the machine's own root (``Command.real_root``)."""

    def place(self, name: str) -> Path:
        folder = self.artifacts / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder
