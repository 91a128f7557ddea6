"""The command ``twinbed``.  A command's module is imported only when the command is used, so that ``--help`` is quick."""

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
from twinbed.model.error import TwinbedError
from twinbed.terminal import make_plain_where_needed, one_line, say, say_error, say_text

COMMANDS: Mapping[str, Lazy] = {
    "init": Lazy("twinbed.cli.init", "command", "Write a first study from a few choices."),
    "describe": Lazy("twinbed.cli.describe", "command", "What a study file may say: every setting, metric and factor."),
    "check": Lazy("twinbed.cli.check", "command", "What this machine can do, what is missing, how to get it."),
    "schema": Lazy("twinbed.cli.schema", "command", "What an editor needs to complete and check study files."),
    "plan": Lazy("twinbed.cli.plan", "command", "The cells, order, time and disk of a study; nothing is run."),
    "run": Lazy("twinbed.cli.run", "command", "Run a study, or go on with it."),
    "import": Lazy("twinbed.cli.imports", "command", "Turn files that were measured elsewhere into a study."),
    "compare": of_analysis("compare"),
    "advise": Lazy("twinbed.cli.advise", "command", "Rules of thumb from results, with their evidence.", has_page=True),
    "anatomy": of_analysis("anatomy"),
    "explain": of_analysis("explain"),
    "calibrate": of_analysis("calibrate"),
    "predict": Lazy("twinbed.analyses.calibrate.predict", "command", "What a calibration says of a place, or of new results."),
    "analyse": Lazy("twinbed.cli.analyse", "group", "What explains a response: analysis of variance, regression."),
    "merge": Lazy("twinbed.cli.merge", "command", "Several results as one study, testbeds side by side."),
    "report": Lazy("twinbed.cli.report", "command", "One self-contained HTML page of results."),
    "export": Lazy("twinbed.cli.export", "command", "Results as tables, LaTeX, figures, chains, flent's files."),
    "archive": Lazy("twinbed.cli.archive", "command", "Results as one file for artifact evaluation."),
    "publish": Lazy("twinbed.cli.publish", "command", "Results into a bucket, where others read them."),
    "prune": Lazy("twinbed.cli.prune", "command", "Keep less of results, on purpose."),
    "passport": of_analysis("passport"),
    "flows": Lazy("twinbed.cli.flows", "command", "tcptrace's statistics of every TCP connection of captures."),
    "connections": Lazy("twinbed.cli.connections", "command", "The connections of captures, as in Zeek's conn.log."),
    "match": Lazy("twinbed.cli.match", "command", "Two captures of one path: loss, delay, splits, joins."),
    "chain": of_analysis("chain"),
    "published": Lazy("twinbed.cli.published", "group", "The printed tables of the papers: replayed, audited, compared."),
    "image": Lazy("twinbed.cli.image", "image", "The root file system and guest kernel that every testbed runs."),
    "setup": Lazy("twinbed.cli.setup", "command", "The system packages that testbeds need and this machine lacks."),
    "studies": Lazy("twinbed.cli.studies", "command", "The studies that come with twinbed."),
    "sweep": Lazy("twinbed.cli.sweep", "command", "Remove what a dead lab left behind, by its id."),
    "help": Lazy("twinbed.cli.help", "command", "What a command does, as its --help."),
}


@click.command(
    cls=LazyGroup,
    lazy=COMMANDS,
    epilog=codes.TEXT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "obj": ResultsFolders()},
)
@click.version_option(twinbed.__version__, "-V", "--version", message="%(prog)s %(version)s")
def cli() -> None:
    """How faithful is a virtual testbed to the real one, for your workload?

    twinbed builds testbeds, runs the same workload on each in a designed experiment, and compares them.

    \b
    Begin with:
      twinbed check             is this machine fit for it?
      twinbed studies           the studies that come with it
      twinbed plan quickstart   what would be run, and how long it takes
      twinbed run quickstart    run it; the same command again goes on
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. A command returns its exit code, or None for 0."""
    try:
        Path.cwd()
    except OSError:
        say_error("the working directory is gone", "`cd` to a folder that is there")
        return codes.USAGE
    try:
        code = cli.main(args=list(arguments), prog_name="twinbed", standalone_mode=False)
        say_text("")  # what is still to be written goes out
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
    except SystemExit:  # click ends so, and only so, where nobody reads the output
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
_CIRCUMSTANCES = {
    errno.EPIPE: "",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "`ulimit -f` limits the size of files; `ulimit -f unlimited` lifts it",
    errno.EMFILE: "`ulimit -n` limits open files; raise it",
    errno.ENFILE: "this machine has as many files open as it can",
    errno.EROFS: "its file system is read-only; name another place",
    errno.EACCES: "you may not; name another place, or run it as a user who may",
    errno.EPERM: "you may not; name another place, or run it as a user who may",
    errno.EISDIR: "a file is expected; move the folder away",
    errno.ENOTDIR: "a folder is expected; move the file away",
    errno.ENAMETOOLONG: "shorten the name",
    errno.ELOOP: "links lead in a circle, or a link is where none may be",
}
"""Errors of the system that are no bug -> what would be right."""


def _explain(error: TwinbedError) -> None:
    from twinbed.study.document import StudyError

    if isinstance(error, StudyError):
        count = len(error.problems)
        advice = f"{count} problem{'s' if count > 1 else ''}; `twinbed describe` tells what a study may say"
        say(*map(str, error.problems), advice, err=True)
        return
    say_error(error.message, error.advice)


class _WithoutPandas:
    """pyarrow imports pandas, if it is there, whenever it makes an array of Python's values: half a second of every command, of
    which none needs it."""

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
    """A traceback holds names and texts of others too."""
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
    """Standard streams that were closed (`>&-`) go nowhere. Otherwise the next file that is opened would be in their place."""
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
