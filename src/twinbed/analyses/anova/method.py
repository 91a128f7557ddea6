"""The analysis ``anova``: how much of a response's variation each factor and interaction explains.

In: one row an observation with its levels.  Out: an ``Anova``.  Limits: factors are categorical and fixed, errors are
independent; blocks are a factor like any other.  Sources: Jain (1991), chapters 17 to 23; see the other files of this folder
and twinbed.statistics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import ConfigDict, Field, field_validator

from twinbed.analyses.anova import assumptions, model, table, words
from twinbed.analyses.anova.estimates import differences, estimates
from twinbed.analyses.anova.model import Data, Formula, parse
from twinbed.analyses.anova.result import Alternative, Anova, Term, Unexplained, term_text
from twinbed.contracts.analysis import Placed, RowsAnalysis
from twinbed.metrics.metric import Layer
from twinbed.model.error import TwinbedError
from twinbed.model.json import Json
from twinbed.model.tables import Tables
from twinbed.model.units import Share
from twinbed.observations.frame import Frame, headlines, of_tables
from twinbed.show.section import Section
from twinbed.statistics import anova
from twinbed.statistics.anova import Floats
from twinbed.statistics.assumptions import Residual, normal_quantiles


class AnovaParams(Placed):
    """The settings of ``anova``; null and nothing take the defaults."""

    model_config = ConfigDict(populate_by_name=True)

    response: str | None = Field(
        default=None, description="the metric or column. Default for RESULTS: the first headline metric"
    )
    factors: tuple[str, ...] = Field(
        default=(), alias="factor", description="a factor; may be repeated. Default for RESULTS: all factors of the study"
    )
    formula: str | None = Field(
        default=None,
        alias="terms",
        description="the model, such as 'testbed * payload' or 'y ~ a + b + a:b'. Default: all interactions",
    )
    logarithm: bool | None = Field(
        default=None, alias="log", description="analyse logarithms. Default: yes for positive ratio metrics of RESULTS"
    )
    levels: tuple[str, ...] = Field(
        default=(), description="only these levels, in this order: NAME=LEVEL,LEVEL,...; may be repeated"
    )
    type: Literal["I", "II", "III"] = Field(
        default="II", description="the type of sums of squares, by what each is adjusted for"
    )
    model: Literal["auto", "2kr"] = Field(default="auto", description="2kr requires a 2^k r design")
    variances: Literal["auto", "equal", "unequal"] = Field(
        default="auto", description="the assumption on variances; auto follows Brown and Forsythe's test"
    )
    keep: str | None = Field(default=None, description="a truncated model: only these terms")
    drop_below: Share | None = Field(
        default=None, gt=0, lt=1, description="a truncated model: only terms of at least this share, such as 1%"
    )
    confidence: Share = Field(default=0.95, gt=0.5, lt=1, description="the confidence of intervals and of the table's F")

    @field_validator("levels")
    @classmethod
    def _named(cls, levels: tuple[str, ...]) -> tuple[str, ...]:
        for text in levels:
            if not re.fullmatch(r"[^=]+=.+", text):
                raise ValueError(f"{text!r} is not NAME=LEVEL,LEVEL, such as receivers=6,7,8")
        return levels

    @property
    def only(self) -> dict[str, list[str]]:
        """Return factor -> the levels that are analysed."""
        return {name: listed.split(",") for name, _, listed in (text.partition("=") for text in self.levels)}


MOST_EXPLAINED = 3
"""The number of metrics that a report analyses."""


def headline_analyses(source: Tables) -> tuple[Anova | Unexplained, ...]:
    """Return the analyses of the application's first headline metrics; empty if no factor varies."""
    levels = [{"testbed": record.settings["testbed"]["name"], **record.levels} for record in source.records]
    if not any(level != levels[0] for level in levels):
        return ()
    analyses: list[Anova | Unexplained] = []
    for name in headlines(source, Layer.APPLICATION)[:MOST_EXPLAINED]:
        try:
            analysed = analysis.run(of_tables(source, name))
        except TwinbedError as error:
            analyses.append(Unexplained(name, error.message))
            continue
        alone = analysed.errors.freedom == 0
        analyses.append(Unexplained(name, "one value a cell, so errors cannot be estimated") if alone else analysed)
    return tuple(analyses)


