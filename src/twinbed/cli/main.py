"""The command ``twinbed``. A command's module is imported when the command is used, so that ``--help`` is quick."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import TextIO

import click

import twinbed
from twinbed.cli.inputs import ResultsFolders
from twinbed.cli.lazy import Lazy, LazyGroup, of_analysis
from twinbed.contracts import exit_codes as codes
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.terminal import make_plain_where_needed, one_line, say, say_error, say_text

SECTIONS: Mapping[str, Mapping[str, Lazy]] = {
    "Begin": {
        "init": Lazy("twinbed.cli.init", "command", "Write a first study from a few choices."),
        "studies": Lazy("twinbed.cli.studies", "command", "List the studies that come with twinbed."),
        "describe": Lazy("twinbed.cli.describe", "command", "Explain every setting, metric and factor of a study."),
        "try": Lazy("twinbed.cli.trying", "command", "Run a workload once, and show where each metric is read."),
        "check": Lazy("twinbed.cli.check", "command", "Test what this machine can do, and name what is missing."),
        "plan": Lazy("twinbed.cli.plan", "command", "Show the runs, the time and the disk of a study."),
        "run": Lazy("twinbed.cli.run", "command", "Run a study, or continue it."),
    },
    "Understand": {
        "compare": of_analysis("compare"),
        "explain": of_analysis("explain"),
        "anatomy": of_analysis("anatomy"),
        "analyse": Lazy("twinbed.cli.analyse", "group", "Explain a metric by factors: variance, regression, capacity."),
        "advise": Lazy("twinbed.cli.advise", "command", "Print rules of thumb from results, with evidence.", has_page=True),
        "passport": of_analysis("passport"),
        "report": Lazy("twinbed.cli.report", "command", "Write results as one self-contained HTML page."),
    },
    "Predict": {
        "calibrate": of_analysis("calibrate"),
        "predict": Lazy("twinbed.analyses.calibrate.predict", "command", "Predict a testbed's metrics from a calibration."),
    },
    "Bring and share": {
        "import": Lazy("twinbed.cli.imports", "command", "Turn files measured elsewhere into results."),
        "merge": Lazy("twinbed.cli.merge", "command", "Put several results together as one study."),
        "export": Lazy("twinbed.cli.export", "command", "Write results as tables, LaTeX, figures, chains, flent files."),
        "archive": Lazy("twinbed.cli.archive", "command", "Pack results into one file for artifact evaluation."),
        "publish": Lazy("twinbed.cli.publish", "command", "Upload results to a bucket where others read them."),
        "published": Lazy("twinbed.cli.published", "group", "Replay, audit and compare the printed tables of papers."),
    },
    "Captures": {
        "flows": Lazy("twinbed.cli.flows", "command", "Print the statistics of every TCP connection, as tcptrace."),
        "connections": Lazy("twinbed.cli.connections", "command", "List the connections of captures, as Zeek's conn.log."),
        "match": Lazy("twinbed.cli.match", "command", "Match two captures of one path: loss, delay, splits, joins."),
        "chain": of_analysis("chain"),
    },
    "Care": {
        "setup": Lazy("twinbed.cli.setup", "command", "Install the system packages that testbeds need."),
        "image": Lazy("twinbed.cli.image", "image", "Build and list the root file system that every testbed runs."),
        "sweep": Lazy("twinbed.cli.sweep", "command", "Remove what a killed lab left behind."),
        "prune": Lazy("twinbed.cli.prune", "command", "Delete raw artifacts of results to save disk."),
        "test-plugin": Lazy("twinbed.cli.test_plugin", "command", "Check the plug-ins of an installed package."),
        "schema": Lazy("twinbed.cli.schema", "command", "Print a JSON Schema with which an editor checks studies."),
        "help": Lazy("twinbed.cli.help", "command", "Explain a command, as its --help."),
    },
}
"""Every command, under the title that ``twinbed --help`` lists it by."""
COMMANDS: Mapping[str, Lazy] = {name: lazy for members in SECTIONS.values() for name, lazy in members.items()}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    sections=SECTIONS,
    epilog=codes.TEXT,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "obj": ResultsFolders()},
)
@click.version_option(twinbed.__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """How faithful is a virtual testbed to the real one, for your workload?

    twinbed builds testbeds, runs the same workload on each in a designed experiment, and compares them.

    \b
    Examples:
      twinbed                   what to do next in this folder
      twinbed plan quickstart   what a study will run, and how long it takes
      twinbed run quickstart    run it; the same command again continues it
    """
    if context.invoked_subcommand is None:
        from twinbed.cli.next_step import next_step

        say(*next_step(Path()))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code. A command returns its exit code, or None for 0."""
    try:
        Path.cwd()
    except OSError:
        say_error("the working directory was deleted", "`cd` to a folder that exists")
        return codes.USAGE
    try:
        code = cli.main(args=list(arguments), prog_name="twinbed", standalone_mode=False)
        say_text("")  # flushes the output
    except TwinbedError as error:
        _explain(error)
        return error.exit_code
    except click.ClickException as error:
        with io.StringIO() as shown:
            error.show(file=shown)
            text = shown.getvalue()
        if isinstance(error, click.UsageError):  # with the user's own words
            text = text.replace(error.message, one_line(error.message))
        say_text(text, err=True)
        return codes.USAGE
    except SystemExit:  # click ends so only when nobody reads the output
        return codes.OUTPUT_GONE
    except OSError as error:
        if error.errno not in _CIRCUMSTANCES:
            raise
        where = error.filename or "a file"
        _nowhere(1)
        if isinstance(error, BrokenPipeError):
            return codes.OUTPUT_GONE
        say_error(f"{os.fsdecode(where)}: {error.strerror}", _CIRCUMSTANCES[error.errno])
        return codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        say_error("interrupted", before="")
        return codes.INTERRUPTED
    return code if isinstance(code, int) else codes.DONE


