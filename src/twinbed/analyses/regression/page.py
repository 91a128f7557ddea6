"""A regression as a page of its own: the table, effects, what the model assumes, and its residuals."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from twinbed.analyses.regression.result import Model, Regression
from twinbed.analyses.regression.tables import effect_lines, html, sorted_checks, tested
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar
from twinbed.observations.residual import Residual
from twinbed.render import plots
from twinbed.render.document import document
from twinbed.render.tabular import Tabular
from twinbed.render.words import caution_sentences

_HOLDS = {True: "holds", False: "fails", None: "not tested"}


def page(found: Regression, stars: bool = False) -> str:
    """The whole page."""
    fails = sum(check.holds is False for model in found.models for check in model.checks)
    lede = f"{fails} of the checks of what the models assume fail." if fails else "No check of what the models assume fails."
    header = (
        f'<header><p class="kicker">{escape(found.source)}</p><h1>Regression of {escape(found.response)}</h1>'
        f'<p class="lede">{escape(lede)}</p></header>'
    )
    said = "".join(f"<li>{escape(caution)}</li>" for caution in caution_sentences(found.cautions))
    table = html(found, stars) + (f'<ul class="notes">{said}</ul>' if said else "")
    body = f"{header}<main><section><h2>Models</h2>{table}</section>{''.join(_models(found))}</main>"
    return document(f"Regression of {found.response}", body, f"Made of {found.source}.")


def _models(found: Regression) -> Iterator[str]:
    for model in found.models:
        yield f"<section><h2>{escape(model.formula)}</h2>"
        yield from (f"<p>{escape(note)}</p>" for note in model.notes)
        yield from _effects(model)
        yield _checks(model).as_html()
        if model.inflation:
            yield _inflation(model).as_html()
        yield '<div class="plots">' + "".join(_figures(model)) + "</div></section>"


def _effects(model: Model) -> Iterator[str]:
    if not model.columns[0].effects:
        return
    yield '<ul class="notes">' + "".join(f"<li>{escape(line)}</li>" for line in effect_lines(model)) + "</ul>"
    bars = []
    for each in model.columns[0].effects:
        where = "".join(f", {name} {value}" for name, value in each.at.items())
        name = f"{each.variable} {each.to} / {each.base}{where}"
        if each.change is not None and each.change_interval is not None:
            interval = each.change_interval
            bars.append(Bar(name, 1 + each.change, 1 + interval.low, 1 + interval.high))
        else:
            bars.append(Bar(name, each.difference.estimate, each.difference.interval.low, each.difference.interval.high))
    spec = diagnostics.intervals(bars, "ratio", 1.0) if model.logarithm else diagnostics.intervals(bars, "difference", 0.0)
    yield (
        '<div class="plots">'
        + _figure(spec, "Effects with intervals, all else held; coloured: those that exclude none.")
        + "</div>"
    )


def _checks(model: Model) -> Tabular:
    rows = tuple((each.assumption, _HOLDS[each.holds], each.said, tested(each), each.advice) for each in sorted_checks(model))
    return Tabular("Assumptions", "What the model assumes", ("Assumption", "", "Found", "Test", "Instead"), rows, texts=5)


def _inflation(model: Model) -> Tabular:
    rows = tuple((each.term, str(each.columns), f"{each.gvif:.3f}", f"{each.scaled:.3f}") for each in model.inflation)
    caption = f"Collinearity before interactions and powers, of {model.first_order}"
    return Tabular("Collinearity", caption, ("Term", "df", "GVIF", "GVIF^(1/(2 df))"), rows)


def _figures(model: Model) -> Iterator[str]:
    some = f" {len(model.points):,} of {model.n:,} rows." if len(model.points) < model.n else ""
    rows = [Residual(each.fitted, each.residual, each.normal_quantile) for each in model.points]
    yield _figure(diagnostics.residuals(rows, ""), f"Residuals against predicted values of {model.response}.{some}")
    yield _figure(diagnostics.normal_quantiles(rows, ""), f"Normal Q-Q: residuals of normal errors lie along the line.{some}")
    pairs = [(each.fitted, each.standardised) for each in model.points if each.standardised is not None]
    yield _figure(diagnostics.scale_location(pairs, ""), f"Scale-location: equal variances lie at one height.{some}")


def _figure(spec: plots.Spec, caption: str) -> str:
    drawn = plots.svg(spec, f"{caption} The tables have the numbers.")
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"
