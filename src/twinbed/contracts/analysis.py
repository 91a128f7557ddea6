"""The contract of an analysis: one interface for the command line, the report, Python and export.

An analysis is a folder ``analyses/<name>/``. Its ``method.py`` computes and has the object ``analysis``. Its ``result.py`` has
the type of the result, ``words.py`` turns the result into a section of sentences and tables, and ``draw.py`` makes figures.
``analyses/__init__.py`` lists the folders. Siblings never import each other; shared code is in ``observations``.
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
    """The name of a flag's option for no; noted at the setting."""

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
    """The fields that every result has."""

    @property
    def cautions(self) -> Sequence[Caution]:
        """Return the cautions of the runs and of the result."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return the number of runs, or of rows of a file, that are not in the result, by reason."""
        ...


class Analysis(ABC, Generic[ParamsT, ResultT]):
    """Tables in, a result out. ``ResultT`` is a frozen dataclass, ``ParamsT`` a frozen pydantic model.

    Its command derives from it: the docstring of its class is the help, its params are the options."""

    name: str
    """The name of its folder."""
    params: type[ParamsT]
    """The settings: their names, defaults and descriptions."""
    epilog: str = ""
    """The last sentence of its help: the page of the manual with more."""
    table_names: tuple[str, ...] = ()
    """The keys of its tables; CSV has the first by default."""
    is_against_a_reference: bool = False
    """Its command takes --reference."""
    more: str = ""
    """The part that only --all shows, for its help; empty if a terminal shows everything."""
    is_in_reports: bool = False
    """The report of a study has it, with default settings."""

    @abstractmethod
    def run(self, source: Tables, params: ParamsT | None = None) -> ResultT:
        """Return the result for the tables of a study; None takes the defaults. Some analyses also take a Frame of
        observations, such as one from a file. Raises TwinbedError with the reason if there is no result."""

    def run_on(self, executor: Executor, source: Tables, params: ParamsT | None = None) -> ResultT:
        """Return the same as ``run``. ``executor`` carries out long tasks if the analysis has any."""
        return self.run(source, params)

    @abstractmethod
    def section(self, result: ResultT) -> Section:
        """Return a result as a section, from which every form follows."""

    def tables(self, result: ResultT) -> Mapping[str, Sequence[Row]]:
        """Return rows by title, with the same columns in a table, for CSV, JSON and Python. Base units, None for missing."""
        tables = self.section(result).tables()
        return {table.key: table.rows() for table in tables if table.is_for_programs}

    def facts(self, result: ResultT) -> Mapping[str, Json]:
        """Return the fields of a result's JSON in addition to its tables."""
        return {}

    def says_something(self, result: ResultT) -> bool:
        """Return whether a report of a study should have it."""
        return True

    def exit_code(self, result: ResultT) -> int:
        """Return the exit code of its command."""
        return exit_codes.DONE

    def sections(self, source: Tables) -> Sequence[Section]:
        """Return the sections of a report of these tables, with default settings, the result's cautions and the runs left out;
        none if there is no result."""
        if not self.is_in_reports:
            return ()
        try:
            result = self.run(source)
        except TwinbedError:  # such as no packets in these results
            return ()
        if not self.says_something(result):
            return ()
        section = self.section(result)
        weighs = (*section.notes, *caution_sentences(result.cautions), *left_out(result.left_out))
        return (replace(section, notes=tuple(dict.fromkeys(weighs))),)

    def files(self, source: Tables) -> Iterator[File]:
        """Return files for other programs, which ``twinbed export`` writes."""
        return iter(())


class RowsAnalysis(Analysis[PlacedT, ResultT]):
    """An analysis of results, or of a file with one row per observation: its command takes ``RESULTS | FILE``. ``run`` also
    takes a Frame of observations (``observations/frame``), which a file gives."""

    @abstractmethod
    def columns(self, params: PlacedT) -> tuple[str | None, Sequence[str] | None]:
        """Return the columns that it reads of a file: the response, and those that may explain it (None: all others).

        Rows without a value in one of them are left out. Raises TwinbedError if the params lack a column that a file needs."""


@dataclass(frozen=True, slots=True)
class TwoResults:
    """Two results as one: their runs are at different levels of the factor ``by``."""

    tables: Tables
    by: str
    names: tuple[str, str]
    """The levels, in the order in which the results were given."""
    left_out: Sequence[str]
    """Parts that only one has, or in which they differ; one sentence each."""


class Inputs(Protocol):
    """Opens results for an analysis' command, which gets it from the command line (``click.pass_obj``)."""

    @property
    def executor(self) -> Executor:
        """Return the executor that --on names."""
        ...

    def is_results(self, source: Path) -> bool:
        """Return whether a path is a results folder or its archive, rather than a file of rows."""
        ...

    def tables(self, results: Path, reference: str | None = None, *, all_settings: bool = False) -> Tables:
        """Return the tables of results, brought up to date.

        ``reference``: the testbed that others are compared with; None: the study's. Runs outside the present study are left out
        unless ``all_settings``. Raises TwinbedError if ``results`` are none, or lack that testbed."""
        ...

    def side_by_side(self, one: Path, other: Path, *, all_settings: bool = False) -> TwoResults:
        """Return the testbeds and cells that two results share. Raises TwinbedError if they share none."""
        ...