_FULL = "free space there; `df -h` shows which file systems are full"
_FORBIDDEN = "choose another folder, or run twinbed as a user with access"
_CIRCUMSTANCES = {
    errno.EPIPE: "",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "`ulimit -f` limits the size of files; `ulimit -f unlimited` lifts it",
    errno.EMFILE: "`ulimit -n` limits open files; raise it",
    errno.ENFILE: "this machine has as many files open as it can; end other programs",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EISDIR: "a file is expected here; move the folder away",
    errno.ENOTDIR: "a folder is expected here; move the file away",
    errno.ENAMETOOLONG: "shorten the name",
    errno.ELOOP: "symbolic links form a circle, or twinbed refuses the link; give the real path",
}
"""Errors of the system that are no bug, each with its remedy."""


def _explain(error: TwinbedError) -> None:
    from twinbed.study.document import StudyError

    if isinstance(error, StudyError):
        count = len(error.problems)
        advice = f"{amount(count, 'problem')}; `twinbed describe` explains every setting of a study"
        say(*map(str, error.problems), advice, err=True)
        return
    say_error(error.message, error.advice)


class _WithoutPandas:
    """Hides pandas from pyarrow, which imports it for every array of Python values: half a second that no command needs."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out of commands", name=name)


def main() -> None:
    _ensure_streams()
    make_plain_where_needed()
    sys.excepthook = _say_bug
    warnings.showwarning = _say_warning
    sys.meta_path.insert(0, _WithoutPandas())
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _as_interrupt)
    sys.exit(run(sys.argv[1:]))


def _say_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write a traceback through the one writer: it may hold names and texts of others."""
    say_text("".join(traceback.format_exception(kind, error, trace)), err=True)


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say_text(warnings.formatwarning(message, category, filename, lineno, line), err=True)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _ensure_streams() -> None:
    """Open closed standard streams (`>&-`) on /dev/null, so that the next opened file does not take their place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _nowhere(descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r"))


def _nowhere(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


if __name__ == "__main__":
    main()
