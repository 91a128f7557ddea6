"""The recorded conversation with a real minimega 3.0, as data."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

TUNNEL_MADE: dict[str, Any] = {"Response": "", "Header": None, "Tabular": None, "Error": "", "Data": None}
"""What minimega 3.1.0 answered to `namespace tt cc tunnel g 4444 127.0.0.1 7000`, but for the node's name."""
TRANSCRIPT = Path(__file__).with_name("transcript.jsonl")


@functools.cache
def entries() -> list[tuple[str, list[dict[str, Any]]]]:
    """(command, objects of its answer), in their order."""
    lines = [json.loads(line) for line in TRANSCRIPT.read_text().splitlines()]
    return [(line["send"]["Command"], line["receive"]) for line in lines]


def answer(command: str, occurrence: int = 0) -> dict[str, Any]:
    """What the one node answered."""
    found = [objects for sent, objects in entries() if sent == command]
    return dict(found[occurrence][0]["Resp"][0])


def header(command: str) -> list[str]:
    return list(next(objects[0]["Resp"][0]["Header"] for sent, objects in entries() if sent == command))


def machine(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """A guest of the recording: its row of `vm info`, and the data behind it."""
    said = answer("namespace lab1 vm info")
    row = next(dict(zip(said["Header"], row, strict=True)) for row in said["Tabular"] if row[1] == name)
    return row, dict(next(item for item in said["Data"] if item["Name"] == name))
