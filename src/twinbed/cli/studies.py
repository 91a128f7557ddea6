"""``twinbed studies``: list the studies that come with twinbed."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.model.error import TwinbedError
from twinbed.render.rows import STYLES, print_table
from twinbed.terminal import say_text


@click.command("studies")
@click.argument("name", required=False)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Copy study NAME to FILE, and its own files."
)
@click.option("--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="Format to print.")
def command(name: str | None, output: Path | None, style: str) -> None:
    """List the studies that come with twinbed, or print study NAME.

    \b
    Examples:
      twinbed studies
      twinbed studies quickstart -o my.yaml
      twinbed run quickstart --profile quick

    Every command that takes a STUDY accepts one of these names, unless a file has that name. The time is the estimate of
    `twinbed plan` for the profile `quick`, or for the whole study without that profile.
    """
    from twinbed.model.near import did_you_mean, nearest
    from twinbed.study import loading

    if name is None:
        if output is not None:
            raise click.UsageError("-o copies a study: give its NAME too")
        print_table([_row(study, style) for study in loading.shipped_names()], style)
        return
    file = loading.shipped_file(name)
    if file is None:
        meant = nearest(name, loading.shipped_names())
        hint = did_you_mean(meant) or "`twinbed studies` lists them"
        raise TwinbedError(f"{name}: twinbed has no study of this name", advice=hint)
    if output is None:
        say_text(file.read_text(encoding="utf-8"))
        return
    _copy(file, output)
    for source, target in _files_of(file, output.parent):
        target.parent.mkdir(exist_ok=True)
        _copy(source, target)


def _files_of(study_file: Path, folder: Path) -> list[tuple[Path, Path]]:
    """Return each file that a study's workloads read, and its place below ``folder``, unless it is there already."""
    from twinbed.cli.studyfile import read_study

    names = {name for cell in read_study(study_file).cells for name in cell.workload.params.own_files()}
    pairs = [(study_file.parent / name, folder / name) for name in sorted(names)]
    return [(source, target) for source, target in pairs if not target.is_file() or target.read_bytes() != source.read_bytes()]


def _copy(source: Path, target: Path) -> None:
    try:
        with target.open("xb") as copy:
            copy.write(source.read_bytes())
    except OSError as error:
        raise TwinbedError(f"{target}: {error.strerror}", advice="give the name of a new file") from None


def _row(name: str, style: str) -> dict[str, object]:
    from twinbed import design
    from twinbed.cli.plan import clock
    from twinbed.cli.studyfile import read_study
    from twinbed.study import loading

    file = loading.SHIPPED / f"{name}.yaml"
    text = file.read_text()
    profile = loading.quick_profile(text)
    seconds = design.expense(design.runs(read_study(file, (), profile))).seconds
    if style == "text":
        return {"study": name, "time": clock(seconds), "question": loading.question_of(text)}
    return {"study": name, "profile": profile, "seconds": round(seconds, 1), "question": loading.question_of(text)}
