"""Replicates that go on until verdicts are reached: the key, the looks, and that a killed study decides as any other."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.analyses.compare.command import command as compare_command
from twinbed.analyses.compare.decision import Case, Nature, Rules, judge
from twinbed.analyses.compare.interim import judge_at_interim
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.words import explanation
from twinbed.cli import main
from twinbed.cli.extraction import extracted
from twinbed.cli.inputs import ResultsFolders
from twinbed.cli.interim import Deciding
from twinbed.contracts.site import Installed
from twinbed.image import Image
from twinbed.lab.study import Ending, carry_out
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.model.interim import InterimAnalyses, UntilDecided
from twinbed.model.result import Verdict
from twinbed.observations.units import Arranged
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.folder import Folder
from twinbed.statistics.sample import Sample
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.study import Study
from twinbed.testbeds import fake
from twinbed.testbeds.fake import FakeHost

STUDY = """
study: until
testbeds: {a: {driver: fake, seed: 3}, b: {driver: fake, seed: 4}}
workload: {kind: planted, spread: 0.08}
replicates: {least: 5, most: 30}
"""


def study(text: str = STUDY, *overrides: str) -> Study:
    return load(text, "until.yaml", catalogue(), overrides)


class Results:
    """A results folder that studies are carried out into, as `twinbed run` does it."""

    def __init__(self, path: Path) -> None:
        self.path, self.said = path, list[str]()
        nowhere = path / "nowhere"
        self.installed = Installed(nowhere, Image("0", nowhere, nowhere, "erofs", nowhere, nowhere, "6.1", {}))

    def carry(self, given: Study, **options: Any) -> Ending:
        folder = Folder(self.path)
        runs = design.runs(given)
        with folder.locked():
            deciding = Deciding(given, runs, folder, self.said.append)
            return carry_out(given, runs, PLUGINS, folder, self.installed, lambda _: None, goes_on=deciding.goes_on, **options)

    def reach(self, given: Study) -> int:
        folder = Folder(self.path)
        with folder.locked():
            return Deciding(given, design.runs(given), folder, self.said.append).reach()

    @property
    def looks(self) -> InterimAnalyses:
        return InterimAnalyses.from_json(json.loads((self.path / "looks.json").read_text()))

    def verdicts(self) -> list[tuple[str, str, float | None]]:
        found = compare.run(extracted(self.path)).comparisons
        return [(each.metric, str(each.verdict), each.p_equivalent) for each in found]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Ending]:
    """The study, carried out to its end at once, for all tests that only look at it."""
    results = Results(tmp_path_factory.mktemp("whole") / "results")
    return results, results.carry(study())


@pytest.fixture
def decided(whole: tuple[Results, Ending], tmp_path: Path) -> Results:
    """The same in a folder of the test's own."""
    return Results(shutil.copytree(whole[0].path, tmp_path / "decided"))


def test_the_key_is_read_as_any_other() -> None:
    found = study()
    assert (found.replicates, found.until) == (30, UntilDecided(least=5, most=30))
    assert study(STUDY, "replicates.budget=2h").until == UntilDecided(least=5, most=30, budget=7200)
    assert study(STUDY, "replicates=3").until is None
    assert study("\n".join(STUDY.splitlines()[:-1]), "replicates.most=20").until == UntilDecided(least=5, most=20)
    assert found.to_json()["replicates"] == {"least": 5, "most": 30, "budget": None}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{least: 5}", "5:13: replicates.most: is required: replicates of each cell at the last interim analysis"),
        ("{least: 3, most: 30}", "5:21: replicates.least: 3 is not allowed; allowed: greater than or equal to 4"),
        ("{least: 5, most: 5}", "5:30: replicates.most: 5 is not more than least; allowed: more than 5"),
        ("{least: 5, most: 2000}", "5:30: replicates.most: 2000 is not allowed; allowed: less than or equal to 1000"),
        ("{least: 5, mots: 30}", "5:24: replicates.mots: is not a setting; allowed: least, most, budget; did you mean 'most'?"),
        (
            "{least: 5, most: 9, budget: long}",
            "5:41: replicates.budget: 'long' is not a number with a unit; allowed: a duration such as 5us",
        ),
        ("[5, 30]", "5:13: replicates: a list is not allowed; allowed: a valid integer"),
    ],
)
def test_every_mistake_has_its_place(written: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(STUDY.replace("{least: 5, most: 30}", written))
    assert any(str(problem).startswith(f"until.yaml:{said}") for problem in caught.value.problems)


def test_orders_without_blocks_are_refused() -> None:
    with pytest.raises(StudyError) as caught:
        study(STUDY + "order: random\n")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key, problem.allowed) == (6, "order", "randomized-blocks")


