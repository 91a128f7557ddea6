"""When a NIC was reset is in the caution, as the log says it: a reader sees whether that was in the run."""

from pathlib import Path

import pytest

from twinbed.imports.text.source import File
from twinbed.registry import PLUGINS

HANG = "e1000e 0000:00:1f.6 eth7: Detected Hardware Unit Hang:"


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("[Mon Mar  7 10:11:12 2022]", "Mon Mar  7 10:11:12 2022"),
        ("2022-03-07T10:11:12,123456+01:00", "2022-03-07T10:11:12,123456+01:00"),
        ("Mar 07 10:11:12.123456 n1 kernel:", "Mar 07 10:11:12.123456"),
        ("Mar  7 10:11:12 n1 kernel: [   12.345678]", "12.345678 s"),
        ("[  +5.123456]", "+5.123456"),
    ],
)
def test_a_caution_has_the_time_that_the_log_prints(tmp_path: Path, stamp: str, at: str) -> None:
    file = tmp_path / "log"
    file.write_text(f"{stamp} {HANG}\n")
    (measurement,) = PLUGINS.formats["dmesg"].read(File(file, "log"), {})
    assert [caution.detail for caution in measurement.cautions] == [f"since boot, log: {HANG} (at {at})"]
