"""Regression tables in the layout of the field (LDRD report, Table 3.4): a row a term, the constant last, a column a model.

As text, LaTeX (``\\usepackage{booktabs}``) and HTML.  A cell has the estimate and its interval, with the decimals that two
digits of the standard error have.  With stars it has standard errors, and * p < 0.1, ** p < 0.05, *** p < 0.01 as there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from twinbed.analyses.regression.result import AssumptionCheck, Coefficient, Column, Model, Regression
from twinbed.render.html import html
from twinbed.render.latex_text import LONG, needs, over_pages
from twinbed.render.latex_text import escape as latex_escape
from twinbed.show.quantities import share

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


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of equally many cells; the first is the label."""

    head: tuple[tuple[str, ...], ...]
    terms: tuple[tuple[str, ...], ...]
    facts: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def table(regression: Regression, stars: bool = False) -> Table:
    """The content that all three forms print."""
    columns = [(model, column) for model in regression.models for column in model.columns]
    terms = dict.fromkeys(each.term for _, column in columns for each in column.coefficients)
    ordered = sorted((term for term in terms if term != CONSTANT), key=lambda term: term.count(" * "))
    ordered += [CONSTANT] if CONSTANT in terms else []
    lines = []
    for term in ordered:
        cells = [next((each for each in column.coefficients if each.term == term), None) for _, column in columns]
        lines.append((term, *(_cell(each, stars) for each in cells)))
    return Table(tuple(_head(columns)), tuple(lines), tuple(_facts(columns)), tuple(_notes(regression, columns, stars)))


def _head(columns: Sequence[tuple[Model, Column]]) -> Iterator[tuple[str, ...]]:
    yield ("Dependent variable", *(model.response for model, _ in columns))
    if len(columns) > 1:
        yield ("", *(f"({number})" for number in range(1, len(columns) + 1)))
    if any(column.method != "least squares" for _, column in columns):
        yield ("Method", *(_METHODS[column.method] for _, column in columns))


def _cell(each: Coefficient | None, stars: bool) -> str:
    if each is None:
        return ""
    mark = next((mark for limit, mark in STARS if each.p is not None and each.p < limit), "") if stars else ""
    estimate, error, low, high = numbers(
        each.standard_error, each.estimate, each.standard_error, each.interval.low, each.interval.high
    )
    return f"{estimate}{mark} ({error})" if stars else f"{estimate} [{low}, {high}]"


def numbers(error: float, *values: float) -> list[str]:
    """Numbers with the decimals that two digits of their standard error have."""
    largest = max(map(abs, values))
    if error <= 0 or not math.isfinite(error):
        return [_signed(f"{value:.6g}") for value in values]
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 6 or largest >= 1e7:
        digits = max(1, decimals + math.floor(math.log10(largest)))
        return [_signed(f"{value:.{min(digits, 8)}e}") for value in values]
    return [_signed(f"{value:.{max(decimals, 0)}f}") for value in values]


def _signed(text: str) -> str:
    """With a minus sign; -0.00 has none."""
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
    yield "Standard errors are in brackets." if stars else f"Intervals of {share(regression.confidence)} are in brackets."
    bases = {name: base for model in regression.models for name, base in model.bases.items()}
    if bases:
        yield f"Base levels: {', '.join(f'{name} {base}' for name, base in bases.items())}."
    for text, at in {text: at for model in regression.models for text, at in model.centres.items()}.items():
        yield f"{text} is centred at {at:.6g}."
    for text in dict.fromkeys(f"{column.errors} errors: {column.why}." for _, column in columns if column.why):
        yield text[0].upper() + text[1:]
    if stars:
        yield f"{STARS_NOTE}."


def text(regression: Regression, stars: bool = False) -> str:
    """Aligned columns."""
    made = table(regression, stars)
    lines = [*made.head, *made.terms, *made.facts]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))

    def aligned(part: Sequence[tuple[str, ...]]) -> list[str]:
        return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in part]

    return "\n".join([*aligned(made.head), rule, *aligned(made.terms), rule, *aligned(made.facts), "", *made.notes]) + "\n"


