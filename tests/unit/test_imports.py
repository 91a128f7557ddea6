"""The import rules hold, and each of them is seen to be broken when it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache")

PLANTED = [
    ("model/planted.py", "from twinbed.hosts import process", "model imports nothing of ours"),
    (
        "workloads/planted.py",
        "import twinbed.results",
        "workloads, backgrounds, instruments, formats and analyses import model only",
    ),
    (
        "instruments/planted.py",
        "import twinbed.links",
        "workloads, backgrounds, instruments, formats and analyses import model only",
    ),
    ("testbeds/planted.py", "import twinbed.lab", "testbeds import model, hosts, links and image only"),
    ("testbeds/planted.py", "from twinbed.testbeds import planted_sibling", "testbeds do not import each other"),
    ("workloads/planted.py", "from twinbed.workloads import planted_sibling", "workloads do not import each other"),
    ("backgrounds/planted.py", "from twinbed.backgrounds import planted_sibling", "backgrounds do not import each other"),
    ("instruments/planted.py", "from twinbed.instruments import planted_sibling", "instruments do not import each other"),
    ("imports/formats/planted.py", "from twinbed.imports.formats import planted_sibling", "formats do not import each other"),
    ("analyses/planted.py", "from twinbed.analyses import planted_sibling", "analyses do not import each other"),
    ("render/planted.py", "from twinbed import workloads", "only the registry knows the plugins"),
    ("render/planted.py", "import twinbed.lab", "analyses and report never import lab"),
    ("published/planted.py", "from twinbed import analyses", "published imports model and statistics only"),
    ("statistics/planted.py", "from twinbed.model import metric", "statistics imports nothing of ours"),
    ("results/planted.py", "from twinbed.cli import image", "nothing imports cli"),
    ("workloads/planted.py", "import subprocess", "only hosts start processes"),
    ("lab/planted.py", "def f():\n    from subprocess import run", "only hosts start processes"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the checker on the package in ``folder``, with this repository's rules."""
    return subprocess.run(
        [*COMMAND, "--config", str(REPOSITORY / ".importlinter")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_rules_hold() -> None:
    done = lint(REPOSITORY / "src")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("path", "line", "rule"), PLANTED)
def test_a_broken_rule_is_found(tmp_path: Path, path: str, line: str, rule: str) -> None:
    package = tmp_path / "twinbed"
    shutil.copytree(REPOSITORY / "src/twinbed", package, ignore=shutil.ignore_patterns("__pycache__", "bin", "*.so"))
    planted = package / path
    planted.with_name("planted_sibling.py").write_text("")
    planted.write_text(line + "\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{rule} BROKEN" in done.stdout
    assert "planted" in done.stdout.partition("Broken contracts")[2]
