"""Whole studies of the fake testbed, run and compared like any other: how often they contain a wrong verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twinbed import design
from twinbed.analyses.compare.method import analysis as compare
from twinbed.cli.extraction import extracted
from twinbed.cli.interim import Deciding
from twinbed.contracts.site import Installed
from twinbed.image import Image
from twinbed.lab.study import carry_out
from twinbed.model.comparison import Comparison
from twinbed.model.result import Verdict
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.folder import Folder
from twinbed.study.loading import load


@dataclass(frozen=True)
class Corpus:
    """``text`` is a study file with {seed}, a number that no other study has, in its testbeds' seeds."""

    name: str
    about: str
    text: str
    wrong: Verdict
    """The verdict that none of the counted comparisons deserves."""
    metric: str | None
    """The one whose comparisons are counted; None for every headline."""
    family: bool
    """Whether one wrong verdict of a study makes the study wrong, or each comparison counts on its own."""


AA = """
study: same
testbeds: {{a: {{driver: fake, seed: {seed}0}}, b: {{driver: fake, seed: {seed}1}}, c: {{driver: fake, seed: {seed}2}}}}
workload: {{kind: planted}}
factors: {{workload.spread: [0.05, 0.5, 3.0]}}
replicates: {replicates}
"""
EDGE = """
study: edge
testbeds: {{a: {{driver: fake, seed: {seed}0}}, b: {{driver: fake, seed: {seed}1, ratio: 1.1}}}}
workload: {{kind: planted}}
factors: {{workload.spread: [0.02, 0.05]}}
replicates: {replicates}
"""
LOOKS = "{{least: 5, most: 8}}"

CORPORA = (
    Corpus(
        "A/A",
        "three equal testbeds, spreads 5, 50 and 300 %, 5 replicates: 18 headline comparisons",
        AA.replace("{replicates}", "5"),
        Verdict.DIFFERENT,
        None,
        True,
    ),
    Corpus(
        "A/A until decided",
        "the same, going on from 5 to 8 replicates with an interim analysis after each",
        AA.replace("{replicates}", LOOKS),
        Verdict.DIFFERENT,
        None,
        True,
    ),
    Corpus(
        "at the edge",
        "a ratio of 1.1 at a margin of 10 %, spreads 2 and 5 %, 5 replicates: requests per second",
        EDGE.replace("{replicates}", "5"),
        Verdict.EQUIVALENT,
        "requests_per_second",
        False,
    ),
    Corpus(
        "at the edge until decided",
        "the same, going on from 5 to 8 replicates with an interim analysis after each",
        EDGE.replace("{replicates}", LOOKS),
        Verdict.EQUIVALENT,
        "requests_per_second",
        False,
    ),
)


@dataclass(frozen=True)
class Count:
    """How many of how many were wrong: studies of a family, else comparisons."""

    wrong: int
    of: int
    comparisons: int


def count(corpus: Corpus, studies: int) -> Count:
    """Carries out as many studies, numbered from 1."""
    wrong = total = comparisons = 0
    for seed in range(1, studies + 1):
        counted = [each for each in _headlines(corpus, seed) if corpus.metric in (None, each.metric)]
        hits = sum(each.verdict is corpus.wrong for each in counted)
        comparisons += len(counted)
        wrong += min(hits, 1) if corpus.family else hits
        total += 1 if corpus.family else len(counted)
    return Count(wrong, total, comparisons)


def _headlines(corpus: Corpus, seed: int) -> Iterator[Comparison]:
    study = load(corpus.text.format(seed=seed), "corpus.yaml", catalogue())
    # Runs are synced to disk one by one; in memory that takes no time.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Folder(Path(name))
        runs = design.runs(study)
        nowhere = Path(name) / "nowhere"
        installed = Installed(nowhere, Image("0", nowhere, nowhere, "erofs", nowhere, nowhere, "6.1", {}))
        with folder.locked():
            deciding = Deciding(study, runs, folder, lambda _: None)
            goes_on = deciding.goes_on if study.until else None
            carry_out(study, runs, PLUGINS, folder, installed, lambda _: None, goes_on=goes_on)
        yield from (each for each in compare.run(extracted(folder.path)).comparisons if each.headline)
