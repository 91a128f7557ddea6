"""Print a comparison on a terminal: conclusion, lists, matrix and cautions in 80 columns; tables, readable at 120."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.text import Text

from twinbed.analyses.compare import exclusion
from twinbed.analyses.compare.conclusion import MOST_ROWS, Conclusion, conclusions, matrix, unseen, why
from twinbed.analyses.compare.forest import STYLES, forest
from twinbed.analyses.compare.ranked import MOST_KINDS, RANKS, ranked, summed
from twinbed.analyses.compare.section import MOST_SENTENCES, card, lede
from twinbed.analyses.compare.tables import by_metric, measured_tables, quantile_table, spread_table, verdict_table
from twinbed.analyses.compare.words import factors_measured, nothing_compared
from twinbed.model.caution import Rank
from twinbed.model.comparison import OTHER_SETTINGS, Comparison, Comparisons
from twinbed.model.result import Verdict
from twinbed.render.sections import tabular
from twinbed.render.terminal import Terminal
from twinbed.show.section import Entry, Listing, Matrix
from twinbed.show.table import Table
from twinbed.show.words import LAYERS, SYMBOLS, cell_title, interim_sentence, metric_title, other_settings
from twinbed.terminal import one_line

MOST_CARDS = 4
"""Testbeds whose lists are printed; the matrix has more."""
PAIRS = "pairs"
"""The factor by which one asks how many fit."""
INDENT = 2
LEAST_ENTRY, MOST_LABEL = 10, 44
"""Columns of a matrix: of an entry at least, of the metric's name and its cell at most."""
RANK_STYLES = {Rank.INVALIDATES: "bold red", Rank.WEAKENS: "yellow", Rank.NOTE: "dim"}


def print_comparison(
    result: Comparisons, console: Terminal, comparisons: Sequence[Comparison] | None = None, further: Iterable[str] = ()
) -> None:
    """Print the conclusion, the lists of each testbed, the ``further`` lines, the matrix and the cautions; of the
    ``comparisons`` that are asked for, their tables too."""
    headlines = [comparison for comparison in result.comparisons if comparison.headline]
    shown = headlines if comparisons is None else list(comparisons)
    _begin(result, console)
    if not shown:
        _nothing(result, console)
    for line in further:
        console.say(line)
    if shown:
        concluded = conclusions(result)
        for conclusion in concluded if len(concluded) <= MOST_CARDS else ():
            _lists(
                console,
                conclusion.testbed,
                [item for item in card(conclusion).items if isinstance(item, Listing) and item.mark],
            )
        _next(console, concluded)
        console.say("")
        for row in matrix_lines(matrix(result, shown), console.width):
            console.print(row, soft_wrap=True)
    _cautions(console, result, shown, everything=comparisons is not None)
    if comparisons is not None:
        _tables(console, result, shown)
    elif shown:
        hidden = sum(not comparison.headline for comparison in result.comparisons)
        others = f" (with {hidden} comparisons of other metrics)" if hidden else ""
        console.say("")
        console.words(f"Intervals, values and methods: --why. Tables: --all{others}, or --metric NAME.", "dim")


def _begin(result: Comparisons, console: Terminal) -> None:
    """Print what comes before the lists: runs left out, what is compared, the conclusion, what few runs cannot show."""
    if count := result.left_out.get(OTHER_SETTINGS):
        console.words(f"{other_settings(count)} (--all-settings takes them in).", "yellow")
        console.say("")
    if result.about:
        console.words(result.about)
        console.say("")
    verdict_lines(result, console)
    headlines = [comparison for comparison in result.comparisons if comparison.headline]
    if text := unseen(comparison for comparison in headlines if comparison.verdict is Verdict.EQUIVALENT):
        console.words(text)
    for item in exclusion.items(result):
        _item(console, item)
    if result.interim and headlines:
        console.words(interim_sentence(result.interim))
    if headlines and (cautions := ranked(result, headlines)):
        console.words(f"Cautions, below: {summed(cautions)}.")


def _item(console: Terminal, item: object) -> None:
    if isinstance(item, str):
        console.words(item)
    elif isinstance(item, Table):
        _table(console, item)


def _nothing(result: Comparisons, console: Terminal) -> None:
    console.words(f"Nothing to compare: {nothing_compared(result)}.")
    if (names := factors_measured(result)) and not result.about:
        console.words(f"--by FACTOR compares levels. Factors here: {', '.join(names)}.")
        if PAIRS in names:
            console.words("How many pairs fit: `twinbed analyse scaling RESULTS`, or the report.")
    for table in measured_tables(result):
        _table(console, table)


def verdict_lines(result: Comparisons, console: Terminal, *, each_testbed: bool = False) -> None:
    """Print the conclusion: a paragraph a testbed, or for many testbeds unless ``each_testbed`` how many can stand in."""
    concluded = conclusions(result)
    texts = [conclusion.sentence for conclusion in concluded] if each_testbed else [*lede(result)] if concluded else []
    is_one_each = len(texts) == len(concluded) and (each_testbed or len(concluded) <= MOST_SENTENCES)
    verdicts = [conclusion.verdict for conclusion in concluded] if is_one_each else []
    for at, text in enumerate(texts):
        verdict = verdicts[at] if verdicts else None
        console.words(f"{SYMBOLS[verdict]} {text}" if verdict else text, STYLES[verdict] if verdict else "bold")


