"""What an analysis is: one interface for the command line, the report, Python and export.

An analysis is a folder ``analyses/<name>/``: ``method.py`` computes and has the object ``analysis``,
``result.py`` has the type of its result, ``words.py`` says it as a section of sentences and tables, ``draw.py`` makes its
figures.  ``analyses/__init__.py`` lists the folders.  Siblings never import each other; what several share is in
``observations``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from twinbed.contracts import exit_codes
from twinbed.model.error import TwinbedError
from twinbed.model.units import Share
from twinbed.show.section import Section
from twinbed.show.table import Row
from twinbed.show.words import caution_sentences, left_out

if TYPE_CHECKING:
    from twinbed.executor import Executor
    from twinbed.model.caution import Caution
    from twinbed.model.json import Json
    from twinbed.model.tables import Outline, Tables

ParamsT = TypeVar("ParamsT", bound="BaseModel")
PlacedT = TypeVar("PlacedT", bound="Placed")
ResultT = TypeVar("ResultT", bound="Reported")


@dataclass(frozen=True, slots=True)
class File:
    """A file for other programs."""

    name: str
    """With its suffix; unique among the files of one analysis."""
    text: str


class NoSettings(BaseModel):
    """The params of an analysis without any, and the base class of others."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What the option of a yes or no is called where it says no; noted at the setting."""

    name: str


class Placed(NoSettings):
    """The params of an analysis of one response: where the response was measured."""

    host: str | None = Field(default=None, description="the host where RESULTS measured it, if several did")
    direction: str | None = Field(
        default=None, description="which way, if RESULTS measured both: client_to_server or server_to_client"
    )


class Judged(NoSettings):
    """The params of an analysis that compares testbeds; null takes what the study file says."""

    margin: Share | None = Field(
        default=None, gt=0, description="how far apart still counts as equivalent, such as 10%. Default: the study's"
    )
    confidence: Share | None = Field(
        default=None, gt=0.5, lt=1, description="how sure verdicts and intervals are, such as 95%. Default: the study's"
    )

    def judged_by(self, outline: Outline) -> tuple[float, float]:
        """Return the margin and the confidence: the study's where a setting is null."""
        margin = self.margin if self.margin is not None else outline.margin
        return margin, self.confidence if self.confidence is not None else outline.confidence


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
    """Tables in, a result out. ``ResultT`` is a frozen dataclass, ``ParamsT`` a frozen pydantic model.

    Its command is made of it: the docstring of its class is the help, its params are the options."""

    name: str
    """That of its folder."""
    params: type[ParamsT]
    """The settings: their names, defaults and descriptions."""
    epilog: str = ""
    """The last sentence of its help: which page of the manual says more."""
    table_names: tuple[str, ...] = ()
    """The keys of its tables; CSV is of the first where none is named."""
    is_against_a_reference: bool = False
    """Whether its command takes --reference."""
    more: str = ""
    """What --all shows beyond the rest, for its help; empty where a terminal shows everything."""
    is_in_reports: bool = False
    """Whether the report of a study has it, by default settings."""

    @abstractmethod
    def run(self, source: Tables, params: ParamsT | None = None) -> ResultT:
        """Return the result for the tables of a study; None takes the defaults. Some analyses also take a Frame of
        observations, which may be of a file. Raises TwinbedError where nothing can be said, and says why."""

    def run_on(self, executor: Executor, source: Tables, params: ParamsT | None = None) -> ResultT:
        """Return the same as ``run``. ``executor`` carries out what takes long, where the analysis has such tasks."""
        return self.run(source, params)

    @abstractmethod
    def section(self, result: ResultT) -> Section:
        """Return what there is to say of a result. Every form of it follows from that."""

    def tables(self, result: ResultT) -> Mapping[str, Sequence[Row]]:
        """Return title -> rows that have the same columns, for CSV, JSON and Python. Base units, None for missing."""
        tables = self.section(result).tables()
        return {each.key: each.rows() for each in tables if each.is_for_programs}

    def about(self, result: ResultT) -> Mapping[str, Json]:
        """Return what JSON says of a result beside its tables."""
        return {}

    def says_something(self, result: ResultT) -> bool:
        """Return whether a report of a study should have it."""
        return True

    def exit_code(self, result: ResultT) -> int:
        """Return that of its command."""
        return exit_codes.DONE

    def sections(self, source: Tables) -> Sequence[Section]:
        """Return what a report of these tables shows, by default settings, with the result's cautions and what it leaves out;
        nothing where there is nothing to say."""
        if not self.is_in_reports:
            return ()
        try:
            result = self.run(source)
        except TwinbedError:  # such as no packets in these results: nothing to say
            return ()
        if not self.says_something(result):
            return ()
        section = self.section(result)
        weighs = (*section.notes, *caution_sentences(result.cautions), *left_out(result.left_out))
        return (replace(section, notes=tuple(dict.fromkeys(weighs))),)

    def files(self, source: Tables) -> Iterator[File]:
        """Files for other programs, which ``twinbed export`` writes."""
        return iter(())


class RowsAnalysis(Analysis[PlacedT, ResultT]):
    """An analysis of results, or of a file that has a row an observation: its command takes ``RESULTS | FILE``. ``run`` takes a
    Frame of observations (``observations/frame``) too, which is what a file gives."""

    @abstractmethod
    def columns(self, params: PlacedT) -> tuple[str | None, Sequence[str] | None]:
        """Return which columns it reads of a file: the response, and those that may explain it; None takes all others. Rows
        without a value in one of them are left out. Raises TwinbedError where the params do not name what a file needs."""


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
