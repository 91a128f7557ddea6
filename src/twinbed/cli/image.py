"""``twinbed image``: the root file system and guest kernel that every testbed runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from twinbed import image as images
from twinbed.cli.envelope import tell
from twinbed.image import Image
from twinbed.render.rows import print_json
from twinbed.terminal import say, say_text


@click.group("image")
def image() -> None:
    """Build, list and find the root file system and guest kernel."""


_FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print it."
)


@image.command()
@click.option("--force", is_flag=True, help="Fetch the packages anew, even where the image is there.")
@click.option("--kernel", metavar="PACKAGE", help="The same with another guest kernel, such as linux-image-6.12-amd64.")
@_FORMAT
def build(force: bool, kernel: str | None, form: str) -> None:
    """Build the image from Debian packages, unless it is there. Progress goes to standard error.

    With --kernel it is an image beside the first, for testbeds whose guests are to run that kernel (kernel: PACKAGE).
    """
    spec = images.with_kernel(kernel) if kernel else images.TWINBED
    built = images.build(force=force, say=partial(say, err=True), spec=spec)
    print_json(_described(built)) if form == "json" else say(str(built.rootfs.parent))


@image.command("minimega")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where both files go, such as minimega's files folder.",
)
@click.option(
    "--miniccc",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="minimega's client for guests, bin/miniccc of the release that runs.",
)
@click.option("--kernel", metavar="PACKAGE", help="With another guest kernel, as `twinbed image build --kernel`.")
def minimega(output: Path, miniccc: Path | None, kernel: str | None) -> None:
    """Make a kernel and an initrd for guests of minimega's.

    They hold all that twinbed's studies start in a guest (nginx, ab, wrk, iperf3, irtt, tcpdump, tc, ethtool), and the
    drivers of the NICs that it knows. The guest has no disk: its files are in its memory.

    \b
    twinbed image minimega --miniccc ~/minimega/bin/miniccc -o /tmp/minimega/files
    """
    from twinbed.image import minimega as recipe

    client = None if miniccc is None else recipe.client(miniccc)
    spec = images.with_kernel(kernel) if kernel else images.TWINBED
    built = images.build(say=partial(say, err=True), spec=spec)
    made = recipe.make(built, output, client)
    for path in (made.kernel, made.initrd):
        say(f"{path}  {path.stat().st_size / 2**20:.0f} MiB")
    tell({"written": [str(made.kernel), str(made.initrd)], "memory_mib": made.megabytes, "miniccc": made.has_client})
    say_text(_MINIMEGA.format(kernel=made.kernel.resolve(), initrd=made.initrd.resolve(), megabytes=made.megabytes) + "\n")
    if not made.has_client:
        say(
            "Made without miniccc: minimega boots such guests, but neither it nor twinbed can start anything in them. "
            "Give --miniccc FILE.",
            err=True,
        )


_MINIMEGA = """
Of a study:
  testbeds:
    virtio:
      driver: minimega
      kernel: {kernel}
      initrd: {initrd}
      append: console=ttyS0
      memory: {megabytes}MiB
      nic: virtio-net-pci

By hand, in minimega:
  vm config memory {megabytes}
  vm config kernel {kernel}
  vm config initrd {initrd}
  vm config append console=ttyS0
  vm launch kvm guest
  vm start guest"""
"""What to do with them."""


@image.command("list")
@_FORMAT
def list_(form: str) -> None:
    """List the images in the cache; the one in use is marked with *."""
    used = images.find()
    built = images.images()
    if form == "json":
        print_json([{**_described(one), "in_use": one == used} for one in built])
        return
    for one in built:
        mark = "*" if one == used else " "
        say(f"{mark} {one.digest}  kernel {one.kernel_version}  {len(one.packages)} packages  {one.rootfs.parent}")
    if not built:
        say("no image yet: run `twinbed image build`", err=True)


def _described(one: Image) -> dict[str, object]:
    return {
        "digest": one.digest,
        "path": str(one.rootfs.parent),
        "disk_type": one.disk_type,
        "kernel_version": one.kernel_version,
        "packages": dict(one.packages),
    }
