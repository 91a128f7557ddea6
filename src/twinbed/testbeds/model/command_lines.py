"""What ab and iperf3 are asked for, read from the argument lists that workloads plan; what is not modelled is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class NotModelled(ValueError):
    """An option whose effect a model does not have."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """``options``: name -> value, empty for a switch; ``rest``: what is no option."""

    options: Mapping[str, str]
    rest: Sequence[str]

    def number(self, name: str) -> int | None:
        text = self.options.get(name)
        return None if text is None else int(text)


_AB = {"-q": 0, "-r": 0, "-k": 0, "-s": 1, "-t": 1, "-n": 1, "-c": 1, "-g": 1, "-e": 1}
_IPERF3 = {"-J": 0, "--get-server-output": 0, "-u": 0, "-s": 0, "-c": 1, "-p": 1, "-i": 1, "-t": 1, "-O": 1, "-P": 1}
_IPERF3 |= {"-b": 1, "-l": 1, "-M": 1, "-w": 1}


def ab(argv: Sequence[str]) -> Arguments:
    return _read(argv, _AB)


def iperf3(argv: Sequence[str]) -> Arguments:
    return _read(argv, _IPERF3)


def _read(argv: Sequence[str], known: Mapping[str, int]) -> Arguments:
    options: dict[str, str] = {}
    rest: list[str] = []
    waiting = list(argv[1:])
    while waiting:
        argument = waiting.pop(0)
        if not argument.startswith("-"):
            rest.append(argument)
        elif argument not in known:
            raise NotModelled(f"{argv[0]} {argument} is not modelled")
        elif known[argument] and not waiting:
            raise NotModelled(f"{argv[0]} {argument} lacks its value")
        else:
            options[argument] = waiting.pop(0) if known[argument] else ""
    return Arguments(options, rest)
