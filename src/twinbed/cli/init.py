"""``twinbed init``: write a first study from a few choices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.model.near import did_you_mean, nearest
from twinbed.model.nic import NIC_MODELS
from twinbed.model.topology import Link
from twinbed.study.catalogue import Catalogue
from twinbed.study.declared import declared, needed, written
from twinbed.study.document import listed
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
    from twinbed.registry import catalogue
    from twinbed.study.loading import load

    levels: dict[str, tuple[str, ...]] = {}
    for varying in varied:
        name, equals, values = varying.partition("=")
        if not equals or not _several(values):
            raise click.BadParameter(
                f"{varying!r} is not of the form SETTING=A,B, such as keep_alive=on,off", param_hint="--vary"
            )
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
    next_step = "try" if workload == "command" else "plan"
    tell({"written": [str(file)], "cells": len(study.cells), "replicates": study.replicates})
    say(
        f"{file}: {amount(len(study.cells), 'cell')}, {amount(study.replicates, 'replicate')}. Next: twinbed {next_step} {file}"
    )


def _several(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


CARD, GUEST, TOOL, DURATION = "nic", "qemu", "tool", "duration"


@dataclass(frozen=True, slots=True)
class Choices:
    """Holds the choices that a first study is made from."""

    file: str
    """The file to write, for the comments."""
    testbeds: tuple[str, ...]
    """The reference first: names of drivers, or of network cards of guests."""
    workload: str
    """A workload, or the tool of one."""
    settings: Mapping[str, tuple[str, ...]]
    """Settings of the workload or of links. Several values make a factor; none keeps the default."""
    vary: Mapping[str, tuple[str, ...]]
    record: tuple[str, ...]
    replicates: int | None


def first_study(choices: Choices, catalogue: Catalogue) -> str:
    """Return the text of a study file. Raises TwinbedError for an unknown testbed or workload."""
    return "\n".join(_lines(choices, catalogue)) + "\n"


def _lines(choices: Choices, catalogue: Catalogue) -> Iterator[str]:
    testbeds = {name: settings for chosen in choices.testbeds for name, settings in (_testbed(chosen, catalogue),)}
    workload = _workload(choices.workload, catalogue)
    of_links = {name: values for name, values in choices.settings.items() if name in Link.model_fields}
    fixed = {name: values[0] for name, values in choices.settings.items() if len(values) == 1}
    several = {name: values for name, values in choices.settings.items() if len(values) > 1}
    factors = {
        **{f"topology.link.{name}" if name in of_links else name: levels for name, levels in several.items()},
        **choices.vary,
    }
    link = {name: value for name, value in fixed.items() if name in of_links}
    work = {**workload, **{name: value for name, value in fixed.items() if name not in of_links}}
    name = re.sub(r"[^A-Za-z0-9._-]", "-", Path(choices.file).stem).strip("._-")[:64] or "study"
    yield from (
        f"# See the plan: twinbed plan {choices.file}. Run it, or continue it: twinbed run {choices.file}.",
        "# Every setting: `twinbed describe`. For completion in an editor: `twinbed schema`.",
        "",
        f"study: {written(name)} # also the name of the results folder",
        "",
        "# The testbeds to compare: names that you choose, each with a driver and its settings.",
        "testbeds:",
    )
    yield from (f"  {testbed}: {written(settings)}" for testbed, settings in testbeds.items())
    yield f"reference: {next(iter(testbeds), '')} # the testbed that the others are compared with"
    yield ""
    yield "# The network between them (twinbed describe topology topology.link)."
    if any("delay" in name for name in (*link, *factors)):
        yield f"# Delay needs the kernel's netem; twinbed check {choices.file} tests whether it works here."
    yield f"topology: {written({'pairs': 1, 'link': link})}"
    yield ""
    yield f"# The work that clients and servers do (twinbed describe {workload['kind']})."
    yield COMMAND if workload["kind"] == "command" else f"workload: {written(work)}"
    yield ""
    yield "# Factors: every combination of levels is run. Any setting can be a factor (twinbed describe factor)."
    yield "factors:"
    yield f"  testbed: {written([*testbeds])}"
    yield from (f"  {factor}: [{', '.join(levels)}]" for factor, levels in factors.items())
    yield ""
    if choices.record:
        yield "# Instruments: recorded in addition to the workload's own report (twinbed describe)."
        yield f"instruments: {written([*choices.record])}"
        yield ""
    yield f"replicates: {choices.replicates or 5} # runs of each combination, in blocks of random order"
    yield "margin: 10% # the largest difference that counts as equivalent"
    yield ""
    yield f"# A quick try: twinbed run {choices.file} --profile quick"
    yield "profiles:"
    short = {"workload.duration": "2s"} if DURATION in catalogue.workloads[str(workload["kind"])].model_fields else {}
    yield f"  quick: {written({'replicates': 3, **({} if DURATION in factors else short)})}"


COMMAND = """\
workload:
  kind: command
  # Programs of the image (twinbed image list), and your own: Debian packages, or files below the folder of this file.
  # packages: [redis-server, redis-tools]
  # files: {client.py: /opt/client.py} # the file, and its path on every host
  settings: {blocks: 1000, payload: 64KiB} # {payload} is 64KiB, {payload.bytes} is 65536; any of them may be a factor
  server:
    run: [iperf3, --server] # a list of arguments, never a shell string
    ready: {listening: 5201} # or {output: "a pattern in its output"}, or {after: 2s}
  client:
    run: [iperf3, --client, "{server}", --blockcount, "{blocks}", --length, "{payload.bytes}", --json]
    limit: 60s
  # Where each metric is read: regex, csv, json, values (a number a line), or format (twinbed describe command).
  metrics:
    goodput: {read: client.stdout, json: end.sum_received.bits_per_second, unit: bit/s, rate: true}
    time_taken: {read: client.stdout, json: end.sum_received.seconds, unit: s}
  work: {name: blocks, value: "{blocks}"} # what each client does: packets and CPU time are divided by it
  # Try it before you run it all: `twinbed try` with this file."""


def _testbed(given: str, catalogue: Catalogue) -> tuple[str, Mapping[str, object]]:
    """Return the name and the settings of a testbed."""
    if given in catalogue.drivers:
        return given, {"driver": given, **needed(catalogue.drivers[given])}
    cards = {name.partition("-")[0]: name for name in NIC_MODELS} | {name: name for name in NIC_MODELS}
    if given in cards:
        return given, {"driver": GUEST, CARD: cards[given]}
    names = [*catalogue.drivers, *dict.fromkeys(name.partition("-")[0] for name in NIC_MODELS)]
    raise _unknown(given, "a testbed", names, catalogue)


def _workload(given: str, catalogue: Catalogue) -> Mapping[str, object]:
    if given in catalogue.workloads:
        return {"kind": given, **needed(catalogue.workloads[given])}
    tools = {
        choice: kind
        for kind, model in catalogue.workloads.items()
        for setting in declared(model)
        if setting.name == TOOL
        for choice in setting.kinds[0].choices
    }
    if given in tools:
        return {"kind": tools[given], TOOL: given}
    raise _unknown(given, "a workload", [*catalogue.workloads, *tools], catalogue)


def _unknown(given: str, what: str, names: list[str], catalogue: Catalogue) -> TwinbedError:
    near = nearest(given, names, catalogue.also)
    hint = f"; {did_you_mean(near)}" if near else ""
    return TwinbedError(f"{given!r} is not {what}{hint}", advice=f"there are: {listed(names)}")
