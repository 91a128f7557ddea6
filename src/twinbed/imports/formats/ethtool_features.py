"""Format ``ethtool-k``: the offloads of NICs, as ``ethtool -k`` prints them.

They are facts (``offload.tcp-segmentation-offload``: true or false), so that runs whose offloads differ are told apart.  Of
several NICs in a file their names are in the facts' too.  Older ethtools had another heading, and some names without
hyphens, which are read as those of today.  Source: ethtool(8) and its own output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_HEAD = re.compile(r"(?:Features|Offload parameters) for (\S{1,64}):\s*")
_BEGINS = re.compile(rb"(?:[^\n]{0,200}\n)?\s*(?:Features|Offload parameters) for \S{1,64}:[ \t]*\r?\n")
"""The command may stand before it."""
_FEATURE = re.compile(r"\s*([a-z0-9][a-z0-9 _-]*): (on|off)(?: \[[a-z ]+\])*\s*")
_NOT_TOLD = "Cannot get device "


class EthtoolFeatures(Format):
    """The format."""

    name = "ethtool-k"
    summary = "offloads of NICs, of ethtool -k"
    metrics: Sequence[Metric] = ()

    def recognises(self, head: bytes) -> bool:
        return _BEGINS.match(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        nics: dict[str, dict[str, bool]] = {}
        features: dict[str, bool] | None = None
        diagnostics: list[Diagnostic] = []
        for number, line in enumerate(source.text().split("\n"), 1):
            if head := _HEAD.fullmatch(line):
                features = nics.setdefault(head[1], {})
            elif features is not None and line.strip():
                match = _FEATURE.fullmatch(line)
                if line.startswith(_NOT_TOLD):
                    diagnostics.append(Diagnostic(line.strip()[:120], number, harmless=True))
                elif match is None:
                    diagnostics.append(Diagnostic(f"is no feature that can be read: {line.strip()[:80]!r}", number))
                elif features.setdefault(name := match[1].replace(" ", "-"), match[2] == "on") != (match[2] == "on"):
                    diagnostics.append(Diagnostic(f"has {name} a second time, and otherwise", number))
        if not any(nics.values()):
            raise FormatError("has no feature of ethtool -k")
        facts = {
            f"offload.{name}" if len(nics) == 1 else f"offload.{nic}.{name}": state
            for nic, own in nics.items()
            for name, state in own.items()
        }
        return [Measurement(diagnostics=diagnostics, facts=facts)]


ethtool_features = EthtoolFeatures()
