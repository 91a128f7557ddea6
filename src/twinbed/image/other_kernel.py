"""An image that differs from the standard one in its kernel alone: the kernel's package, and the files that both share.

The kernel comes by the machine's own apt, which checks its signature; nothing is installed on the machine.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from twinbed.hosts.process import ProcessFailed, run
from twinbed.image.failure import ImageFailed

_META = re.compile(r"^Depends: .*?(linux-image-\d[^ ,]*)", re.MULTILINE)


def fetch(package: str, to: Path) -> None:
    """Download a kernel's package, or the one that a meta package leads to. Raises ImageFailed."""
    try:
        about = run(["apt-cache", "show", "--no-all-versions", package]).text
        real = leads_to(about) or package
        run(["apt-get", "-o", "APT::Sandbox::User=root", "download", real], cwd=to, limit_s=600)
    except ProcessFailed as error:
        raise ImageFailed(
            f"the kernel {package} cannot be had: {error}",
            advice="look at `apt-cache search ^linux-image-`, after `apt-get update`",
        ) from None


def leads_to(about: str) -> str | None:
    """The kernel that a meta package, described by `apt-cache show`, depends on; None where the package is a kernel itself."""
    match = _META.search(about)
    return match[1] if match else None


def share(common: Path, rootfs: Path) -> None:
    """The root file system without a kernel's modules: its files are hard links, as no finished image is ever changed."""
    run(["cp", "--archive", "--link", str(common), str(rootfs)], limit_s=120)
    shutil.rmtree(rootfs / "usr/lib/modules")
