"""Make a kind of traffic, in namespaces of its own that die with the caller: ``python -m tests.traffic.run NAME FOLDER``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.traffic.kinds import KINDS, Kind
from tests.traffic.wire import wire

_LIMIT_S = 240
_ROOT = Path(__file__).parents[2]


def make(kind: Kind, folder: Path) -> dict[str, Path]:
    """The captures by place: a, b, and trunk where there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    # The first process of a PID namespace takes everything in it along; setpriv makes it go when this one does.
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    command += [sys.executable, "-m", "tests.traffic.run", kind.name, str(folder.resolve())]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if ended.returncode:
        raise RuntimeError(f"{kind.name}: {ended.stderr}")
    return {path.stem: path for path in sorted(folder.glob("*.pcap"))}


if __name__ == "__main__":
    chosen = KINDS[sys.argv[1]]
    with wire(chosen.settings, Path(sys.argv[2])) as made:
        chosen.make(made)
