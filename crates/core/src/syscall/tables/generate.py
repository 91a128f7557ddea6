"""Makes the system-call tables beside this file: ``python generate.py FOLDER``.

FOLDER is an unpacked ``linux-raw-sys`` (Apache-2.0 or MIT; ``cargo add linux-raw-sys && cargo fetch`` in an empty crate puts
it under ``~/.cargo/registry/src``). That crate's constants are made by bindgen from the kernel's exported headers
(``asm/unistd.h`` of each architecture), so nothing here is typed by hand. ``tests/syscall_tables.rs`` holds the tables
against the headers of the machine that the tests run on.
"""

import re
import sys
from pathlib import Path

TABLES = {"x86_64": "x86_64", "aarch64": "aarch64", "i386": "x86"}
"""Our table: the crate's folder. aarch64 has the kernel's generic numbers, as riscv64 and loongarch64 have."""


def main(crate: Path) -> None:
    version = re.search(r'^version = "(.*)"', (crate / "Cargo.toml").read_text(), re.M)[1]
    for table, folder in TABLES.items():
        text = (crate / "src" / folder / "general.rs").read_text()
        calls = {int(number): name for name, number in re.findall(r"pub const __NR_(\w+): u32 = (\d+);", text)}
        lines = [f"# linux-raw-sys {version}, src/{folder}/general.rs, by generate.py"]
        lines += [f"{number} {name}" for number, name in sorted(calls.items())]
        Path(__file__).with_name(f"{table}.txt").write_text("\n".join(lines) + "\n")


main(Path(sys.argv[1]))
