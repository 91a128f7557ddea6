"""Questions to QEMU's monitor (QMP): what runs, with which accelerator, on which threads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qemu.qmp import QMPClient, QMPError

from twinbed.hosts.error import HostError, LimitExceeded

QUESTIONS = ("query-version", "query-kvm", "query-cpus-fast", "query-memory-size-summary", "query-status")


def ask(socket: Path, name: str, questions: Sequence[str] = QUESTIONS, *, limit_s: float = 5.0) -> dict[str, Any]:
    """The answers, by question. Raises HostError when QEMU does not answer as QMP."""
    try:
        return asyncio.run(asyncio.wait_for(_ask(socket, questions), limit_s))
    except TimeoutError:
        raise LimitExceeded(f"{name}: QEMU's monitor did not answer in {limit_s:g} s") from None
    except (QMPError, OSError) as error:
        raise HostError(f"{name}: QEMU's monitor: {error}") from None


async def _ask(socket: Path, questions: Sequence[str]) -> dict[str, Any]:
    client = QMPClient("twinbed")
    await client.connect(str(socket))
    try:
        return {question: await client.execute(question) for question in questions}
    finally:
        await client.disconnect()
