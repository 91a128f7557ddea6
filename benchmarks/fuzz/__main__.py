"""The command line; what it does is in the package's own words."""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib.util
import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import benchmarks.fuzz
from benchmarks.campaign import table
from benchmarks.fuzz import targets
from twinbed.registry import PLUGINS
from twinbed.results.archive import layout

_HERE = Path(__file__).parent
_CORE = _HERE.parents[1] / "crates/core"
_GOLDEN = _HERE.parents[1] / "tests/golden"
_LARGEST = 4096
"""Bytes of an input. Longer ones say the same more slowly."""
_KEPT_BYTES = 512
"""Of an input that is kept: all corpora together stay small."""
_SEEDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("pcap", "compressed", "statistics", "connections", "packets", "pair"), ("captures/*.pcap", "tcp/*.pcap")),
    "pcapng": ("captures/*.pcapng",),
    "hello": ("tls/*.pcap",),
    "udp": ("udp/*.pcap",),
    "ab": ("http/**/*",),
    "wrk": ("http/**/*",),
    "counters": ("counters/*",),
    "stations": ("stations/*",),
    "system_calls": ("syscalls/**/*",),
    "study": ("studies/*.yaml", "../../studies/*.yaml"),
    "imported": ("formats/**/*",),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzz",
        description=benchmarks.fuzz.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rust = sorted(file.stem for file in (_CORE / "fuzz/fuzz_targets").glob("*.rs"))
    names = [*rust, *targets.TARGETS]
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="TARGET", help=", ".join(names))
    parser.add_argument("--jobs", type=int, default=2, help="targets side by side")
    parser.add_argument("--keep", action="store_true", help="add what is new to the corpora")
    options = parser.parse_args()
    if missing := list(_missing(options.only, rust)):
        parser.exit(2, "".join(f"{each}\n" for each in missing))
    binaries = _built() if set(options.only) & set(rust) else Path()

    def one(name: str) -> tuple[object, ...]:
        argv = [str(binaries / name)] if name in rust else [sys.executable, "-m", "benchmarks.fuzz.targets", name]
        runs, reached, found = _fuzzed(name, argv, options.seconds, keep=options.keep)
        sys.stderr.write(f"{name}: {runs:,} executions{f', {found}' if found else ''}\n")
        return name, "Rust" if name in rust else "Python", runs, reached, found or "none"

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(one, options.only))
    total = sum(int(str(row[2])) for row in rows)
    shown = [(name, kind, f"{runs:,}", reached, found) for name, kind, runs, reached, found in rows]
    sys.stdout.write(table(("target", "in", "executions", "edges", "not borne"), *shown, ("all", "", f"{total:,}", "", "")))
    return int(any(row[4] != "none" for row in rows))


def _missing(wanted: Sequence[str], rust: Sequence[str]) -> Iterator[str]:
    if set(wanted) & set(rust) and not shutil.which("cargo-fuzz"):
        yield "no cargo-fuzz: rustup toolchain install nightly && cargo install cargo-fuzz"
    if set(wanted) - set(rust) and importlib.util.find_spec("atheris") is None:
        yield f"no atheris: {sys.executable} -m pip install atheris"


def _built() -> Path:
    """The folder of the targets' programs. The readers are safe Rust: no sanitizer makes them three times as fast."""
    argv = ["cargo", "+nightly", "fuzz", "build", "--sanitizer", "none", "--release"]
    subprocess.run(argv, cwd=_CORE, check=True)
    (program,) = (_CORE / "fuzz/target").glob("*/release/pcap")
    return program.parent


def _fuzzed(name: str, argv: Sequence[str], seconds: int, *, keep: bool) -> tuple[int, str, str]:
    """(executions, edges of the program that were reached, what was found)."""
    corpus = _HERE / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="twinbed-fuzz-") as made:
        work, seeds, found = (Path(made, each) for each in ("work", "seeds", "found"))
        for folder in (work, seeds, found):
            folder.mkdir()
        seed(name, seeds)
        limits = [f"-max_total_time={seconds}", f"-max_len={_LARGEST}", "-timeout=20", "-rss_limit_mb=4096"]
        folders = [str(work), str(corpus), str(seeds)]
        done = subprocess.run(
            [*argv, *folders, *limits, "-print_final_stats=1", f"-artifact_prefix={found}/"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        done_runs = re.findall(r"^#(\d+)\s", done.stderr, re.MULTILINE)
        reached = re.findall(r"cov: (\d+)", done.stderr)
        kept = []
        for each in found.iterdir():
            kept.append(str(shutil.copy(each, corpus.parent / f"{name}-{each.name}")))
        if done.returncode and not kept:
            kept = [done.stderr[-600:]]
        if keep:
            _keep(argv, corpus, [str(corpus), *folders[:1], str(seeds)])
        number = int(runs[1]) if runs else int(done_runs[-1]) if done_runs else 0
        return number, reached[-1] if reached else "", "; ".join(kept)


def seed(name: str, folder: Path) -> None:
    """Beginnings of golden files; of captures their packets too, as targets put a header in front."""
    number, formats = 0, sorted(PLUGINS.formats) if name == "imported" else []
    if name == "archive":
        (folder / "archive").write_bytes(_archive())
    for pattern in _SEEDS.get(name, ()):
        for file in sorted(_GOLDEN.glob(pattern)):
            if file.is_file():
                content = file.read_bytes()[:_LARGEST]
                begun = [content, content[24:]] if file.suffix == ".pcap" else [content]
                if formats:
                    begun = [bytes([formats.index(each)]) + content for each in file.parts if each in formats]
                for each in begun:
                    (folder / f"{number}").write_bytes(each)
                    number += 1


def _archive() -> bytes:
    """A small archive with its sums."""
    files, memory = {"study.json": b'{"study": "small"}', layout.METADATA: b"{}"}, io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
        sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
        made.writestr(layout.CHECKSUMS, "".join(sums))
    return memory.getvalue()


def _keep(argv: Sequence[str], corpus: Path, folders: Sequence[str]) -> None:
    """The fewest inputs that reach what all together reach, of those that are short."""
    with tempfile.TemporaryDirectory(prefix="twinbed-fuzz-") as made:
        merge = [*argv, "-merge=1", f"-max_len={_KEPT_BYTES}", made, *folders]
        subprocess.run(merge, capture_output=True, check=False)
        fewer = sorted(Path(made).iterdir(), key=lambda file: (file.stat().st_size, file.name))
        for old in corpus.iterdir():
            old.unlink()
        for file in fewer[:_MOST_KEPT]:
            shutil.copy(file, corpus / file.name[:12])


_MOST_KEPT = 60


if __name__ == "__main__":
    sys.exit(main())
