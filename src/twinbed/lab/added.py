"""The software that workloads add to the image: tried before a study begins, built, and read back on each host of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.command import Command
from twinbed.contracts.plugins import Plugins
from twinbed.contracts.site import Installed
from twinbed.hosts import scratch
from twinbed.hosts.cache import build_command
from twinbed.image import LAYER_FILE, TWINBED, Specification, build, find, has_program, with_kernel
from twinbed.image.debian import Apt
from twinbed.lab.own_programs import started_by
from twinbed.model.error import TwinbedError
from twinbed.model.image import Added, Image
from twinbed.study.run import Run

_ANY = "10.77.0.2"


def checks(runs: Iterable[Run], plugins: Plugins) -> list[Check]:
    """Try to get what is added, unless the image with it is there; nothing is downloaded."""
    refused = [
        Check(
            f"image of the workload on {run.testbed_name}",
            False,
            "its hosts run a system of their own",
            "use testbeds whose hosts run twinbed's image, or leave out the workload's image",
        )
        for run in runs
        if run.workload.params.added().image and not _from_image(run, plugins)
    ]
    refused += [
        Check(
            f"files of the workload on {run.testbed_name}",
            False,
            f"its hosts run a system of their own, on which {path} would stay",
            "use testbeds whose hosts run twinbed's image, or give files paths below /run or /tmp",
        )
        for run in runs
        if not _from_image(run, plugins)
        for path in _staying(run, plugins)
    ]
    return list(dict.fromkeys([*refused, *(_check(spec, added) for spec, added in _wanted(runs, plugins))]))


_PRIVATE = ("/run/", "/tmp/", "{artifacts}/")
"""Folders that are a run's own on every host, as paths begin in plans."""


def _staying(run: Run, plugins: Plugins) -> Iterator[str]:
    """Yield the paths of files that a run would leave on hosts that run a system of their own."""
    pairs = [(*names, _ANY) for names in run.topology.names()]
    plan = plugins.workloads[run.workload.kind].planned(run.workload.params, pairs)
    yield from (path for _, path, _ in plan.files if not path.startswith(_PRIVATE))


def _from_image(run: Run, plugins: Plugins) -> bool:
    in_process = plugins.drivers[run.testbed.kind].in_process
    return not in_process and all(kind.from_image for kind in run.testbed.params.kinds().values())


def _wanted(runs: Iterable[Run], plugins: Plugins) -> Iterator[tuple[Specification, Added]]:
    """Yield each image that the runs need because of what their workloads add."""
    wanted: dict[tuple[Specification, Added], None] = {}
    for run in runs:
        if (added := run.workload.params.added()) and not plugins.drivers[run.testbed.kind].in_process:
            kernels = {kind.guest_kernel() for kind in run.testbed.params.kinds().values() if kind.from_image}
            wanted |= {(with_kernel(kernel) if kernel else TWINBED, added): None for kernel in sorted(kernels, key=str)}
    yield from wanted


def _check(spec: Specification, added: Added) -> Check:
    what = str(added)
    try:
        if (image := find(spec, added)) is not None:
            return Check(what, True, f"in the image {image.digest}")
        if os.geteuid() != 0:
            return Check(what, False, "no image has it", build_command(added))
        if not added.packages:
            return Check(what, True, f"the run unpacks it ({added.image_digest})")
        own = find(spec)
        with scratch.folder() as folder:
            chosen = Apt.of(folder / "apt", own.rootfs if own else None, spec, own.packages if own else {}).choose(
                added.packages
            )
    except TwinbedError as error:
        return Check(what, False, str(error), error.advice)
    versions = ", ".join(f"{name} {chosen[name]}" for name in added.packages if name in chosen)
    return Check(what, True, f"the run fetches {len(chosen)} packages: {versions or 'none that the image lacks'}")


def built(runs: Sequence[Run], plugins: Plugins, say: Callable[[str], None]) -> Mapping[Added, Image]:
    """Return the images with what the runs' workloads add, built if they are missing. Raises ImageFailed."""
    images: dict[Added, Image] = {}
    for spec, added in _wanted(runs, plugins):
        image = build(say=say, spec=spec, added=added)
        if spec == TWINBED or added not in images:
            images[added] = image
    return images


def lacking(runs: Iterable[Run], plugins: Plugins, installed: Installed) -> list[Check]:
    """Return a failed check for each program of a workload that its image lacks."""
    missing: dict[Check, None] = {}
    for run in runs:
        added = run.workload.params.added()
        if not _from_image(run, plugins):
            continue
        image = installed.image_for(added)
        plan = plugins.workloads[run.workload.kind].planned(
            run.workload.params, [(*names, _ANY) for names in run.topology.names()]
        )
        given = {path for _, path, _ in plan.files}
        for command in (*plan.prepare, *plan.servers, *plan.warm_up, *plan.clients):
            for program in _programs(command):
                if f"{command.root or ''}{program}" not in given and not has_program(image, program, command):
                    advice = "name the Debian package that has it, in packages, or correct the program's name"
                    status = f"the image has no such program{f' with {added}' if added else ''}"
                    missing[Check(program, False, status, advice)] = None
    return list(missing)


def _programs(command: Command) -> Iterable[str]:
    return (program for program in started_by(command.argv) if "{" not in program)


def read_back(run: Run, bed: Bed, image: Image) -> list[Applied]:
    """Read on each host which software was added to its image."""
    kinds = run.testbed.params.kinds()
    like = run.topology.made_like()
    hosts = dict.fromkeys(name for pair in run.topology.names() for name in pair)
    return [
        Applied(name, "layer", image.layer, bed.hosts[name].read(LAYER_FILE).decode(errors="replace").strip(), LAYER_FILE)
        for name in hosts
        if image.layer and kinds[like[name]].from_image
    ]