def latex(regression: Regression, stars: bool = False) -> str:
    """A table for ``\\input``."""
    made = table(regression, stars)

    def rows(part: Sequence[tuple[str, ...]]) -> list[str]:
        return [f"    {' & '.join(_in_latex(cell) for cell in line)} \\\\" for line in part]

    columns = "l" * len(made.head[0])
    caption, label = latex_escape(f"Regression of {regression.response}."), "tab-regression"
    body = [*rows(made.terms), r"    \midrule", *rows(made.facts)]
    notes = rf"\parbox{{0.95\linewidth}}{{\footnotesize {_in_latex(' '.join(made.notes))}}}"
    if len(body) >= LONG:
        whole = over_pages(caption, label, columns, "\n".join(rows(made.head)), body)
        return f"% {latex_escape(regression.source)}: needs {needs([whole])}\n{whole}\\noindent{notes}\n"
    lines = [
        r"\begin{table}[htb]",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{{label}}}",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        *rows(made.head),
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}",
        rf"  \par\smallskip{notes}",
        r"\end{table}",
    ]
    return "\n".join([f"% {latex_escape(regression.source)}: needs {needs(lines)}", *lines]) + "\n"


def _in_latex(cell: str) -> str:
    marked = latex_escape(cell.replace(_MINUS, "\N{HYPHEN-MINUS}\N{HYPHEN-MINUS}~").replace("\N{SUPERSCRIPT TWO}", "~2~"))
    return marked.replace(r"--\textasciitilde{}", "$-$").replace(r"\textasciitilde{}2\textasciitilde{}", "$^2$")


def table_html(regression: Regression, stars: bool = False) -> Markup:
    """A table element that a narrow screen scrolls."""
    made = table(regression, stars)

    def rows(part: Sequence[tuple[str, ...]], kind: str) -> Markup:
        made_rows = []
        for label, *cells in part:
            rest = Markup().join(html('<{} class="number">{}</{}>', kind, cell, kind) for cell in cells)
            made_rows.append(html('<tr><th scope="row">{}</th>{}</tr>', label, rest))
        return Markup("\n").join(made_rows)

    parts = html(
        "<thead>{}</thead><tbody>{}</tbody><tbody>{}</tbody>",
        rows(made.head, "th"),
        rows(made.terms, "td"),
        rows(made.facts, "td"),
    )
    notes = Markup().join(html("<li>{}</li>", note) for note in made.notes)
    return html(
        '<div class="scroll" tabindex="0"><table>{}</table></div>\n<ul class="notes">{}</ul>\n',
        parts,
        notes,
    )


def sorted_checks(model: Model) -> list[AssumptionCheck]:
    """Those that fail first."""
    order = {False: 0, None: 1, True: 2}
    return sorted(model.checks, key=lambda each: order[each.holds])


def check_lines(model: Model) -> Iterator[str]:
    """Each check as a line, and the advice as another; advice that two tests share is given once."""
    marks = {True: "holds", False: "FAILS", None: "-"}
    before = ""
    for each in sorted_checks(model):
        yield f"{marks[each.holds]:5}  {each.assumption}: {each.statement} ({tested(each)})"
        if each.advice and each.advice != before:
            yield f"         -> {each.advice}"
        before = each.advice


def tested(each: AssumptionCheck) -> str:
    """The test's name, statistic and p-value."""
    parts = [each.test]
    if each.statistic is not None and each.freedom is not None:
        parts.append(f"{each.statistic:.4g} of {each.freedom:.0f} df")
    if each.p is not None:
        parts.append("p < 0.001" if each.p < 0.001 else f"p = {each.p:.3f}")
    return ", ".join(parts)


def effect_lines(model: Model) -> Iterator[str]:
    """Each effect as a sentence."""
    several = len(model.columns) > 1
    for column in model.columns:
        for each in column.effects:
            where = f" at {', '.join(f'{name} {value}' for name, value in each.at.items())}" if each.at else ""
            method = f" ({_METHODS[column.method]})" if several else ""
            one = each.difference
            estimate, low, high = numbers(one.standard_error, one.estimate, one.interval.low, one.interval.high)
            line = f"{each.variable} {each.to} against {each.base}{where}{method}: {estimate} [{low}, {high}]"
            if each.change is not None and each.change_interval is not None:
                interval = each.change_interval
                change = ", ".join(f"{100 * value:+.1f}" for value in (interval.low, interval.high))
                line = f"{line}, that is {100 * each.change:+.1f} % [{change}] %"
            elif model.logarithm:
                line += ", a ratio too large to say"
            yield line
