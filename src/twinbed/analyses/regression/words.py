"""Write a regression in sentences and tables.

The table has the field's layout (LDRD report, Table 3.4): a row for each term, the constant last, and a column for each model.
A cell has the estimate and its interval, with the decimals of two digits of the standard error.  With stars it has standard
errors, and * p < 0.1, ** p < 0.05, *** p < 0.01.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from twinbed.analyses.regression import draw
from twinbed.analyses.regression.result import AssumptionCheck, Coefficient, Column, Effect, Model, Regression
from twinbed.model.json import Json
from twinbed.show.quantities import share
from twinbed.show.section import Item, Section
from twinbed.show.table import Table, plain, readable
from twinbed.show.words import left_out

Row = dict[str, Json]
CONSTANT = "Constant"
STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
STARS_NOTE = "* p < 0.1; ** p < 0.05; *** p < 0.01"
_MINUS = "\N{MINUS SIGN}"
_FACTS = {
    "r_squared": "R\N{SUPERSCRIPT TWO}",
    "adjusted_r_squared": "Adjusted R\N{SUPERSCRIPT TWO}",
    "residual_standard_deviation": "Residual standard deviation",
    "f": "F",
    "groups": "Groups",
    "group_standard_deviation": "Standard deviation between groups",
    "intraclass_correlation": "Intraclass correlation",
    "rows_of_half_weight_or_less": "Rows of half weight or less",
}
_METHODS = {"least squares": "least squares", "huber": "robust (Huber)", "tukey": "robust (Tukey)", "mixed": "random intercept"}


def section(regression: Regression) -> Section:
    """Return the models side by side, and each by itself."""
    items: list[Item] = [_data_text(regression), models_table(regression)]
    items += [_model(regression, number) for number in range(1, len(regression.models) + 1)]
    title = f"Regression of {regression.response}"
    return Section("regression", title, answer(regression), (*items, *_programs(regression)), kicker=regression.source)


def answer(regression: Regression) -> str:
    """Return the largest effect of the first model, or its R squared, and how many assumptions fail."""
    model = regression.models[0]
    first = model.columns[0]
    checks = [check for own in regression.models for check in own.checks if check.holds is not None]
    fails = sum(check.holds is False for check in checks)
    tested = (
        f"{fails} of {len(checks)} checks of assumptions fail" if fails else f"All {len(checks)} checks of assumptions hold"
    )
    changes = [(effect, effect.change, effect.change_interval) for effect in first.effects if effect.change is not None]
    if changes:
        most, change, interval = max(changes, key=lambda entry: abs(math.log1p(entry[1])))
        bounds = (
            f", {share(regression.confidence)} CI {100 * interval.low:+.1f} to {100 * interval.high:+.1f} %" if interval else ""
        )
        size = f"{100 * change:+.1f} %{bounds}"
        return f"{regression.response} changes most with {most.variable} {most.to} instead of {most.base} ({size}). {tested}."
    explained = next((column.facts["r_squared"] for column in model.columns if column.facts.get("r_squared") is not None), None)
    if explained is None:
        return f"{tested}."
    return f"The model explains {100 * explained:.1f} % of the variation of {model.response}. {tested}."


def _data_text(regression: Regression) -> str:
    return f"{regression.source}: {regression.response}{f' in {regression.unit}' if regression.unit else ''}"


def _model(regression: Regression, number: int) -> Section:
    model = regression.models[number - 1]
    known = set(left_out(regression.left_out))  # Every form has these outside of the section.
    inflation = ", ".join(f"{term.term} {term.scaled:.3f} ({term.gvif:.3f}, {term.columns} df)" for term in model.inflation)
    effects = Section(
        f"effects-{number}", "Effects, other variables held", items=(tuple(effect_lines(model)), *draw.effects(model))
    )
    items: list[Item] = [
        tuple(note for note in model.notes if note not in known),
        *([effects] if model.columns[0].effects else []),
        Section(f"assumptions-{number}", "Assumptions of the model", items=(tuple(check_lines(model)),)),
        f"GVIF^(1/(2 df)) (and GVIF) before interactions and powers: {inflation}" if inflation else "",
        *draw.residuals(model),
    ]
    return Section(f"model-{number}", f"Model {number}: {model.formula}", items=[item for item in items if item])


def models_table(regression: Regression) -> Table:
    """Return the table of all forms: a column for each fit, with terms, then facts of the whole fit."""
    stars = regression.stars
    columns = [(model, column) for model in regression.models for column in model.columns]
    terms = dict.fromkeys(coefficient.term for _, column in columns for coefficient in column.coefficients)
    ordered = sorted((term for term in terms if term != CONSTANT), key=lambda term: term.count(" * "))
    ordered += [CONSTANT] if CONSTANT in terms else []
    lines = []
    for term in ordered:
        cells = [
            next((coefficient for coefficient in column.coefficients if coefficient.term == term), None)
            for _, column in columns
        ]
        lines.append((term, *(_cell(cell, stars) for cell in cells)))
    heads, *more = _head(columns)
    rows = (*more, *lines, *_facts(columns))
    notes = "\n".join(_notes(regression, columns, stars))
    shown = readable("models", f"Regression of {regression.response}", notes, heads, rows, len(heads))
    return replace(shown, rule=len(more) + len(lines))


def _head(columns: Sequence[tuple[Model, Column]]) -> Iterator[tuple[str, ...]]:
    yield ("Dependent variable", *(model.response for model, _ in columns))
    if len(columns) > 1:
        yield ("", *(f"({number})" for number in range(1, len(columns) + 1)))
    if any(column.method != "least squares" for _, column in columns):
        yield ("Method", *(_METHODS[column.method] for _, column in columns))


def _cell(coefficient: Coefficient | None, stars: bool) -> str:
    if coefficient is None:
        return ""
    mark = next((mark for limit, mark in STARS if coefficient.p is not None and coefficient.p < limit), "") if stars else ""
    estimate, error, low, high = numbers(
        coefficient.standard_error,
        coefficient.estimate,
        coefficient.standard_error,
        coefficient.interval.low,
        coefficient.interval.high,
    )
    return f"{estimate}{mark} ({error})" if stars else f"{estimate} [{low}, {high}]"


def numbers(error: float, *values: float) -> list[str]:
    """Return numbers with the decimals of two digits of their standard error."""
    largest = max(map(abs, values))
    if error <= 0 or not math.isfinite(error):
        return [_signed(f"{value:.6g}") for value in values]
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 6 or largest >= 1e7:
        digits = max(1, decimals + math.floor(math.log10(largest)))
        return [_signed(f"{value:.{min(digits, 8)}e}") for value in values]
    return [_signed(f"{value:.{max(decimals, 0)}f}") for value in values]


def _signed(text: str) -> str:
    """Return the text with a minus sign, but -0.00 as 0.00."""
    if not text.startswith("-"):
        return text
    return text.replace("-", _MINUS, 1) if any(digit in "123456789" for digit in text.partition("e")[0]) else text[1:]


def _facts(columns: Sequence[tuple[Model, Column]]) -> Iterator[tuple[str, ...]]:
    yield ("Observations", *(f"{model.n:,}" for model, _ in columns))
    for name, label in _FACTS.items():
        values = [column.facts.get(name) for _, column in columns]
        if any(value is not None for value in values):
            yield (label, *(_fact(name, column) for _, column in columns))
    if any(column.method == "least squares" for _, column in columns):
        yield ("Errors", *(column.errors for _, column in columns))


def _fact(name: str, column: Column) -> str:
    value = column.facts.get(name)
    if value is None:
        return ""
    if name == "f":
        return f"{f'{value:,.1f}' if value < 1e6 else f'{value:.4g}'} ({column.facts['f_df']:.0f}; {column.facts['df']:,.0f})"
    if name in ("groups", "rows_of_half_weight_or_less"):
        return f"{value:,.0f}"
    return f"{value:.3f}" if name.endswith("r_squared") else f"{value:.4g}"


def _notes(regression: Regression, columns: Sequence[tuple[Model, Column]], stars: bool) -> Iterator[str]:
    yield "Standard errors are in brackets." if stars else f"{share(regression.confidence)} intervals are in brackets."
    bases = {name: base for model in regression.models for name, base in model.bases.items()}
    if bases:
        yield f"Base levels: {', '.join(f'{name} {base}' for name, base in bases.items())}."
    for text, at in {text: at for model in regression.models for text, at in model.centres.items()}.items():
        yield f"{text} is centred at {at:.6g}."
    for text in dict.fromkeys(f"{column.errors} errors: {column.why}." for _, column in columns if column.why):
        yield text[0].upper() + text[1:]
    if stars:
        yield f"{STARS_NOTE}."


def sorted_checks(model: Model) -> list[AssumptionCheck]:
    """Return the checks, those that fail first."""
    order = {False: 0, None: 1, True: 2}
    return sorted(model.checks, key=lambda check: order[check.holds])


def check_lines(model: Model) -> Iterator[str]:
    """Yield each check, with its advice in a line below; advice that two tests share is given once."""
    marks = {True: "holds", False: "FAILS", None: "-"}
    before = ""
    for check in sorted_checks(model):
        advice = f"\n         -> {check.advice}" if check.advice and check.advice != before else ""
        yield f"{marks[check.holds]:5}  {check.assumption}: {check.statement} ({tested(check)}){advice}"
        before = check.advice


def tested(check: AssumptionCheck) -> str:
    """Return the test's name, statistic and p-value."""
    parts = [check.test]
    if check.statistic is not None and check.freedom is not None:
        parts.append(f"{check.statistic:.4g} of {check.freedom:.0f} df")
    if check.p is not None:
        parts.append("p < 0.001" if check.p < 0.001 else f"p = {check.p:.3f}")
    return ", ".join(parts)