@pytest.mark.parametrize(
    ("least", "most", "expected"), [(5, 30, (5, 10, 15, 20, 25, 30)), (5, 6, (5, 6)), (4, 9, (4, 5, 6, 7, 8, 9)), (5, 12, None)]
)
def test_looks_are_few_and_even(least: int, most: int, expected: tuple[int, ...] | None) -> None:
    found = design.interim_blocks(UntilDecided(least=least, most=most))
    assert expected in (None, found)
    assert (found[0], found[-1], len(set(found))) == (least, most, len(found))


def test_a_study_ends_with_its_verdicts(whole: tuple[Results, Ending]) -> None:
    results, ending = whole
    taken = results.looks.taken
    assert [look.blocks for look in taken] == [5, 10, 15][: len(taken)]
    assert [look.ended for look in taken] == [""] * (len(taken) - 1) + ["decided"]
    assert len(taken) > 1, "the spread is such that the first look is too early"
    assert taken[-1].spent < 0.05
    assert ending == Ending(complete=2 * taken[-1].blocks, failed=0, made=2 * taken[-1].blocks, left=0)
    planned = json.loads((results.path / "study.json").read_text())["runs"]
    assert len(planned) == ending.made
    assert Verdict.INCONCLUSIVE not in {verdict for _, verdict, _ in results.verdicts()}
    assert results.said[-1].startswith(
        f"Interim analysis {len(taken)} of 6, after {taken[-1].blocks} blocks: 3 of 3 headline verdicts; "
    )
    assert results.reach(study()) == taken[-1].blocks
    assert results.carry(study()).made == 0


def test_what_never_gets_a_verdict_ends_with_the_most(results: Results) -> None:
    results.carry(study(STUDY.replace("0.08", "0.8"), "replicates.most=7"))
    assert [(look.blocks, look.ended) for look in results.looks.taken] == [(5, ""), (6, ""), (7, "most")]
    assert results.looks.taken[-1].spent == pytest.approx(0.05)
    assert results.looks.taken[-1].open >= 1


