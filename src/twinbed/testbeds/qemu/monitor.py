"""Questions to QEMU's monitor (QMP): what runs, with which accelerator, machine and CPU, on which threads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qemu.qmp import QMPClient, QMPError

from twinbed.hosts.error import HostError, LimitExceeded

QUESTIONS = ("query-version", "query-kvm", "query-cpus-fast", "query-memory-size-summary", "query-status")


def ask(socket: Path, name: str, cpu_flags: Sequence[str] = (), *, limit_s: float = 10.0) -> dict[str, Any]:
    """The answers, by question; and ``machine``, ``cpu`` (their types in QEMU's object model) and ``cpu flags``, by flag.

    Raises HostError when QEMU does not answer as QMP."""
    try:
        return asyncio.run(asyncio.wait_for(_ask(socket, cpu_flags), limit_s))
    except TimeoutError:
        raise LimitExceeded(f"{name}: QEMU's monitor did not answer in {limit_s:g} s") from None
    except (QMPError, OSError) as error:
        raise HostError(f"{name}: QEMU's monitor: {error}") from None


async def _ask(socket: Path, cpu_flags: Sequence[str]) -> dict[str, Any]:
    client = QMPClient("twinbed")
    await client.connect(str(socket))

    async def of(path: str, what: str) -> Any:
        return await client.execute("qom-get", {"path": path, "property": what})

    try:
        answers: dict[str, Any] = {question: await client.execute(question) for question in QUESTIONS}
        first_cpu = str(answers["query-cpus-fast"][0]["qom-path"])
        return {
            **answers,
            "machine": await of("/machine", "type"),
            "cpu": await of(first_cpu, "type"),
            "cpu flags": {flag: await of(first_cpu, flag) for flag in cpu_flags},
        }
    finally:
        await client.disconnect()
