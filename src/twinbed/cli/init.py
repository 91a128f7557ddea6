"""``twinbed init``: write a first study from a few choices."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.model.amount import amount
from twinbed.terminal import say


@click.command("init")
@click.argument("file", metavar="[FILE]", default="study.yaml", type=click.Path(path_type=Path))
@click.option(
    "--testbeds",
    default="container,virtio",
    show_default=True,
    metavar="NAMES",
    help="Testbeds, the reference first: drivers (`twinbed describe`), or NICs of a guest such as virtio, e1000.",
)
@click.option(
    "--workload", default="http", show_default=True, metavar="NAME", help="Workload such as http or iperf3, or a tool: ab, wrk."
)
@click.option("--payload", metavar="SIZES", help="Bytes in each transfer, such as 16KiB; several: 500B,1MiB.")
@click.option("--rate", metavar="RATES", help="Rate of every host's link, such as 100mbit; several: 100mbit,1gbit.")
@click.option("--delay", metavar="TIMES", help="One-way delay of every path, such as 5ms; several: 0ms,5ms.")
@click.option(
    "--vary",
    "varied",
    multiple=True,
    metavar="SETTING=A,B",
    help="Also vary any other setting, such as keep_alive=on,off; may be repeated.",
)
@click.option(
    "--record", default="packets,counters", show_default=True, metavar="NAMES", help="Instruments to record with, or none."
)
@click.option("--replicates", type=click.IntRange(1), help="Runs of each combination. Default: 5.")
def command(
    file: Path,
    testbeds: str,
    workload: str,
    payload: str | None,
    rate: str | None,
    delay: str | None,
    varied: tuple[str, ...],
    record: str,
    replicates: int | None,
) -> None:
    """Write a commented study to FILE (default: study.yaml) from a few choices.

    \b
    Examples:
      twinbed init                            a container and a virtio guest, with a web server
      twinbed init my.yaml --testbeds container,e1000,virtio --payload 500B,1MiB
      twinbed init --workload wrk --rate 100mbit --delay 5ms --vary keep_alive=on,off

    An option with several values, separated by commas, makes a factor: every combination of levels is run. An existing file
    is never overwritten.
    """
    from twinbed.cli.envelope import tell
    from twinbed.cli.first_study import Choices, first_study
    from twinbed.model.error import TwinbedError
    from twinbed.registry import catalogue
    from twinbed.study.loading import load

    levels: dict[str, tuple[str, ...]] = {}
    for each in varied:
        name, equals, values = each.partition("=")
        if not equals or not _several(values):
            raise click.BadParameter(f"{each!r} is not of the form SETTING=A,B, such as keep_alive=on,off", param_hint="--vary")
        levels[name.strip()] = _several(values)
    choices = Choices(
        file=str(file),
        testbeds=_several(testbeds),
        workload=workload,
        settings={"payload": _several(payload), "rate": _several(rate), "delay": _several(delay)},
        vary=levels,
        record=() if record == "none" else _several(record),
        replicates=replicates,
    )
    text = first_study(choices, catalogue())
    study = load(text, str(file), catalogue())
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise TwinbedError(f"{file} exists", advice="give another name: twinbed init other.yaml") from None
    except OSError as error:
        raise TwinbedError(f"{file}: {error.strerror}") from None
    tell({"written": [str(file)], "cells": len(study.cells), "replicates": study.replicates})
    say(f"{file}: {amount(len(study.cells), 'cell')}, {amount(study.replicates, 'replicate')}. Next: twinbed plan {file}")


def _several(text: str | None) -> tuple[str, ...]:
    return tuple(each.strip() for each in (text or "").split(",") if each.strip())