class AnovaAnalysis(RowsAnalysis[AnovaParams, Anova]):
    """How much of a response's variation does each factor and interaction explain? The rest are errors.

    Takes the RESULTS of a study, or a FILE with a row for each observation: CSV, TSV or Parquet. Prints sums of squares, F and
    p, then means, effects and differences of levels with intervals. Tests the assumptions, and gives other tests if they fail.
    Levels are categories, even numbers. A 2^k r design also gets the sign table. Errors are estimated from replicates: without
    replicates there is no F.

    \b
      twinbed analyse anova results/                                    all factors, the headline metric
      twinbed analyse anova results/ --response requests_per_second --factor testbed --factor payload
      twinbed analyse anova loss.csv --response loss --factor receivers --confidence 99%
      twinbed analyse anova loss.csv --response loss --factor receivers --levels receivers=6,7,8,9,10
      twinbed analyse anova results/ --drop-below 1% -o anova.html      only the terms that matter, as a page
    """

    name = "anova"
    params = AnovaParams
    epilog = "docs/analyse.md explains each number, and when to trust it."
    table_names = ("variance", "effects", "signs", "means", "differences", "assumptions", "alternatives", "residuals")

    def columns(self, params: AnovaParams) -> tuple[str | None, Sequence[str]]:
        formula, response = _asked(params)
        factors = formula.factors if formula else params.factors
        if not factors:
            raise TwinbedError("the analysis of a file needs its factors", advice="--factor NAME for each factor, or --terms")
        return response, tuple(dict.fromkeys((*factors, *params.only)))

    def run(self, source: Tables | Frame, params: AnovaParams | None = None) -> Anova:
        params = params or AnovaParams()
        formula, response = _asked(params)
        frame = source if isinstance(source, Frame) else of_tables(source, response, params.host, params.direction)
        for name, levels in params.only.items():
            frame = frame.only(name, levels)
        logarithm = True if formula and formula.logarithm else params.logarithm
        factors = formula.factors if formula else params.factors or frame.factors
        of, notes = model.data(frame, factors, logarithm)
        if params.model == "2kr" and not anova.is_factorial(of.of):
            raise TwinbedError(
                f"this is not a 2^k r design: {_no_factorial(of)}", advice="omit --model for the general analysis"
            )
        whole, notes_on_terms = _whole_model(of, formula)
        kept = _kept(of, whole, params)
        return _analysis(of, whole, kept, params, [*notes, *notes_on_terms])

    def section(self, result: Anova) -> Section:
        return words.section(result)

    def facts(self, result: Anova) -> Mapping[str, Json]:
        return words.facts_for_programs(result)

    def sections(self, source: Tables) -> Sequence[Section]:
        analyses = headline_analyses(source)
        return (words.explained(analyses),) if analyses else ()


def _asked(params: AnovaParams) -> tuple[Formula | None, str | None]:
    """Return the requested model and response. Raises TwinbedError if settings contradict each other."""
    if params.formula is not None and params.factors:
        raise TwinbedError("--terms and --factor both name factors", advice="omit --factor")
    formula = parse(params.formula) if params.formula is not None else None
    written = formula.response if formula else None
    if written is not None and params.response not in (None, written):
        raise TwinbedError(f"--response names {params.response}, and --terms names {written}", advice="name the response once")
    return formula, written or params.response


def _whole_model(of: Data, formula: Formula | None) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    if formula is None:
        terms, notes_on_terms = model.default_terms(of)
    else:
        terms, notes_on_terms = formula.terms, ()
    model.check(of, terms)
    return terms, notes_on_terms


def _no_factorial(of: Data) -> str:
    more = [name for name, levels in zip(of.factors, of.of.levels, strict=True) if levels != 2]
    if more:
        return f"{', '.join(more)} {'has' if len(more) == 1 else 'have'} more than two levels"
    if len(of.factors) < 2:
        return "it has only one factor"
    return "some combinations of levels have no value" if not of.full else "combinations have different numbers of values"


