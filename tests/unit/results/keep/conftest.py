"""Results whose runs have a capture beside the planted answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from synthetic_results import planted_response, write_study

CAPTURE = Path(__file__).parents[3] / "golden" / "captures" / "zeek-get.pcap"
PACKETS = 14
"""In it, by capinfos; the longest has 1,514 bytes, all of them captured."""


def with_captures(results: Path) -> Path:
    """Gives every run a capture of its client's link, as the instrument ``packets`` leaves it."""
    for home in (results / "runs").iterdir():
        machine = home / "artifacts" / "machine"
        machine.mkdir()
        shutil.copy(CAPTURE, machine / "client.pcap")
        counted = f"{PACKETS} packets captured\n{PACKETS} packets received by filter\n0 packets dropped by kernel\n"
        (machine / "client.tcpdump.err").write_text(counted)
        record = json.loads((home / "run.json").read_text())
        record["settings"]["instruments"] = {"packets": {"kind": "packets"}}
        record["artifacts"] += [
            {"path": f"artifacts/machine/{file.name}", "bytes": file.stat().st_size} for file in sorted(machine.iterdir())
        ]
        (home / "run.json").write_text(json.dumps(record))
    return results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)
    return with_captures(write_study(tmp_path / "study", ["physical", "virtio"], {}, 2, respond))
