"""What an analysis is: one interface for the command line, the report, Python and export.

An analysis is a folder ``analyses/<name>/``: ``analysis.py`` has the object ``analysis`` (an ``Analysis``), ``result.py`` the
type of its result, ``command.py`` its command, other files its tables, figures and pages.  ``analyses/__init__.py`` lists the
folders.  Siblings never import each other; what several share is in ``observations``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from markupsafe import Markup
    from pydantic import BaseModel

    from twinbed.executor import Executor
    from twinbed.model.caution import Caution
    from twinbed.model.tables import Tables
    from twinbed.render.tabular import Tabular

Row = Mapping[str, Any]
"""Column -> a value of JSON: a number, a text, None for missing, or lists and mappings of those. Base units."""
ParamsT = TypeVar("ParamsT", bound="BaseModel")
ResultT = TypeVar("ResultT", bound="Reported")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a section says, for Markdown, LaTeX and notebooks: a sentence, and a table where there is one."""

    metric: str
    label: str
    """For references to it in LaTeX."""
    title: str
    sentence: str
    table: Tabular | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """What the report of a study, or a notebook, shows of an analysis."""

    key: str
    """The anchor of the section in the page."""
    title: str
    """What headings and the page's navigation call it."""
    body: Callable[[], Markup]
    """Makes what is below the heading and the lede as HTML. It may hold sections of its own."""
    parts: tuple[Part, ...] = ()
    """The same for Markdown, LaTeX and notebooks; nothing where only the page shows it."""
    lede: str = ""
    """What comes first, in a sentence or two."""
    notes: tuple[str, ...] = ()
    """What comes last in a report, such as cautions. A page of its own has all cautions, and what was left out."""
    kicker: str = ""
    """What a page of its own has above its title, in a few words."""
    layer: str = ""
    """The layer of metrics that it belongs into; empty for a section of its own."""


@dataclass(frozen=True, slots=True)
class File:
    """A file for other programs."""

    name: str
    """With its suffix; unique among the files of one analysis."""
    text: str


class Reported(Protocol):
    """What every result has beside its own."""

    @property
    def cautions(self) -> Sequence[Caution]:
        """What the runs carried, and what speaks against the result."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """Reason -> number of runs, or of rows of a file, that are not in it."""
        ...


class Analysis(ABC, Generic[ParamsT, ResultT]):
    """Tables in, a result out. ``ResultT`` is a frozen dataclass, ``ParamsT`` a frozen pydantic model."""

    name: str
    """That of its folder."""
    params: type[ParamsT]
    """The settings: their names, defaults and descriptions."""
    summary: str
    """What it answers, in a few words."""

    @abstractmethod
    def run(self, source: Tables, params: ParamsT | None = None) -> ResultT:
        """The result for the tables of a study; None takes the defaults. Some analyses also take a Frame of observations, which
        may be of a file. Raises TwinbedError where nothing can be said, and says why."""

    def run_on(self, executor: Executor, source: Tables, params: ParamsT | None = None) -> ResultT:
        """The same result as that of ``run``. ``executor`` carries out what takes long, where the analysis has such tasks."""
        return self.run(source, params)

    def tables(self, result: ResultT) -> Mapping[str, Sequence[Row]]:
        """Title -> rows that have the same columns, for CSV, JSON and Python. Base units, None for missing."""
        return {}

    @abstractmethod
    def section(self, result: ResultT) -> Section:
        """What a notebook shows of a result, and a page of its own (``render/pages``)."""

    def sections(self, source: Tables) -> Sequence[Section]:
        """What a report of these tables shows, by default settings; nothing where there is nothing to say."""
        return ()

    def files(self, source: Tables) -> Iterator[File]:
        """Files for other programs, which ``twinbed export`` writes."""
        return iter(())


@dataclass(frozen=True, slots=True)
class TwoResults:
    """Two results as one: runs of one are at another level of the factor ``by`` than those of the other."""

    tables: Tables
    by: str
    names: tuple[str, str]
    """The levels, in the order in which the results were given."""
    left_out: Sequence[str]
    """What only one of both has, or where they do not agree; a sentence each."""


class Inputs(Protocol):
    """What the command line hands to an analysis' command (``click.pass_obj``): it opens results."""

    @property
    def executor(self) -> Executor:
        """The one that --on names."""
        ...

    def is_results(self, source: Path) -> bool:
        """Whether it is a results folder or an archive of one, rather than a file of rows."""
        ...

    def tables(self, results: Path, reference: str | None = None, *, all_settings: bool = False) -> Tables:
        """The tables of results, brought up to date. ``reference`` is the testbed that others are held against; None takes the
        study's. Runs that the study as it stands does not ask for are left out, but with ``all_settings``. Raises TwinbedError
        where ``results`` are none, or have no such testbed."""
        ...

    def side_by_side(self, one: Path, other: Path, *, all_settings: bool = False) -> TwoResults:
        """The testbeds and cells that two results have in common. Raises TwinbedError where there are none."""
        ...
