"""What a security monitor sees, in a report and as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.monitor.result import Monitored
from twinbed.analyses.monitor.tables import alerts, classes, sentence
from twinbed.contracts.analysis import Part, Section
from twinbed.show.words import caution_sentences, left_out

KEY, TITLE = "monitor", "What a security monitor sees"


def section(result: Monitored) -> Section:
    """The section in every form of a report."""
    parts = [Part("connections that are not the workload's", "tab-monitor", TITLE, sentence(result), classes(result))]
    if result.alerts:
        parts.append(Part("alerts", "tab-alerts", "Alerts", "", alerts(result)))
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result)),
        tuple(parts),
        lede=sentence(result),
        notes=(*caution_sentences(result.cautions), *left_out(result.left_out)),
        kicker="Monitor",
    )


def _body(result: Monitored) -> Iterator[Markup]:
    if result.classes:
        yield classes(result).as_html()
    if result.alerts:
        yield alerts(result).as_html()
