"""A regression as a section: the table, effects, what the model assumes, and its residuals."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.regression.result import Model, Regression
from twinbed.analyses.regression.tables import effect_lines, sorted_checks, table, table_html, tested
from twinbed.contracts.analysis import Part, Section
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar
from twinbed.observations.residual import Residual
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.render.tabular import Tabular
from twinbed.show.words import heading

_HOLDS = {True: "holds", False: "fails", None: "not tested"}


def section(regression: Regression, stars: bool = False) -> Section:
    """The models side by side, and each by itself."""
    made = table(regression, stars)
    effects = (line for model in regression.models for line in effect_lines(model))
    said = " ".join([_lede(regression), *(f"{heading(line)}." for line in effects)])
    rows = (*made.head[1:], *made.terms, *made.facts)
    shown = Tabular("Models", " ".join(made.notes), made.head[0], rows)
    part = Part(regression.response, "tab-regression", f"Regression of {regression.response}", said, shown)
    return Section(
        "regression",
        part.title,
        lambda: html(
            "<section><h2>Models</h2>{}</section>{}", table_html(regression, stars), Markup().join(_models(regression))
        ),
        (part,),
        lede=_lede(regression),
        kicker=regression.source,
    )


def _lede(regression: Regression) -> str:
    fails = sum(check.holds is False for model in regression.models for check in model.checks)
    return f"{fails} of the checks of what the models assume fail." if fails else "No check of what the models assume fails."


def _models(regression: Regression) -> Iterator[Markup]:
    for model in regression.models:
        yield html("<section><h2>{}</h2>", model.formula)
        yield from (html("<p>{}</p>", note) for note in model.notes)
        yield from _effects(model)
        yield _checks(model).as_html()
        if model.inflation:
            yield _inflation(model).as_html()
        yield Markup('<div class="plots">') + Markup().join(_figures(model)) + Markup("</div></section>")


def _effects(model: Model) -> Iterator[Markup]:
    if not model.columns[0].effects:
        return
    yield (
        Markup('<ul class="notes">')
        + Markup().join(html("<li>{}</li>", line) for line in effect_lines(model))
        + Markup("</ul>")
    )
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
        Markup('<div class="plots">')
        + _figure(spec, "Effects with intervals, all else held; coloured: those that exclude none.")
        + Markup("</div>")
    )


def _checks(model: Model) -> Tabular:
    rows = tuple(
        (each.assumption, _HOLDS[each.holds], each.statement, tested(each), each.advice) for each in sorted_checks(model)
    )
    return Tabular("Assumptions", "What the model assumes", ("Assumption", "", "Found", "Test", "Instead"), rows, texts=5)


def _inflation(model: Model) -> Tabular:
    rows = tuple((each.term, str(each.columns), f"{each.gvif:.3f}", f"{each.scaled:.3f}") for each in model.inflation)
    caption = f"Collinearity before interactions and powers, of {model.first_order}"
    return Tabular("Collinearity", caption, ("Term", "df", "GVIF", "GVIF^(1/(2 df))"), rows)


def _figures(model: Model) -> Iterator[Markup]:
    some = f" {len(model.points):,} of {model.n:,} rows." if len(model.points) < model.n else ""
    rows = [Residual(each.fitted, each.residual, each.normal_quantile) for each in model.points]
    yield _figure(diagnostics.residuals(rows, ""), f"Residuals against predicted values of {model.response}.{some}")
    yield _figure(diagnostics.normal_quantiles(rows, ""), f"Normal Q-Q: residuals of normal errors lie along the line.{some}")
    pairs = [(each.fitted, each.standardised) for each in model.points if each.standardised is not None]
    yield _figure(diagnostics.scale_location(pairs, ""), f"Scale-location: equal variances lie at one height.{some}")


def _figure(spec: plots.Spec, caption: str) -> Markup:
    drawn = plots.svg(spec, f"{caption} The tables have the numbers.")
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)
