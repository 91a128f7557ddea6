"""``twinbed init``: a first study, written from a few choices."""

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
    help="What is compared, the reference first: drivers (`twinbed describe`), or cards of a guest such as virtio, e1000.",
)
@click.option("--workload", default="http", show_default=True, metavar="NAME", help="http, iperf3 ..., or a tool: ab, wrk.")
@click.option("--payload", metavar="SIZES", help="What is transferred at once, such as 16KiB; several: 500B,1MiB.")
@click.option("--rate", metavar="RATES", help="Of every host's link, each way, such as 100mbit; several: 100mbit,1gbit.")
@click.option("--delay", metavar="TIMES", help="Of every path, one way, such as 5ms; several: 0ms,5ms.")
@click.option(
    "--vary",
    "varied",
    multiple=True,
    metavar="SETTING=A,B",
    help="Compare levels of any setting too, such as keep_alive=on,off. Can be given again.",
)
@click.option("--record", default="packets,counters", show_default=True, metavar="NAMES", help="Instruments, or none.")
@click.option("--replicates", type=click.IntRange(1), help="Runs of each combination.")
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
    """Write a commented study to FILE: what to compare, over which network, with which work. Nothing is asked, and a file
    that is there is left alone.

    An option with several values, separated by commas, makes them levels of a factor: each combination is run.

    \b
    Examples:
      twinbed init                            a container against a guest with a virtio card, over a web server
      twinbed init my.yaml --testbeds container,e1000,virtio --payload 500B,1MiB
      twinbed init --workload iperf3 --rate 1gbit --vary streams=1,4

    \b
    A container against a virtio guest, wrk, 16 KiB, keep-alive on and off, 100 Mbit/s and 5 ms:
      twinbed init --testbeds container,virtio --workload wrk --payload 16KiB \\
          --vary keep_alive=on,off --rate 100mbit --delay 5ms
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
            raise click.BadParameter(f"{each!r} is not SETTING=A,B, such as keep_alive=on,off", param_hint="--vary")
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
        raise TwinbedError(f"{file} is there already", advice="give another name: twinbed init other.yaml") from None
    except OSError as error:
        raise TwinbedError(f"{file}: {error.strerror}") from None
    tell({"written": [str(file)], "cells": len(study.cells), "replicates": study.replicates})
    say(f"{file}: {amount(len(study.cells), 'cell')}, {amount(study.replicates, 'replicate')}. Next: twinbed plan {file}")


def _several(text: str | None) -> tuple[str, ...]:
    return tuple(each.strip() for each in (text or "").split(",") if each.strip())