def effect_lines(model: Model) -> Iterator[str]:
    """Yield each effect as a sentence."""
    several = len(model.columns) > 1
    for column in model.columns:
        for effect in column.effects:
            where = f" at {', '.join(f'{name} {value}' for name, value in effect.at.items())}" if effect.at else ""
            method = f" ({_METHODS[column.method]})" if several else ""
            difference = effect.difference
            estimate, low, high = numbers(
                difference.standard_error, difference.estimate, difference.interval.low, difference.interval.high
            )
            line = f"{effect.variable} {effect.to} compared with {effect.base}{where}{method}: {estimate} [{low}, {high}]"
            if effect.change is not None and effect.change_interval is not None:
                interval = effect.change_interval
                change = ", ".join(f"{100 * value:+.1f}" for value in (interval.low, interval.high))
                line = f"{line}, that is {100 * effect.change:+.1f} % [{change}] %"
            elif model.logarithm:
                line += ", a ratio too large to print"
            yield line


def _programs(regression: Regression) -> Iterator[Table]:
    """Yield the tables for programs; ``model`` counts from 1."""
    numbered = list(enumerate(regression.models, 1))
    columns = [(number, model, column) for number, model in numbered for column in model.columns]
    rows: dict[str, list[Row]] = {
        "models": [
            {
                "model": number,
                "formula": model.formula,
                "response": model.response,
                "observations": model.n,
                "method": column.method,
                "errors": column.errors,
                **_all_facts(columns, column),
            }
            for number, model, column in columns
        ],
        "coefficients": [
            {"model": number, "method": column.method, "errors": column.errors, **_coefficient(coefficient)}
            for number, _, column in columns
            for coefficient in column.coefficients
        ],
        "effects": [
            {"model": number, "method": column.method, "errors": column.errors, **_effect(effect)}
            for number, _, column in columns
            for effect in column.effects
        ],
        "checks": [{"model": number, **_check(check)} for number, model in numbered for check in model.checks],
        "inflation": [
            {"model": number, "of": model.first_order, **asdict(inflation)}
            for number, model in numbered
            for inflation in model.inflation
        ],
        "box_cox": [{"model": number, **asdict(model.box_cox)} for number, model in numbered if model.box_cox],
        "points": [{"model": number, **asdict(point)} for number, model in numbered for point in model.points],
        "notes": [{"model": number, "note": note} for number, model in numbered for note in model.notes],
    }
    return (plain(name, of_table) for name, of_table in rows.items())


