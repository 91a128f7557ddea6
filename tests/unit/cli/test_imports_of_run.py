"""What `twinbed run` imports before it knows whether there is anything to do: each of these takes longer than all of ours."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATER = ("asyncio", "numpy", "pyarrow", "qemu", "scipy", "ssl", "vl_convert")


@pytest.mark.parametrize("module", ["twinbed.registry", "twinbed.cli.run_study"])
def test_nothing_is_imported_that_only_a_run_or_a_comparison_needs(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in {LATER!r} if name in sys.modules))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not imported
