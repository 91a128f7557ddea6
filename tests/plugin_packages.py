"""Packages with plug-ins: the example in ``plugin/`` and made ones, installed by pip into a folder of their own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from twinbed.contracts.installed import forget as forget_offered

EXAMPLE = Path(__file__).with_name("plugin")


def installed(into: Path) -> Path:
    """Install the example by pip, without a network, and return the folder, for PYTHONPATH."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(into)]
    subprocess.run([*pip, str(wheel(into.parent))], check=True, timeout=300)
    return into


def unpacked(
    monkeypatch: pytest.MonkeyPatch, folder: Path, package: str = "", points: str = "", modules: Mapping[str, str] | None = None
) -> None:
    """Put a package into this process, by default the example; ``points`` are its entry points."""
    with zipfile.ZipFile(wheel(folder, package, points, modules)) as archive:
        archive.extractall(folder / "site")
    monkeypatch.syspath_prepend(str(folder / "site"))
    forget()


def forget() -> None:
    """Forget what this process knows of installed packages."""
    forget_offered()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("twinbed_echo", "twinbed_made")]:
        del sys.modules[name]


def wheel(folder: Path, package: str = "", points: str = "", modules: Mapping[str, str] | None = None) -> Path:
    """Make the wheel of a package, as its build would."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    package, version = package or project["name"], project["version"]
    if not points:
        groups = project["entry-points"].items()
        points = "\n".join(
            f"[{group}]\n" + "\n".join(f"{key} = {value}" for key, value in each.items()) for group, each in groups
        )
    if modules is None:
        modules = {"twinbed_echo/__init__.py": (EXAMPLE / "twinbed_echo" / "__init__.py").read_text()}
    about = f"{package.replace('-', '_')}-{version}.dist-info"
    file = folder / f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
    texts = {
        **modules,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"{points}\n",
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in (*texts, f"{about}/RECORD")))
    return file
