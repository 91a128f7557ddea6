"""`twinbed check`: what this machine can do, what is missing, and the command that would mend it."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.cli import exit as codes


@click.command(name="check")
@click.argument("study_file", metavar="[STUDY]", required=False, type=click.Path(path_type=Path))
@click.option("--format", "style", type=click.Choice(["text", "json", "csv"]), default="text", help="How to print it.")
def command(study_file: Path | None, style: str) -> int:
    """Try what STUDY (or, without one, every driver) needs of this machine. Nothing is changed: what is tried happens in a
    trial lab that is gone afterwards.

    Exit code 0: all that is required works; 3: something does not.
    """
    from twinbed import registry
    from twinbed.cli.output import print_table
    from twinbed.cli.studyfile import read_study
    from twinbed.lab import preflight

    if study_file:
        study = read_study(study_file)
        testbeds = [
            (name, registry.PLUGINS.drivers[choice.kind], choice.params)
            for name, choices in study.testbeds.items()
            for choice in choices
        ]
    else:
        testbeds = [
            (name, driver, driver.params())
            for name, driver in registry.PLUGINS.drivers.items()
            if not any(field.is_required() for field in driver.params.model_fields.values())
        ]
    checks = preflight.machine() + preflight.study(testbeds)
    rows = [
        {
            "": "ok" if check.works else ("MISSING" if check.required else "optional"),
            "what": check.what,
            "found": check.found,
            "to mend it": "" if check.works else check.mend,
        }
        for check in checks
    ]
    print_table(rows, style)
    broken = [check for check in checks if check.required and not check.works]
    if style == "text":
        click.echo(
            f"\n{len(broken)} of {len(checks)} checks failed." if broken else "\nEverything that is required works here."
        )
    return codes.PREFLIGHT if broken else codes.DONE