def _next(console: Terminal, concluded: Sequence[Conclusion]) -> None:
    """Print what to do next, each advice once with the testbeds that it is for."""
    testbeds: dict[str, list[str]] = {}
    for conclusion in concluded:
        for text in conclusion.advice:
            testbeds.setdefault(text, []).append(conclusion.testbed)
    if not testbeds:
        return
    console.say("")
    console.words("Next", "bold")
    for text, names in testbeds.items():
        whose = "" if len(names) == len(concluded) else f"{', '.join(names)}: "
        console.words(f"{' ' * INDENT}- {whose}{text}")


def _lists(console: Terminal, testbed: str, lists: Sequence[Listing]) -> None:
    if not lists:
        return
    console.say("")
    console.words(testbed, "bold")
    for listing in lists:
        style = STYLES.get(Verdict(listing.mark), "") if listing.mark else ""
        console.words(f"{' ' * INDENT}{listing.title}", style)
        for text in listing.texts:
            console.words(f"{' ' * INDENT}- {text}")


def matrix_lines(of: Matrix, width: int) -> Iterator[Text]:
    """Yield the matrix, none of its lines wider than ``width`` where labels leave entries their room: as many testbeds side by
    side as fit."""
    if not of.rows:
        return
    has_cells = len({row.cell for row in of.rows}) > 1
    labels = [one_line(f"    {row.cell}" if has_cells else f"  {row.label}") for row in of.rows]
    room = min(MOST_LABEL, max(map(len, labels)))
    words = [_entry_text(entry) for row in of.rows for entry in row.entries]
    wide = max(LEAST_ENTRY, *(len(one_line(head)) for head in of.heads), *map(len, words))
    side_by_side = max(1, (width - room) // (wide + 2))
    for begin in range(0, len(of.heads), side_by_side):
        columns = range(begin, min(len(of.heads), begin + side_by_side))
        yield Text(f"{'':<{room}}" + "".join(f"  {one_line(of.heads[at]):<{wide}}" for at in columns).rstrip(), "dim")
        group = title = ""
        for row, label in zip(of.rows, labels, strict=True):
            if row.group != group:
                group, title = row.group, ""
                yield Text(group, "bold")
            if has_cells and row.label != title:
                title = row.label
                yield Text(f"  {one_line(title)}")
            if len(label) > room:  # whole, on a line of its own
                yield Text(label)
            line = Text(f"{label if len(label) <= room else '':<{room}}")
            for at in columns:
                entry = row.entries[at]
                line.append(f"  {_entry_text(entry):<{wide}}", STYLES[entry.verdict] if entry else "")
            line.rstrip()
            yield line
    yield Text(one_line(of.caption) + "  " + "  ".join(f"{SYMBOLS[verdict]} {verdict}" for verdict in Verdict), "dim")


def _entry_text(entry: Entry | None) -> str:
    return f"{SYMBOLS[entry.verdict]} {one_line(entry.word)}" if entry else ""


def _cautions(console: Terminal, result: Comparisons, shown: Sequence[Comparison], *, everything: bool) -> None:
    """Print the cautions by rank: the first few kinds, and how many more there are."""
    cautions = ranked(result, shown)
    if not cautions:
        return
    console.say("")
    console.words(f"Cautions: {summed(cautions)}", "bold")
    kinds = cautions if everything else cautions[:MOST_KINDS]
    for rank, group in groupby(kinds, key=lambda caution: caution.rank):
        console.words(RANKS[rank], RANK_STYLES[rank])
        for caution in group:
            listing = caution.listing(everything=everything)
            console.words(f"! {listing.title}")
            for line in listing.texts:
                console.words(f"    {line}")
            console.words(f"    -> {listing.ending}", "dim")
    if len(cautions) > len(kinds):
        console.words(f"{len(cautions) - len(kinds)} more cautions (--all)")


def _tables(console: Terminal, result: Comparisons, shown: Sequence[Comparison]) -> None:
    for layer, of_layer in groupby(shown, key=lambda comparison: comparison.layer):
        console.say("")
        console.words(LAYERS.get(layer, layer), "bold")
        for title, rows in by_metric(list(of_layer)):
            pooled = [pool for pool in result.pooled if (pool.metric, pool.host, pool.direction) == _place(rows[0])]
            _table(console, verdict_table(title, rows, pooled))
            if quantiles := quantile_table(rows):
                _table(console, quantiles)
    if spread := [comparison for comparison in shown if comparison.spread]:
        _table(console, spread_table(spread, f"Spread: how many times as much as {spread[0].reference} it varies"))


def _place(comparison: Comparison) -> tuple[str, str, str]:
    return comparison.metric, comparison.host, comparison.direction


def _table(console: Terminal, table: Table) -> None:
    console.say("")
    for line in tabular(table).as_text().splitlines():
        console.say(line)
    console.words(table.caption, "dim")


def print_why(result: Comparisons, console: Terminal, comparisons: Sequence[Comparison]) -> None:
    """Print the picture of all ratios, then what each verdict rests on."""
    for line in forest(comparisons, console.width):
        console.print(line, soft_wrap=True)
    for comparison in comparisons[:MOST_ROWS]:
        console.say("")
        where = f", {cell_title(comparison.cell)}" if comparison.cell else ""
        title = f"{metric_title(comparison.metric, comparison.host, comparison.direction)}{where}, {comparison.testbed}"
        console.words(f"{SYMBOLS[comparison.verdict]} {title}", STYLES[comparison.verdict])
        reasons = [*why(comparison)]
        wide = max(len(name) for name, _ in reasons)
        for name, text in reasons:
            console.words(f"    {name:<{wide}}  {text}")
    if len(comparisons) > MOST_ROWS:
        console.words(f"and {len(comparisons) - MOST_ROWS} more: --format csv has all, --metric NAME picks")
