"""The interim analyses of `twinbed run`, which decide whether a study needs another block.

An interim analysis uses complete blocks and nothing else, so that a killed study decides as one that was not. For the same
reason, the time spent is the sum over recorded runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from twinbed import design, registry
from twinbed.cli.extraction import extracted
from twinbed.cli.on import executor
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.model.interim import FILE, InterimAnalyses, InterimAnalysis
from twinbed.model.json import WRONG, document, parsed, why
from twinbed.model.result import Verdict
from twinbed.model.tables import TESTBED
from twinbed.model.view import AsOf
from twinbed.results.folder import Folder
from twinbed.results.store import Store
from twinbed.show.words import interim_sentence
from twinbed.statistics.sequential import FEWEST, information, interim_levels, spent
from twinbed.study.run import Run
from twinbed.study.study import Study


class Deciding:
    """Takes the interim analyses of one study in one results folder, which the caller has locked."""

    def __init__(self, study: Study, runs: Sequence[Run], folder: Folder, say: Callable[[str], None]) -> None:
        self._study, self._folder, self._say = study, folder, say
        self._blocks: dict[int, list[str]] = {}
        for run in runs:
            self._blocks.setdefault(run.block, []).append(run.id)
        self._ids = frozenset(run.id for run in runs)
        self._until = study.until
        self._earlier_blocks = self._reported_blocks = 0
        self._scheduled: tuple[int, ...] = ()
        if self._until is None:
            return
        self._interim = InterimAnalyses(self._until.least, self._until.most)
        self._scheduled = design.interim_blocks(self._until)
        earlier = self._earlier()
        # An interim analysis at the end of the budget has spent its alpha, even if the budget is larger now.
        self._scheduled = tuple(sorted({*self._scheduled, *(analysis.blocks for analysis in earlier.taken)}))
        self._earlier_blocks = self._reported_blocks = earlier.blocks

    def _earlier(self) -> InterimAnalyses:
        file = self._folder.path / FILE
        try:
            earlier = InterimAnalyses.from_json(document(parsed(self._folder.tree.read(FILE))))
        except FileNotFoundError:
            return self._interim
        except (OSError, *WRONG) as error:
            raise TwinbedError(
                f"{file} cannot be read: {why(error)}", advice="delete it; the interim analyses are made again from the runs"
            ) from error
        if (earlier.least, earlier.most) != (self._interim.least, self._interim.most) and earlier.taken:
            analyses = amount(len(earlier.taken), "interim analysis", "interim analyses")
            raise TwinbedError(
                f"{self._folder.path}: {analyses} used replicates from {earlier.least} to {earlier.most}, "
                f"not from {self._interim.least} to {self._interim.most}",
                advice="restore these replicates, or start new results with --output: a plan that changes after an interim "
                "analysis is wrong more often than it states",
            )
        return earlier

    def reach(self) -> int:
        """Return how many blocks the study needs, by the runs on disk: all unless an interim analysis ended it."""
        for block in range(self._study.replicates):
            if self._missing(block):
                break
            if not self.goes_on(block):
                return block + 1
        return self._study.replicates

    def goes_on(self, block: int) -> bool:
        """Return whether another block is needed after this one. Takes the interim analysis that is due."""
        blocks = block + 1
        over = blocks < self._study.replicates and self._over_budget(blocks)
        if blocks not in self._scheduled and not over:
            return True
        if blocks < FEWEST:
            self._say(f"The budget is spent after {blocks} blocks, too few for a verdict (at least {FEWEST}).")
            return False
        if any(self._missing(earlier) for earlier in range(blocks)):
            self._say(f"No interim analysis after {blocks} blocks: --only left out some of their runs.")
            return False
        analysis = self._analysis(blocks, over)
        # While earlier interim analyses are taken again, the file with all of them is kept.
        if analysis.ended or blocks >= self._earlier_blocks:
            self._folder.write(FILE, json.dumps(self._interim.to_json(), indent=1) + "\n")
        if blocks > self._reported_blocks:
            self._reported_blocks = blocks
            self._say(interim_sentence(analysis))
        return not analysis.ended

    def next_interim(self, blocks: int) -> int:
        """Return after how many blocks the next interim analysis is planned; all blocks without one."""
        return next((planned for planned in self._scheduled if planned > blocks), self._study.replicates)

    def _missing(self, block: int) -> bool:
        return any(self._folder.status(run) is None for run in self._blocks[block])

    def _over_budget(self, blocks: int) -> bool:
        """Return whether another block of the mean length would end after the budget."""
        if self._until is None or self._until.budget is None:
            return False
        records = Store.open(self._folder.path).of_runs(self._ids).records
        seconds = sum(sum(record.phases.values()) for record in records if record.block < blocks)
        return seconds * (blocks + 1) / blocks > self._until.budget

    def _analysis(self, blocks: int, over: bool) -> InterimAnalysis:
        """Take an interim analysis and append it to ``self._interim``."""
        alpha = round(1 - self._study.confidence, 12)
        taken = tuple(analysis for analysis in self._interim.taken if analysis.blocks < blocks)
        times = (*(analysis.information for analysis in taken), information(blocks, self._interim.most))
        analysis = InterimAnalysis(
            number=len(taken) + 1,
            planned=len({*self._scheduled, blocks}),
            blocks=blocks,
            information=times[-1],
            spent=spent(alpha, times[-1]),
            level=interim_levels(alpha, times)[-1],
            alpha=alpha,
            decided=0,
            open=0,
        )
        decided, undecided = self._verdicts(InterimAnalyses(self._interim.least, self._interim.most, (*taken, analysis)))
        if decided and not undecided:
            ended = "decided"
        elif blocks == self._study.replicates:
            ended = "most"
        else:
            ended = "budget" if over else ""
        analysis = replace(analysis, decided=decided, open=undecided, ended=ended)
        self._interim = replace(self._interim, taken=(*taken, analysis))
        return analysis

    def _verdicts(self, interim: InterimAnalyses) -> tuple[int, int]:
        """Count headline comparisons with and without a verdict, without those that can have none."""
        store = extracted(self._folder.path, all_settings=True).of_runs(self._ids)
        outline = replace(
            store.outline,
            reference=self._study.reference,
            margin=self._study.margin,
            confidence=self._study.confidence,
            interim=interim,
        )
        compare = registry.analysis("compare")
        seen = AsOf(replace(store, outline=outline), interim.blocks)
        result = compare.run_on(executor(), seen, compare.params(by=TESTBED))
        headlines = [
            comparison
            for comparison in result.comparisons
            if comparison.headline and comparison.p_equivalent is not None and comparison.method != "unseen"
        ]
        decided = sum(comparison.verdict is not Verdict.INCONCLUSIVE for comparison in headlines)
        return decided, len(headlines) - decided
