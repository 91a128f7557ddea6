"""``twinbed image``: the root file system and guest kernel that every testbed runs."""

from __future__ import annotations

import json

import click

from twinbed import image as images
from twinbed.image import Image


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
    built = images.build(force=force, say=lambda line: click.echo(line, err=True), spec=spec)
    click.echo(json.dumps(_described(built), indent=1) if form == "json" else str(built.rootfs.parent))


@image.command("list")
@_FORMAT
def list_(form: str) -> None:
    """List the images in the cache; the one in use is marked with *."""
    used = images.find()
    built = images.images()
    if form == "json":
        click.echo(json.dumps([{**_described(one), "in_use": one == used} for one in built], indent=1))
        return
    for one in built:
        mark = "*" if one == used else " "
        click.echo(f"{mark} {one.digest}  kernel {one.kernel_version}  {len(one.packages)} packages  {one.rootfs.parent}")
    if not built:
        click.echo("no image yet: run `twinbed image build`", err=True)


def _described(one: Image) -> dict[str, object]:
    return {
        "digest": one.digest,
        "path": str(one.rootfs.parent),
        "disk_type": one.disk_type,
        "kernel_version": one.kernel_version,
        "packages": dict(one.packages),
    }