def _check(check: AssumptionCheck) -> Row:
    """Return a row; the column of the statement has the name ``said`` since the first release."""
    return {"said" if name == "statement" else name: value for name, value in asdict(check).items()}


def _all_facts(columns: list[tuple[int, Model, Column]], column: Column) -> Row:
    """Return all facts that any column has, so that rows have the same columns."""
    names = dict.fromkeys(name for _, _, other in columns for name in other.facts)
    return {name: column.facts.get(name) for name in names}


def _coefficient(coefficient: Coefficient) -> Row:
    return {
        "term": coefficient.term,
        "estimate": coefficient.estimate,
        "standard_error": coefficient.standard_error,
        "df": coefficient.freedom,
        "t": coefficient.statistic,
        "p": coefficient.p,
        "low": coefficient.interval.low,
        "high": coefficient.interval.high,
        "level": coefficient.interval.level,
    }


def _effect(effect: Effect) -> Row:
    difference = {name: value for name, value in _coefficient(effect.difference).items() if name not in ("term", "estimate")}
    return {
        "variable": effect.variable,
        "to": effect.to,
        "base": effect.base,
        "at": ", ".join(f"{name}={value}" for name, value in effect.at.items()),
        "difference": effect.difference.estimate,
        **difference,
        "change": effect.change,
        "change_low": effect.change_interval.low if effect.change_interval else None,
        "change_high": effect.change_interval.high if effect.change_interval else None,
    }
