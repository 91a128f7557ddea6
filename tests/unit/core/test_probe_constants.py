"""What the probe and the controller must both know stands in Rust and in Python: here the two are held against each other."""

import re
from pathlib import Path

from twinbed.hosts import connection, lease

SOURCES = Path(__file__).resolve().parents[3] / "crates" / "probe" / "src"


def _strings(name: str) -> dict[str, str]:
    return dict(re.findall(r'^const ([A-Z_]+): &str = "([^"]+)";$', (SOURCES / name).read_text(), re.MULTILINE))


def test_kinds_of_frames() -> None:
    (kinds,) = re.findall(r"pub enum Kind \{(.*?)\}", (SOURCES / "frame.rs").read_text(), re.DOTALL)
    of_probe = {name.upper(): int(number, 16) for name, number in re.findall(r"(\w+) = 0x([0-9a-f]+),", kinds)}
    numbers = {name: value for name, value in vars(connection).items() if name.isupper() and isinstance(value, int)}
    assert numbers.pop("MAX_PAYLOAD_BYTES") == 1 << 20
    del numbers["_LONGEST_MESSAGE"]
    assert "pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;" in (SOURCES / "frame.rs").read_text()
    assert of_probe == numbers


def test_folders_of_a_lease() -> None:
    folders = {"ARTIFACTS": lease.ARTIFACTS, "UNDO": lease.UNDO, "PROGRAMS": lease.PROGRAMS}
    assert _strings("lease.rs") == folders
