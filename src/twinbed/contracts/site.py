"""The site of a testbed: facts about this machine and the run that drivers need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from twinbed.model.image import NOTHING, Added, Image


@dataclass(frozen=True, slots=True)
class Installed:
    """The parts of every testbed: the program for hosts, and the image."""

    probe: Path
    image: Image
    with_added: Mapping[Added, Image] = field(default_factory=dict)
    """The images with the software that workloads add."""

    def image_for(self, added: Added) -> Image:
        """Return the image that has what a workload adds."""
        return self.with_added[added] if added else self.image


@dataclass(frozen=True, slots=True)
class Site:
    """``run``: the run's id. ``artifacts``: its folder of artifacts, with a folder for each place. ``cpus``: those that this
    process may use. ``seed``: the study's."""

    run: str
    probe: Path
    image: Image
    artifacts: Path
    cpus: tuple[int, ...]
    seed: int = 0
    added: Added = NOTHING
    """The software that the run's workload adds; ``image`` has it."""
    programs: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The programs that the run starts on each host, for drivers whose hosts can be checked only once they are up."""
    real_root: Collection[str] = ()
    """Hosts on which the run starts programs that need the machine's own root (``Command.real_root``)."""

    def place(self, name: str) -> Path:
        folder = self.artifacts / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder
