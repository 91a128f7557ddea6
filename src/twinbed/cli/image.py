"""``twinbed image``: build and list the root file system and guest kernel that every testbed runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from twinbed import image as images
from twinbed.cli.envelope import tell
from twinbed.cli.help import CommandGroup
from twinbed.image import Image
from twinbed.model.image import Added
from twinbed.readers.container_image import Unreadable, digest, located
from twinbed.render.rows import print_json
from twinbed.terminal import say, say_text


@click.group("image", cls=CommandGroup)
def image() -> None:
    """Build and list the root file system and guest kernel that every testbed runs.

    \b
    Examples:
      twinbed image build
      twinbed image list
      twinbed image minimega -o /tmp/minimega/files
    """


_FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Format to print."
)


_PACKAGES = click.option("-p", "--package", "packages", metavar="NAME", multiple=True, help="Add a Debian package.")
_CONTAINER_IMAGE = click.option(
    "--image",
    "container_image",
    metavar="SOURCE",
    help="Add a container image: oci-archive:FILE, docker-archive:FILE or a folder.",
)


def _added(packages: tuple[str, ...], source: str | None) -> Added:
    """Return what is to be added. Raises click.UsageError for a container image that cannot be read."""
    try:
        place = located(source, Path.cwd()) if source else None
        return Added(packages, place, digest(place) if place else None)
    except Unreadable as error:
        raise click.UsageError(f"--image: {error}") from None


@image.command()
@click.option("--force", is_flag=True, help="Fetch the packages again, even if there is an image already.")
@click.option("--kernel", metavar="PACKAGE", help="Use another guest kernel, such as linux-image-6.12-amd64.")
@_PACKAGES
@_CONTAINER_IMAGE
@_FORMAT
def build(force: bool, kernel: str | None, packages: tuple[str, ...], container_image: str | None, form: str) -> None:
    """Build the image from Debian packages, unless it exists.

    \b
    Examples:
      twinbed image build
      twinbed image build --kernel linux-image-6.12-amd64      for testbeds with `kernel:`
      twinbed image build -p redis-server -p redis-tools       for a workload with these `packages:`

    Progress goes to standard error. With --kernel, the image is built in addition to the default one, for testbeds whose
    guests run that kernel (kernel: PACKAGE). The packages that a workload adds are a layer on the image; `twinbed run` builds
    it too.
    """
    spec = images.with_kernel(kernel) if kernel else images.TWINBED
    built = images.build(force=force, say=partial(say, err=True), spec=spec, added=_added(packages, container_image))
    print_json(_described(built)) if form == "json" else say(str(built.rootfs.parent))


@image.command("minimega")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for both files, such as minimega's files folder.",
)
@click.option(
    "--miniccc",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="minimega's client for guests: bin/miniccc of the installed release.",
)
@click.option("--kernel", metavar="PACKAGE", help="Use another guest kernel, as `twinbed image build --kernel`.")
@_PACKAGES
def minimega(output: Path, miniccc: Path | None, kernel: str | None, packages: tuple[str, ...]) -> None:
    """Write a kernel and an initrd for minimega's guests.

    \b
    Examples:
      twinbed image minimega --miniccc ~/minimega/bin/miniccc -o /tmp/minimega/files

    They hold every program that twinbed starts in a guest (nginx, ab, wrk, iperf3, irtt, tcpdump, tc, ethtool) and the NIC
    drivers that it knows. The guest has no disk: its files are in memory.
    """
    from twinbed.image import minimega as recipe

    client = None if miniccc is None else recipe.client(miniccc)
    spec = images.with_kernel(kernel) if kernel else images.TWINBED
    built = images.build(say=partial(say, err=True), spec=spec, added=Added(packages))
    made = recipe.make(built, output, client)
    for path in (made.kernel, made.initrd):
        say(f"{path}  {path.stat().st_size / 2**20:.0f} MiB")
    tell({"written": [str(made.kernel), str(made.initrd)], "memory_mib": made.megabytes, "miniccc": made.has_client})
    say_text(_MINIMEGA.format(kernel=made.kernel.resolve(), initrd=made.initrd.resolve(), megabytes=made.megabytes) + "\n")
    if not made.has_client:
        say(
            "The guests have no miniccc: minimega boots them, but nothing can be started in them. Give --miniccc FILE.",
            err=True,
        )


_MINIMEGA = """
In a study:
  testbeds:
    virtio:
      driver: minimega
      kernel: {kernel}
      initrd: {initrd}
      append: console=ttyS0
      memory: {megabytes}MiB
      nic: virtio-net-pci

In minimega:
  vm config memory {megabytes}
  vm config kernel {kernel}
  vm config initrd {initrd}
  vm config append console=ttyS0
  vm launch kvm guest
  vm start guest"""
"""How both files are used."""


@image.command("list")
@_FORMAT
def list_(form: str) -> None:
    """List the images in the cache; the one in use is marked with *.

    \b
    Examples:
      twinbed image list
      twinbed image list --format json
    """
    used = images.find()
    built = images.images()
    if form == "json":
        print_json([{**_described(entry), "in_use": entry == used} for entry in built])
        return
    for listed in built:
        mark = "*" if listed == used else " "
        more = f"  with {listed.added}" if listed.added else ""
        packages = f"{len(listed.packages)} packages"
        say(f"{mark} {listed.digest}  kernel {listed.kernel_version}  {packages}  {listed.rootfs.parent}{more}")
    if not built:
        say("There is no image yet. Build it: twinbed image build", err=True)


def _described(built: Image) -> dict[str, object]:
    return {
        "digest": built.digest,
        "path": str(built.rootfs.parent),
        "disk_type": built.disk_type,
        "kernel_version": built.kernel_version,
        "packages": dict(built.packages),
        "added": built.added or None,
    }