def _kept(of: Data, whole: tuple[Term, ...], params: AnovaParams) -> tuple[Term, ...]:
    """Return the terms of the truncated model."""
    kept = whole
    if params.keep is not None:
        asked = {frozenset(term) for term in parse(params.keep).terms}
        known = {frozenset(term): term for term in whole}
        for term in asked - set(known):
            raise TwinbedError(
                f"--keep: the model has no term {':'.join(sorted(term))}",
                advice=f"it has {', '.join(term_text(own) for own in whole)}",
            )
        kept = tuple(term for term in whole if frozenset(term) in asked)
        model.check(of, kept)
    if params.drop_below is not None:
        kept = _above(of, kept, params.type, params.drop_below)
    return kept


def _above(of: Data, terms: tuple[Term, ...], kind: str, least: float) -> tuple[Term, ...]:
    """Return the terms of at least this share of the variation, and those that they contain."""
    squares = anova.sums_of_squares(of.of, [of.positions(term) for term in terms], kind)
    large = [term for term, square in zip(terms, squares, strict=True) if square / of.of.total >= least]
    kept = tuple(term for term in terms if any(set(term) <= set(other) for other in large))
    if not kept:
        raise TwinbedError(f"no term explains {least * 100:g} % of the variation", advice="give a smaller --drop-below")
    return kept


def _analysis(of: Data, whole: Sequence[Term], terms: tuple[Term, ...], params: AnovaParams, notes: list[str]) -> Anova:
    confidence = params.confidence
    fit = anova.fit(of.of, [of.positions(term) for term in terms])
    errors = table.errors_of(of, fit)
    fitted = fit.fitted[of.of.of_row]
    residuals = of.of.centred - fitted if errors.sum_of_squares else np.zeros(of.of.n)
    checks = assumptions.checks(of, residuals, errors.sum_of_squares)
    unequal, other = (assumptions.fails(checks, which) for which in (assumptions.VARIANCES, assumptions.NORMAL))
    if params.variances != "auto":
        unequal = params.variances == "unequal"
    answers: list[Alternative | str] = []
    if errors.mean_square:
        answers = list(assumptions.answers(of, fit, terms, params.type, unequal, other))
    lines = tuple(table.lines(of, terms, params.type, errors, confidence))
    weighed = estimates(of, fit, terms, errors, unequal, confidence)
    level_differences = tuple(differences(weighed))
    return Anova(
        source=of.frame.source,
        response=of.frame.response,
        unit=of.frame.unit,
        logarithm=of.logarithm,
        kind=params.type,
        confidence=confidence,
        n=of.of.n,
        factors={name: of.frame.columns[name].levels for name in of.factors},
        cells=len(of.of.codes),
        balanced=of.balanced,
        terms=terms,
        mean=of.of.mean,
        squares=float(np.sum((of.of.centred + of.of.mean) ** 2)),
        mean_squares=of.of.n * of.of.mean**2,
        total=of.of.total,
        lines=lines,
        errors=errors,
        r_squared=1 - errors.share,
        effects=tuple(table.effects(weighed)),
        signs=tuple(table.signs(of, confidence)),
        means=tuple(table.means(weighed)),
        cell_means=tuple(table.cell_means(weighed)),
        differences=level_differences,
        checks=checks,
        alternatives=tuple(answer for answer in answers if not isinstance(answer, str)),
        truncation=table.truncation(of, whole, terms),
        residuals=_residuals(of, fitted, residuals),
        notes=(
            *notes,
            *assumptions.of_model(of, terms, errors, lines, params.type),
            *assumptions.of_differences(level_differences, errors),
            *assumptions.of_variances(of, errors, checks, unequal, confidence),
            *(answer for answer in answers if isinstance(answer, str)),
        ),
        cautions=of.frame.cautions,
    )


def _residuals(of: Data, fitted: Floats, residuals: Floats) -> tuple[Residual, ...]:
    quantiles = np.empty(of.of.n)
    quantiles[np.argsort(residuals, kind="stable")] = normal_quantiles(of.of.n)
    rows = zip((fitted + of.of.mean).tolist(), residuals.tolist(), quantiles.tolist(), strict=True)
    return tuple(Residual(*row) for row in rows)


analysis = AnovaAnalysis()