def interrupt_after(runs: int, patch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes when one run more than so many has its workload started."""
    original, left = FakeHost.start, [runs]

    def start(self: Any, argv: Any, **rest: Any) -> Any:
        left[0] -= argv[0] == "planted-response"
        if left[0] < 0:
            raise KeyboardInterrupt
        return original(self, argv, **rest)

    patch.setattr(fake.FakeHost, "start", start)


@pytest.mark.parametrize("after", [1, 10, 19])
def test_a_killed_study_decides_as_any_other(
    after: int, results: Results, whole: tuple[Results, Ending], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_after(after, patch)
        with pytest.raises(KeyboardInterrupt):
            results.carry(study())
    results.carry(study())
    assert results.looks == whole[0].looks
    assert results.verdicts() == whole[0].verdicts()


def test_blocks_after_the_last_look_wait_for_the_next(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peeking costs nothing and tells nothing: verdicts are of the last look."""
    interrupt_after(15, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        results.carry(study())
    found = compare.run(extracted(results.path))
    assert {each.estimate.n for each in found.comparisons} == {5}
    assert found.interim == results.looks.taken[0]


def test_before_the_first_look_there_is_no_verdict(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(8, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        results.carry(study(STUDY.replace("0.08", "0.001")))
    found = compare.run(extracted(results.path))
    assert {each.verdict for each in found.comparisons} == {Verdict.INCONCLUSIVE}
    assert {explanation(each) for each in found.comparisons} == {"verdicts wait for the first interim analysis"}


def test_a_look_is_stricter_than_a_single_test(whole: tuple[Results, Ending]) -> None:
    """The same runs with replicates fixed beforehand: smaller p-values, narrower intervals."""
    store = extracted(whole[0].path)
    (looked, *_) = compare.run(store).comparisons
    (fixed, *_) = compare.run(replace(store, outline=replace(store.outline, interim=None))).comparisons
    # At a correlation of 0.5 with the run before, a fifth of the verdicts at the edge are wrong.
    assert [Kind.LOOKS in {own.kind for own in each.cautions} for each in (looked, fixed)] == [True, False]
    assert (looked.ratio, looked.estimate) == (fixed.ratio, fixed.estimate)
    assert looked.p_equivalent is not None and fixed.p_equivalent is not None and looked.p_equivalent > fixed.p_equivalent
    assert looked.ratio_interval is not None and fixed.ratio_interval is not None
    assert looked.ratio_interval.low < fixed.ratio_interval.low < fixed.ratio_interval.high < looked.ratio_interval.high
    assert looked.ratio_interval.level == fixed.ratio_interval.level == pytest.approx(0.90)


def test_the_budget_ends_it_with_a_last_look(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is that of the recorded runs: a block of two takes 20 s here, so that seven are 140 s and eight would be 160."""
    given = study(STUDY.replace("0.08", "0.8"), "replicates.budget=150s")
    monkeypatch.setattr("twinbed.lab.study.Outcome", lambda: ten_seconds())
    results.carry(given)
    assert [(look.blocks, look.ended) for look in results.looks.taken] == [(5, ""), (7, "budget")]
    longer = study(STUDY.replace("0.08", "0.8"), "replicates.budget=210s")
    results.carry(longer)
    assert [(look.blocks, look.ended) for look in results.looks.taken] == [(5, ""), (7, ""), (10, "budget")]
    spending = [look.spent for look in results.looks.taken]
    assert spending == sorted(spending)


def test_a_look_that_the_budget_brought_about_outlives_a_second_kill(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has spent is spent, even if the study is killed while its looks are taken again."""
    monkeypatch.setattr("twinbed.lab.study.Outcome", lambda: ten_seconds())
    results.carry(study(STUDY.replace("0.08", "0.8"), "replicates.budget=150s"))
    original = Deciding._analysis

    def look(self: Deciding, blocks: int, over: bool) -> Any:
        if blocks == 7:
            raise KeyboardInterrupt
        return original(self, blocks, over)

    with monkeypatch.context() as patch:
        patch.setattr(Deciding, "_analysis", look)
        with pytest.raises(KeyboardInterrupt):
            results.carry(study(STUDY.replace("0.08", "0.8"), "replicates.budget=210s"))
    assert [each.blocks for each in results.looks.taken] == [5, 7]


def ten_seconds() -> Any:
    """An outcome whose phases take 10 s together, whatever the clock says."""
    from twinbed.lab.execution import Outcome

    class Fixed(dict[str, float]):
        def __setitem__(self, phase: str, seconds: float) -> None:
            super().__setitem__(phase, 10.0 if phase == "workload" else 0.0)

    return Outcome(phases=Fixed())


def test_a_budget_too_small_for_any_look_says_so(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.lab.study.Outcome", lambda: ten_seconds())
    results.carry(study(STUDY, "replicates.budget=50s"))
    assert results.said == ["The budget is spent after 2 blocks, too few for a verdict (at least 4)."]
    assert not (results.path / "looks.json").exists()


def test_a_plan_does_not_change_after_a_look(decided: Results) -> None:
    with pytest.raises(TwinbedError, match="used replicates from 5 to 30, not from 5 to 40"):
        decided.carry(study(STUDY, "replicates.most=40"))


def test_runs_left_out_leave_no_look(results: Results) -> None:
    ending = results.carry(study(), only=["testbed=a"])
    assert ending.made == 5
    assert "--only left out some of their runs" in results.said[0]
    assert results.carry(study()).made > 5


def test_failed_runs_are_part_of_their_blocks(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    from twinbed.hosts.error import HostLost

    original, left = FakeHost.start, [3]

    def start(self: Any, argv: Any, **rest: Any) -> Any:
        left[0] -= argv[0] == "planted-response"
        if left[0] == 0:
            raise HostLost("client: gone")
        return original(self, argv, **rest)

    monkeypatch.setattr(fake.FakeHost, "start", start)
    assert results.carry(study()).failed == 1
    assert results.looks.taken[-1].ended == "decided"


def test_what_is_not_looks_is_refused(decided: Results) -> None:
    (decided.path / "looks.json").write_text("{}")
    with pytest.raises(TwinbedError, match=r"looks\.json cannot be read"):
        decided.carry(study())
    with pytest.raises(TwinbedError, match=r"looks\.json cannot be read"):
        extracted(decided.path)


def test_the_command_ends_with_the_study_and_needs_nothing_more(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "until.yaml"
    file.write_text(STUDY)
    asked: list[int] = []

    def ready(given: Study, to_do: Any, _: Path) -> Installed:
        asked.append(len(to_do))
        return results.installed

    monkeypatch.setattr("twinbed.cli.run_study.ready", ready)
    assert main.run(["run", str(file), "-o", str(results.path), "--no-report"]) == 0
    said = capsys.readouterr()
    look = results.looks.taken[-1]
    assert f"Interim analysis {look.number} of 6" in said.err and f"Interim analysis {look.number} of 6" in said.out
    assert "at most" in said.err
    assert main.run(["run", str(file), "-o", str(results.path), "--no-report"]) == 0
    assert "Look" not in capsys.readouterr().err, "what is old is not told again"
    assert asked == [60], "a study that has ended needs no image"


def test_compare_and_the_page_say_which_look(decided: Results) -> None:
    from click.testing import CliRunner

    from twinbed.report.page import page

    results = decided
    look = results.looks.taken[-1]
    said = CliRunner().invoke(compare_command, [str(results.path)], standalone_mode=False, obj=ResultsFolders()).output
    assert f"Interim analysis {look.number} of 6, after {look.blocks} blocks: 3 of 3 headline verdicts; alpha spent" in said
    data = json.loads(
        CliRunner()
        .invoke(compare_command, [str(results.path), "--format", "json"], standalone_mode=False, obj=ResultsFolders())
        .output
    )
    assert (data["look"]["blocks"], data["look"]["ended"]) == (look.blocks, "decided")
    store = extracted(results.path)
    html = page(store, compare.run(store))
    assert f"Interim analysis {look.number} of 6" in html
    assert "5 to 30, until decided" in html


SAMPLES = {
    Scale.RATIO: ([101.0, 103.0, 99.0, 102.0, 100.0, 98.0], [100.0, 101.0, 97.0, 104.0, 99.0, 102.0]),
    Scale.INTERVAL: ([1.0, -2.0, 0.5, 1.5, -0.5, 0.0], [0.0, 1.0, -1.0, 2.0, 0.3, -0.4]),
    Scale.ORDINAL: ([1.0, 2.0, 3.0, 3.0, 4.0, 5.0], [2.0, 2.0, 3.0, 4.0, 4.0, 5.0]),
    Scale.NOMINAL: ([1.0, 1.0, 2.0, 2.0, 1.0, 3.0], [1.0, 2.0, 2.0, 3.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("scale", SAMPLES)
@pytest.mark.parametrize("looks", [(), (0.3,), (0.3, 0.6, 1.0)])
def test_looks_hold_on_every_scale(scale: Scale, looks: tuple[float, ...]) -> None:
    rules = Rules(0.3, 0.05, 0.95, looks)
    one, two = map(Sample.of, SAMPLES[scale])
    case = Case(scale, one, two, Arranged(one, two), Nature(2.0), rules)
    fixed, found = judge(case), judge_at_interim(case)
    for single, looked in ((fixed.p_equivalent, found.p_equivalent), (fixed.p_different, found.p_different)):
        assert single is not None and looked is not None
        assert looked == 1.0 if not looks else looked >= single
    if not looks:
        assert (found.verdict, found.method, found.ratio_interval) == (Verdict.INCONCLUSIVE, "unlooked", None)
        return
    inside = found.p_equivalent is not None and found.p_equivalent <= 0.05
    assert (found.verdict is Verdict.EQUIVALENT) is inside
    single_interval, interval = (each.ratio_interval or (each.effect and each.effect.interval) for each in (fixed, found))
    if single_interval:
        assert interval and interval.low < single_interval.low and single_interval.high < interval.high
        assert interval.level == pytest.approx(0.90)
