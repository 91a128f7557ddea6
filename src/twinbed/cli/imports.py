"""`twinbed import`: turn files measured elsewhere into results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import click

from twinbed.contracts import exit_codes as codes
from twinbed.model.json import Document
from twinbed.terminal import say_progress

if TYPE_CHECKING:
    from twinbed.imports.layout.manifest import Manifest
    from twinbed.imports.layout.run_key import Assigner
    from twinbed.imports.study import ImportSettings
    from twinbed.imports.survey import Request

_FILE = click.Path(path_type=Path, dir_okay=False)
Quantity = TypeVar("Quantity")


class Options(TypedDict):
    """Holds the options of an import except folders and output formats."""

    patterns: tuple[str, ...]
    regexes: tuple[str, ...]
    manifest: Path | None
    layout: str | None
    testbed: str
    testbeds: str
    reference: str | None
    passport: Path | None
    link_rate: str | None
    mtu: int
    margin: str
    confidence: str
    factors: tuple[str, ...]
    number_replicates: bool
    link: bool
    most_files: int


@click.command(name="import")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="RESULTS", type=click.Path(path_type=Path), help="Results folder to make or add to.")
@click.option(
    "--pattern", "patterns", multiple=True, help="Pattern of paths; may be repeated, and the first that matches is used."
)
@click.option("--regex", "regexes", multiple=True, help="Regular expression with named groups, for paths below DIR.")
@click.option("--manifest", type=_FILE, help="CSV with a row for each file, or YAML with patterns, formats and metrics.")
@click.option("--layout", type=click.Choice(["que"]), help="Folder layout of a known test harness.")
@click.option("--testbed", metavar="NAME", default="", help="Testbed of all files, if paths do not name it.")
@click.option("--testbeds", metavar="NAMES", default="", help="Order of testbeds, separated by commas.")
@click.option("--reference", metavar="NAME", help="The testbed to compare with. Default: the one named physical or host.")
@click.option("--passport", type=_FILE, help="YAML that describes each testbed: `testbed: {fact: value}`.")
@click.option("--link-rate", metavar="RATE", help="Rate of the links, such as 1gbit; measured rates above it get a caution.")
@click.option("--mtu", type=click.IntRange(576, 9000), default=1500, show_default=True, help="MTU of the links in bytes.")
@click.option(
    "--margin", metavar="SHARE", default="10%", show_default=True, help="Largest difference that counts as equivalent."
)
@click.option("--confidence", metavar="SHARE", default="95%", show_default=True, help="Level of confidence intervals.")
@click.option("--number-replicates", is_flag=True, help="Count several files of one cell as replicates, in path order.")
@click.option(
    "--factor",
    "factors",
    metavar="FACT",
    multiple=True,
    help="Make a fact that files state a factor: protocol, reverse, streams, ... Facts that differ within a file are factors"
    " anyway.",
)
@click.option("--link", is_flag=True, help="Make hard links instead of copies, for large captures.")
@click.option(
    "--most-files",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="Largest number of files and folders in DIR.",
)
@click.option("--dry-run", is_flag=True, help="Print what each file would become; write nothing.")
@click.option("--format", "style", type=click.Choice(["text", "json", "csv"]), default="text", help="Format to print.")
def command(folder: Path, output: Path | None, dry_run: bool, style: str, **options: Unpack[Options]) -> int:
    """Turn the files in DIR into results that compare, analyse and report read.

    \b
    Examples:
      twinbed import iperf/                       propose a pattern
      twinbed import iperf/ -o results/mine --pattern '{testbed}_{streams:int}_{replicate:int}.json'
      twinbed import captures/ -o results/mine --manifest files.csv --dry-run

    The format is detected from the content. Testbed, levels and replicate come from the path (--pattern) or a manifest.
    In a pattern, {name} is a word, {name:int} and {name:float} are numbers, and {_} is ignored. Every name is a factor,
    except testbed, replicate, host, snapshot and format. The same command again adds new files.

    Exit code 1: some files were refused or read in part. docs/import.md has formats and examples.
    """
    from twinbed import registry
    from twinbed.cli.import_tables import as_data, print_csv, print_text
    from twinbed.cli.on import executor
    from twinbed.imports.build import before, build
    from twinbed.imports.layout.run_key import ImportRefused
    from twinbed.imports.survey import survey
    from twinbed.render.rows import print_json

    study, records = before(output) if output is not None else ({}, [])
    request, settings = _asked(folder, output, options, study)
    if output is None and not dry_run and request.assigner is not None:
        raise ImportRefused("-o RESULTS is missing", advice="name the results folder, or try it first with --dry-run")
    request = _with(request, {record.id: record.replicate for record in records})
    surveyed = survey(request, registry.PLUGINS.formats, _progress("reading files"), executor())
    data = as_data(surveyed, settings)
    written = None
    if not dry_run:
        if surveyed.plan.conflicts:
            raise _conflicts(surveyed.plan.conflicts)
        assert output is not None
        _known_testbeds(settings, surveyed.plan.testbeds(), study)
        kept: Document = {"files": data["files"], "formats": data["formats"], "not_read": data["not_read"]}
        used = dict.fromkeys(candidate.scanned.format for run in surveyed.plan.runs for candidate, _ in run.files)
        settings = replace(settings, plugins=registry.packages_of_formats(used))
        written = build(
            folder, output, surveyed.plan.runs, settings, kept, link=options["link"], on_progress=_progress("writing runs")
        )
        data["runs_added"], data["runs_there"], data["runs_changed"] = written.added, written.present, list(written.conflicts)
        data["runs_of_earlier_imports"] = written.others
    if style == "json":
        print_json(data)
    elif style == "csv":
        print_csv(surveyed)
    else:
        print_text(surveyed, data, output, dry_run)
    bad = data["files"]["refused"] + data["files"]["partly read"] + len(surveyed.plan.conflicts)
    return codes.SOME_FAILED if bad or (written is not None and written.conflicts) else codes.DONE


def _asked(folder: Path, output: Path | None, options: Options, study: Document) -> tuple[Request, ImportSettings]:
    """Return the request of the options and of the files that they name. Raises ImportRefused."""
    from twinbed.imports.layout.manifest import LinkFacts, read_passport
    from twinbed.imports.layout.run_key import ImportRefused
    from twinbed.imports.study import ImportSettings
    from twinbed.imports.survey import Request
    from twinbed.model.units import parse_rate, parse_share

    manifest = options["manifest"]
    given = [bool(options["patterns"] or options["regexes"]), manifest is not None, options["layout"] is not None]
    if sum(given) > 1:
        raise ImportRefused("--pattern or --regex, --manifest and --layout exclude each other", advice="give one of them")
    source = _text(manifest, "--manifest") if manifest is not None else ""
    assigner, limited, yaml = _assigner(options, source)
    described = dict(yaml.testbeds) if yaml is not None else {}
    facts = {name: testbed for name, testbed in described.items() if testbed is not None}
    if options["passport"] is not None:
        passport = read_passport(_text(options["passport"], "--passport"), str(options["passport"]))
        for name, read in passport.items():
            facts[name] = facts[name].model_copy(update={"facts": read.facts}) if name in facts else read
    rate = _quantity("--link-rate", options["link_rate"], parse_rate) if options["link_rate"] is not None else None
    margin = _quantity("--margin", options["margin"], parse_share)
    confidence = _quantity("--confidence", options["confidence"], parse_share)
    if rate == 0:
        raise ImportRefused("--link-rate must be above 0", advice="leave it out if you do not know it")
    if not 0 < margin < 1 or not 0.5 <= confidence < 1:
        raise ImportRefused("--margin must be between 0 and 100 %, --confidence from 50 % to below 100 %")
    names = [name.strip() for name in options["testbeds"].split(",") if name.strip()] or list(described)
    settings = ImportSettings(
        name=str(study.get("study") or (output or folder).absolute().name),
        reference=options["reference"] or (yaml.reference if yaml is not None else None),
        testbeds=names,
        margin=margin,
        confidence=confidence,
        link=LinkFacts(rate=rate, mtu=options["mtu"]),
        described=facts,
        command=_command(folder, output, options),
        source=source,
    )
    without = [path for path in (output, manifest, options["passport"]) if path is not None]
    return (
        Request(
            folder,
            assigner,
            limited,
            options["number_replicates"],
            options["most_files"],
            without,
            factors=options["factors"],
        ),
        settings,
    )


def _quantity(option: str, text: str, parsed: Callable[[object], Quantity]) -> Quantity:
    from twinbed.imports.layout.run_key import ImportRefused
    from twinbed.model.units import QuantityError

    try:
        return parsed(text)
    except QuantityError as error:
        raise ImportRefused(f"{option}: {error}") from error


def _assigner(options: Options, manifest: str) -> tuple[Callable[[Sequence[str]], Assigner] | None, bool, Manifest | None]:
    """Return what assigns files to runs, whether it needs a time limit, and the YAML manifest if there is one."""
    from twinbed.imports.layout.manifest import read_csv, read_yaml
    from twinbed.imports.layout.pattern import compile_pattern, compile_regex
    from twinbed.imports.layout.run_key import FileKey, FirstOf, ImportRefused
    from twinbed.imports.layout.sandia_layout import SandiaLayout

    path = options["manifest"]
    if path is not None and path.suffix.lower() in (".yaml", ".yml"):
        if options["testbed"]:
            raise ImportRefused(
                "--testbed: a YAML manifest names testbeds itself", advice="give each entry of 'files' its testbed"
            )
        yaml = read_yaml(manifest, str(path))
        made = yaml.assigner()
        return (lambda _paths: made), yaml.expressions, yaml
    if path is not None:
        listed = read_csv(manifest, str(path), options["testbed"])
        return (lambda _paths: listed), False, None
    if options["layout"] is not None:
        return SandiaLayout.of, False, None
    fixed = FileKey(options["testbed"], {})
    patterns = [compile_pattern(text, fixed) for text in options["patterns"]]
    patterns += [compile_regex(text, fixed) for text in options["regexes"]]
    if not patterns:
        return None, False, None
    return (lambda _paths: FirstOf(patterns)), bool(options["regexes"]), None


def _text(path: Path, option: str) -> str:
    from twinbed.imports.layout.manifest import MOST_BYTES
    from twinbed.imports.layout.run_key import ImportRefused
    from twinbed.imports.scan import opened

    try:
        with opened(str(path)) as (descriptor, status):
            if status.st_size > MOST_BYTES:
                raise ImportRefused(f"{option}: {path} is larger than {MOST_BYTES // 2**20} MiB")
            with open(descriptor, encoding="utf-8", closefd=False) as file:
                return file.read()
    except OSError as error:
        raise ImportRefused(f"{option}: {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{option}: {path} is not UTF-8: {error.reason} at byte {error.start}") from None


def _command(folder: Path, output: Path | None, options: Options) -> str:
    """Return the command line, without options at their default."""
    words = ["twinbed", "import", str(folder), *([] if output is None else ["-o", str(output)])]
    defaults = {param.name: param.default for param in command.params}
    flags = {param.name: param.opts[-1] for param in command.params}
    for name, value in options.items():
        if value is True:
            words.append(flags[name])
        elif isinstance(value, tuple):
            words += [word for item in value for word in (flags[name], item)]
        elif value is not None and value is not False and value != defaults[name]:
            words += [flags[name], str(value)]
    return " ".join(shlex.quote(word) for word in words)


def _with(request: Request, have: dict[str, int]) -> Request:
    from dataclasses import replace

    return replace(request, have=have)


def _known_testbeds(settings: ImportSettings, testbeds: Sequence[str], study: Document) -> None:
    """Refuse testbeds that no file has: their names are misspelt. Raises ImportRefused."""
    from twinbed.imports.layout.run_key import ImportRefused
    from twinbed.model.members import object_at
    from twinbed.model.near import did_you_mean, nearest
    from twinbed.study.document import listed

    known = list(dict.fromkeys([*testbeds, *object_at(study, "testbeds")]))
    for option, names in (
        ("--reference", [settings.reference]),
        ("--testbeds", settings.testbeds),
        ("--passport", settings.described),
    ):
        for name in names:
            if name is not None and name not in known:
                near = nearest(name, known)
                hint = f"; {did_you_mean(near)}" if near else ""
                raise ImportRefused(
                    f"{option}: no file has the testbed {name!r}{hint}", advice=f"testbeds are: {listed(known)}"
                )


def _conflicts(conflicts: Sequence[str]) -> Exception:
    from twinbed.imports.layout.names import shown
    from twinbed.imports.layout.run_key import ImportRefused

    texts = "\n".join(f"  {shown(conflict)}" for conflict in conflicts[:10])
    more = f"\n  and {len(conflicts) - 10} more" if len(conflicts) > 10 else ""
    return ImportRefused(
        f"{len(conflicts)} runs match several files or measurements:\n{texts}{more}",
        advice="put the part of the path that differs into the pattern ({snapshot} for before and after a run), write "
        "`rows: mean` if table rows are samples of one run, or count files as replicates: --number-replicates",
    )


def _progress(what: str) -> Callable[[int, int], None]:
    def on_progress(done: int, total: int) -> None:
        say_progress(what, done, total)

    return on_progress
