"""Write the report of a study in each of its styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twinbed.model.tables import TESTBED

if TYPE_CHECKING:
    from pathlib import Path

    from twinbed.model.comparison import Comparisons
    from twinbed.model.tables import Tables
    from twinbed.report.pivots import Levels, Table
    from twinbed.show.section import Section

SUFFIXES: Mapping[str, str] = {"html": ".html", "markdown": ".md", "latex": ".tex", "csv": ".csv", "tables-csv": "-tables.csv"}
"""Style -> how the name of its file ends."""


def rendered(style: str, tables: Tables, result: Comparisons, file: Path | None = None, *, whole: bool = False) -> str:
    """Return the report in a style of SUFFIXES. ``file`` is where it will be, from which pages of analyses are linked. An
    HTML page is short unless ``whole``."""
    if style == "csv":
        from twinbed.analyses.compare.rows import as_csv

        return as_csv(result.comparisons)
    own = study_tables(tables, result)
    if style == "tables-csv":
        from twinbed.report import pivots

        return pivots.as_csv(own)
    if style == "latex":
        from twinbed.report.latex import latex

        return latex(tables, result, sections(tables), own)
    from twinbed.report.fitting import fitting

    if style == "markdown":
        from twinbed.report.markdown import markdown

        return markdown(tables, result, sections(tables), own, fitting(tables))
    from twinbed.report.further import further
    from twinbed.report.page import page

    return page(tables, result, sections(tables), own, fitting(tables), further(tables, file), whole=whole)


def sections(tables: Tables) -> tuple[Section, ...]:
    """Return what the analyses give to a report, in the order of their list."""
    from twinbed import registry

    return tuple(section for analysis in registry.analyses() for section in analysis.sections(tables))


def study_tables(tables: Tables, result: Comparisons) -> tuple[Table, ...]:
    """Return the tables that the study file asks for, next to the printed numbers that it names."""
    from twinbed.published.printed import library
    from twinbed.published.printed_metrics import printed_at
    from twinbed.report import pivots

    def printed(name: str, levels: Levels, metric: str) -> str | None:
        return printed_at(library(), library().table(name), levels, metric)

    if not tables.outline.data.get("tables"):
        return ()
    if result.by != TESTBED:
        from twinbed import registry

        compare = registry.analysis("compare")
        result = compare.run(tables, compare.params(by=TESTBED))
    return pivots.study_tables(tables, result, printed)
