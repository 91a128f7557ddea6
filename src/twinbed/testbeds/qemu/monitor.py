"""Questions to QEMU's monitor (QMP): what runs, with which accelerator, machine and CPU, on which threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from twinbed.hosts.error import HostError, LimitExceeded

_Cpu = TypedDict("_Cpu", {"qom-path": str, "thread-id": int})
_Memory = TypedDict("_Memory", {"base-memory": int})


class _Kvm(TypedDict):
    enabled: bool


class _Numbers(TypedDict):
    major: int
    minor: int
    micro: int


class _Version(TypedDict):
    qemu: _Numbers


@dataclass(frozen=True, slots=True)
class Monitored:
    """What QEMU says of a guest."""

    version: str
    kvm: bool
    memory_bytes: int
    threads: tuple[int, ...]
    """Of the virtual CPUs, in their order, as the machine's kernel numbers them."""
    machine: str
    """Its type in QEMU's object model, as that of ``cpu`` is."""
    cpu: str
    cpu_flags: Mapping[str, object]
    devices: Mapping[tuple[str, str], object]
    """Id and property -> its value."""


def ask(
    socket: Path, name: str, cpu_flags: Sequence[str] = (), devices: Sequence[tuple[str, str]] = (), *, limit_s: float = 10.0
) -> Monitored:
    """Raises HostError when QEMU does not answer as QMP."""
    # With the sockets and TLS of the standard library, which only guests need.
    import asyncio

    from qemu.qmp import QMPError

    try:
        return asyncio.run(asyncio.wait_for(_ask(socket, cpu_flags, devices), limit_s))
    except TimeoutError:
        raise LimitExceeded(f"{name}: QEMU's monitor did not answer in {limit_s:g} s") from None
    except (QMPError, OSError) as error:
        raise HostError(f"{name}: QEMU's monitor: {error}") from None


async def _ask(socket: Path, cpu_flags: Sequence[str], devices: Sequence[tuple[str, str]]) -> Monitored:
    from qemu.qmp import QMPClient

    client = QMPClient("twinbed")
    await client.connect(str(socket))

    async def of(path: str, what: str) -> object:
        return await client.execute("qom-get", {"path": path, "property": what})

    try:
        version = cast(_Version, await client.execute("query-version"))["qemu"]
        kvm = cast(_Kvm, await client.execute("query-kvm"))
        cpus = cast(Sequence[_Cpu], await client.execute("query-cpus-fast"))
        memory = cast(_Memory, await client.execute("query-memory-size-summary"))
        first_cpu = cpus[0]["qom-path"]
        return Monitored(
            version=f"{version['major']}.{version['minor']}.{version['micro']}",
            kvm=kvm["enabled"],
            memory_bytes=memory["base-memory"],
            threads=tuple(cpu["thread-id"] for cpu in cpus),
            machine=str(await of("/machine", "type")),
            cpu=str(await of(first_cpu, "type")),
            cpu_flags={flag: await of(first_cpu, flag) for flag in cpu_flags},
            devices={(device, what): await of(f"/machine/peripheral/{device}", what) for device, what in devices},
        )
    finally:
        await client.disconnect()
