"""Namespaces of one's own: what is in them is told from all else on the machine, and a sweep in them finds nothing of others.

``python tests/alone.py WORD ...`` runs Python with these words in such namespaces. Workers of the tests start so, if root is
who runs them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).parents[1]
_MARK = "TWINBED_ALONE"
IN_MEMORY = "TWINBED_TESTS_IN_MEMORY"
"""The variable with the folder for the files of tests."""
_PREFIX = "tests-alone-"
"""Not that of labs, which a sweep outside would remove."""
_COUNTED = "tests"
"""The control group of the process that enters, so that its CPU time is counted with that of its labs."""
_FLAGS = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def enter(*argv: str) -> None:
    """Return in a process with mount and PID namespaces of its own, with scratch folders that nobody else uses, and control
    groups below one of its own. ``argv`` is the command of this process, which is begun again.

    Files of tests are in memory: a disk's file system takes ten times the CPU time for each, and the kernel frees them all when
    the namespace ends."""
    from twinbed.hosts import cgroups, scratch

    if _MARK not in os.environ:
        _remove_those_of_the_killed()
        os.execvpe("unshare", ["unshare", *_FLAGS, *argv], {**os.environ, _MARK: str(os.getpid())})
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", str(scratch.root())], check=True)
    own = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.environ[_MARK]}-"))
    large, in_memory = own / "large", own / "memory"
    large.mkdir(mode=0o700)
    in_memory.mkdir()
    subprocess.run(["mount", "--bind", str(large), str(scratch.root(large=True))], check=True)
    # By default half of the memory, and twinbed refuses a study that may need more than is free. Tests write much less.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700,size=1t", "tmpfs", str(in_memory)], check=True)
    os.environ[IN_MEMORY] = str(in_memory)
    groups = [_own_group(root) for root in cgroups.roots()]
    # The first process of a PID namespace takes on all orphans.
    if child := os.fork():
        while True:
            ended, status = os.wait()
            if ended == child:
                break
        for group in groups:
            subprocess.run(["umount", str(group.parent)], check=False)
            for folder in (group / _COUNTED, group):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        subprocess.run(["umount", str(scratch.root(large=True)), str(in_memory)], check=False)
        shutil.rmtree(own, ignore_errors=True)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    if unified := cgroups.cgroup_root():
        (unified / _COUNTED).mkdir()
        (unified / _COUNTED / "cgroup.procs").write_text("0")


def cpu_time_s() -> float:
    """Return the CPU time of this process and its children: in namespaces of its own, of all that ever was in them; elsewhere,
    of children that have ended and were waited for."""
    counted = _counted()
    return sum(os.times()[:4]) if counted is None else int(counted.read_text().split()[1]) / 1e6


@functools.cache
def _counted() -> Path | None:
    """The file of all that ever was in these namespaces. It is looked for once: tests let the product see other groups."""
    from twinbed.hosts import cgroups

    unified = cgroups.cgroup_root() if _MARK in os.environ else None
    return unified / "cpu.stat" if unified else None


def _remove_those_of_the_killed() -> None:
    """Folders and control groups carry the process id of who waits for the namespaces' end; who is killed leaves them."""
    from twinbed.hosts import cgroups

    for root in (Path(tempfile.gettempdir()), *cgroups.roots()):
        for left in root.glob(f"{_PREFIX}[0-9]*-*"):
            if Path("/proc", left.name.removeprefix(_PREFIX).partition("-")[0]).exists():
                continue
            if root == Path(tempfile.gettempdir()):
                shutil.rmtree(left, ignore_errors=True)
                continue
            for group in (*sorted((path for path in left.rglob("*") if path.is_dir()), reverse=True), left):
                with contextlib.suppress(OSError):  # another worker removes it
                    group.rmdir()


def _own_group(root: Path) -> Path:
    """A group in the place of its hierarchy's root, in this mount namespace."""
    group = root / f"{_PREFIX}{os.environ[_MARK]}-{secrets.token_hex(4)}"
    group.mkdir()
    given = root / "cgroup.subtree_control"
    if given.exists():
        for controller in given.read_text().split():
            (group / given.name).write_text(f"+{controller}")
    for name in ("cpuset.mems", "cpuset.cpus"):
        if not given.exists() and (group / name).exists():
            (group / name).write_text((root / name).read_text())
    subprocess.run(["mount", "--bind", str(group), str(root)], check=True)
    return group


if __name__ == "__main__":
    enter(sys.executable, __file__, *sys.argv[1:])
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
