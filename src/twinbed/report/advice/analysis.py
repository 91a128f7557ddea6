"""Rules of thumb from the results of one or several studies, by the analyses ``compare`` and ``capacity``.

In: the tables of each study.  Out: an Advice.  Comparisons of testbeds with the reference and of settings' levels with the
first level are one family (``analyses.compare.claims``). Objectives of how many fit get a share of the error by Bonferroni, in
two tests each (keeps, fails). So the chance that any printed rule is wrong is at most ``error``. All rules that were tested
count, not only those that are printed: options have to be chosen before the results are seen.

Limits: the workload's own settings (the payload) are the question, so their effect is no advice. Studies with interim analyses
or sessions give no rule about settings, since their tests do not cover it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from twinbed.analyses.compare.claims import decided, values
from twinbed.executor import Executor, Here
from twinbed.metrics.metric import Layer
from twinbed.model.comparison import FEW, Comparison
from twinbed.model.error import TwinbedError
from twinbed.model.result import Verdict
from twinbed.model.tables import Tables
from twinbed.report.advice.contradictions import contradictions
from twinbed.report.advice.fitting import objectives, rules_of
from twinbed.report.advice.open import undecided
from twinbed.report.advice.result import Advice, Contrast, Count, Rule, Span, Statement, Topic, Trusted
from twinbed.report.advice.series import Series, series
from twinbed.report.advice.study import Held, Settings, Study, study_of
from twinbed.report.advice.words import Wording, kinds, sentence, wording_of
from twinbed.show.words import metric_title


def advise(sources: Sequence[Tables], asked: Settings, executor: Executor | None = None) -> Advice:
    """Return the rules that hold together for all ``sources``. ``executor`` judges comparisons (None: this process).

    Raises TwinbedError for results without runs."""
    for tables in sources:
        if not tables.records:
            raise TwinbedError(f"{tables.shown} has no run", advice="make runs first: twinbed run STUDY")
    studies = [study_of(tables, asked, executor or Here()) for tables in sources]
    held = [comparison for study in studies for comparison in study.held]
    bare = [comparison for _, comparison in held]
    fitting = sum(len(objectives(study.tables, None)) for study in studies)
    comparisons = decided(bare, asked.error).tested
    tested = comparisons + fitting
    decision = decided(bare, asked.error * comparisons / tested if comparisons else asked.error)
    shown = [(contrast, comparison) for (contrast, _), comparison in zip(held, decision.comparisons, strict=True)]
    of_studies = iter(shown)
    statements: list[Statement] = []
    of_sources = []
    for study in studies:
        own = list(islice(of_studies, len(study.held)))
        of_sources.append((study.tables, own))
        statements += _statements(study, own, asked)
        if fitting:
            known = objectives(study.tables, 1 - asked.error / (2 * tested))
            of_numbers = rules_of(study.tables, study.result, [objective for objective in known if objective.least_runs >= FEW])
            statements += (Statement(rule.topic, rule.sentence, (rule,), rule.command) for rule in of_numbers)
    return Advice(
        bases=tuple(study.basis for study in studies),
        statements=tuple(sorted(statements, key=lambda statement: list(Topic).index(statement.topic))),
        trusted=tuple(_trusted(shown)),
        open=tuple(undecided(shown, decision)),
        error=asked.error,
        tested=tested,
        notes=tuple(note for study in studies for note in study.notes),
        contradictions=tuple(contradictions(of_sources)),
    )


def _statements(study: Study, held: Sequence[Held], asked: Settings) -> Iterator[Statement]:
    """Yield a sentence for all metrics to which the same words apply."""
    by_metric: dict[tuple[Contrast, str], list[Series]] = {}
    for member in series(held, study.axis, study.varying):
        by_metric.setdefault((member.contrast, member.cells[0].place), []).append(member)
    alike_metrics: dict[tuple[Contrast, Wording], list[tuple[Sequence[Series], Sequence[Comparison]]]] = {}
    for (contrast, _), of_metric in by_metric.items():
        alike: dict[tuple[tuple[str, Verdict], ...], list[Series]] = {}
        for member in of_metric:
            alike.setdefault(member.pattern, []).append(member)
        for group in alike.values():
            shown = [cell for member in group for cell in member.cells if cell.verdict is not Verdict.INCONCLUSIVE]
            if shown:
                alike_metrics.setdefault((contrast, wording_of(group, len(of_metric))), []).append((group, shown))
    for (contrast, (_, every, *_rest)), metrics in alike_metrics.items():
        rules = tuple(_rule(contrast, sentence([group], every), shown, asked) for group, shown in metrics)
        names = [shown[0].metric for _, shown in metrics]
        text = sentence([group for group, _ in metrics], every)
        yield Statement(contrast.topic, text, rules, _command(contrast, names, asked))


def _rule(contrast: Contrast, text: str, shown: Sequence[Comparison], asked: Settings) -> Rule:
    within, beyond = ([cell for cell in shown if cell.verdict is way] for way in (Verdict.EQUIVALENT, Verdict.DIFFERENT))
    counts = [values(cell) for cell in shown]
    return Rule(
        topic=contrast.topic,
        sentence=text,
        source=contrast.source,
        testbed=contrast.testbed or contrast.subject,
        against=contrast.against,
        metric=shown[0].place,
        layer=shown[0].layer,
        cells=len(shown),
        runs=(min(counts), max(counts)),
        within=_span(within),
        beyond=_span(beyond),
        # The p-value that each verdict rests on.
        p_value=max([cell.p_equivalent or 0.0 for cell in within] + [cell.p_different or 0.0 for cell in beyond]),
        cautions=kinds(shown),
        command=_command(contrast, [shown[0].metric], asked),
        comparisons=tuple(shown),
    )


def _span(cells: Sequence[Comparison]) -> Span | None:
    if not cells:
        return None
    estimates = [cell.effect.value if cell.effect else cell.ratio or 0.0 for cell in cells]
    intervals = [cell.effect.interval if cell.effect else cell.ratio_interval for cell in cells]
    low = [interval.low for interval in intervals if interval is not None]
    high = [interval.high for interval in intervals if interval is not None]
    bounded = len(low) == len(cells)
    return Span(len(cells), min(estimates), max(estimates), min(low) if bounded else None, max(high) if bounded else None)


def _command(contrast: Contrast, metrics: Sequence[str], asked: Settings) -> str:
    source = shlex.quote(contrast.source)
    if contrast.factor:
        return (
            f"twinbed analyse anova {source} --response {metrics[0]} --factor {shlex.quote(contrast.factor)} --factor testbed"
        )
    options = "" if asked.reference is None else f" --reference {shlex.quote(asked.reference)}"
    options += "" if asked.margin is None else f" --margin {asked.margin:g}"
    asked_of = "".join(f" --metric {metric}" for metric in dict.fromkeys(metrics))
    return f"twinbed compare {source}{asked_of}{options}"


def _trusted(held: Sequence[Held]) -> Iterator[Trusted]:
    groups: dict[tuple[Contrast, str], dict[str, list[Verdict]]] = {}
    for contrast, comparison in held:
        if contrast.topic is Topic.STANDS_IN:
            title = metric_title(comparison.metric, comparison.host, comparison.direction)
            groups.setdefault((contrast, comparison.layer), {}).setdefault(title, []).append(comparison.verdict)
    contrasts, layers = list(dict.fromkeys(contrast for contrast, _ in groups)), [str(layer) for layer in Layer]
    for contrast, layer in sorted(groups, key=lambda key: (contrasts.index(key[0]), layers.index(key[1]))):
        counts = (
            Count(name, verdicts.count(Verdict.EQUIVALENT), verdicts.count(Verdict.DIFFERENT), len(verdicts))
            for name, verdicts in groups[contrast, layer].items()
        )
        yield Trusted(contrast.source, contrast.subject, contrast.against, layer, tuple(counts))
