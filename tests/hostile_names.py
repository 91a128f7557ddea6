"""Puts hostile names in every place of results, studies, imports and captures, and gives them to every command in every form.

    python tests/hostile_names.py --cases 20 --seed 1

A case is made from a seed: the same seed is the same case again. Each runs in a process of its own, so that an abort of a
library is found. Nothing of the program under test is used to judge it.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthetic_results import planted_response, write_study

REPOSITORY = Path(__file__).parents[1]
FORGED = "FORGED-LINE"
"""A line that begins with it was made by a name."""
NAMES = {
    "clear the screen": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "device control": "\x1bP+q544e\x1b\\",
    "C1 sequence": "\x9b31m\x9d0;t\x9c",
    "return": "good\rbad",
    "backspace": "bad\x08\x08\x08good",
    "delete": "a\x7fb",
    "override": "\u202etnelaviuqe\u202c",
    "isolate": "\u2066a\u2069\u061c\u200f",
    "nothing to see": "\u200b\ufeff\u2060\u00ad",
    "tags": "a\U000e0041\U000e007f",
    "line separator": f"a\u2028{FORGED}\u2029{FORGED}",
    "newline": f"a\n{FORGED} equivalent",
    "vertical": f"a\x0b{FORGED}\x0c{FORGED}\x85{FORGED}",
    "NUL": "a\x00b",
    "tab": "\ta\tb",
    "surrogate": "a\udcffb\ud800",
    "unassigned": "a\u0378\uffff\U0010ffff",
    "backslash": "\\",
    "group": "\\g<0>\\1\\q",
    "braces": "{}{0}{name!r}",
    "attribute": "{0.__class__.__mro__}",
    "open brace": "{",
    "percent": "%s%n%(x)d%",
    "dollar": "${HOME}$(id)`id`",
    "rich": "[red]x[/red][link=http://x]y[/link]",
    "rich closing": "[/]",
    "emoji code": ":smile:",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3+cmd|' /C calc'!A0",
    "at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "tab formula": "\t=1+1",
    "return formula": "\r=1+1",
    "wide formula": "＝1+1",
    "script": "<script>alert(1)</script>",
    "entity": "&lt;&#x202e;&amp",
    "attribute end": "\"'><img src=x onerror=alert(1)>",
    "CDATA": "]]><!--",
    "LaTeX": "\\input{/etc/passwd}$x^2$#%&~_{}",
    "LaTeX option": "[2cm]*",
    "Markdown": "[a](http://x) ![b](http://y) `c` **d** | e",
    "long": "x" * 300,
    "longer": "y z" * 700,
    "family": "👩\u200d👩\u200d👧🏽\ufe0f",
    "combining": "e" + "\u0301\u0335" * 60,
    "Arabic": "שלום مرحبا",
    "Chinese": "性能测试",
    "space": " ",
    "dot": ".",
    "two dots": "..",
    "slash": "a/../b",
    "option": "--help",
    "comma": "a,b;c:d=e",
    "field": "datum['x'].y[0]",
    "all": "all",
    "number": "1e309",
    "NaN": "NaN",
    "null": "null",
    "double quotes": '"""',
    "quote": "'''",
}
NOT_IN_PATHS = re.compile(r"[/\0\ud800-\udbff]")
LAYOUT = "\n\t"


@dataclass(slots=True)
class Case:
    seed: int
    folder: Path
    figures: bool = True
    chance: random.Random = field(init=False)
    hostile: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        names = list(NAMES)
        random.Random(0).shuffle(names)
        # Each name comes in turn, so that a few cases have all of them.
        start = self.seed * 17 % len(names)
        self.hostile = [NAMES[each] for each in (*names[start:], *names[:start])]

    def name(self) -> str:
        """The next one."""
        self.hostile.append(taken := self.hostile.pop(0))
        return taken

    def names(self, count: int) -> list[str]:
        """Several, which differ."""
        chosen: list[str] = []
        while len(chosen) < count:
            if (name := self.name()) not in chosen:
                chosen.append(name)
        return chosen

    def mixed(self) -> str:
        """Two of them, with what is harmless around."""
        return f"a {self.name()} b {self.name()}"

    def file_name(self) -> str:
        """One that a file may have."""
        while True:
            name = os.fsencode(NOT_IN_PATHS.sub("", self.name()).encode("utf-8", "surrogateescape"))[:120]
            text = os.fsdecode(name)
            if text.strip() and text not in (".", ".."):
                return text


def write_results(case: Case, folder: Path) -> dict[str, Any]:
    """A results folder with hostile names everywhere; those that commands may be given."""
    testbeds = case.names(3)
    factor, level, other = case.names(3)
    response = planted_response(dict(zip(testbeds, (1.0, 1.03, 0.5), strict=True)), 0.02, seed=case.seed)
    write_study(folder, testbeds, {factor: [level, other]}, 3, response, passport={case.name(): {case.name(): case.mixed()}})
    for number, run in enumerate(sorted((folder / "runs").iterdir())):
        record = json.loads((run / "run.json").read_text())
        record["cautions"] = [{"kind": "SOFTWARE_CPU", "subject": case.mixed(), "detail": case.mixed()}]
        record["machine"] = case.name()
        record["settings"]["workload"][case.name()] = case.mixed()
        record["settings"]["testbed"][case.name()] = case.name()
        record["twinbed"], record["lab"] = case.name(), case.name()
        record["phases"] = {"up": 0.5, case.name(): 1.0}
        if number % 7 == 3:
            record |= {"status": "failed", "failed_phase": case.name(), "reason": case.mixed()}
        (run / "run.json").write_text(json.dumps(record))
        applied = [dict(zip(("subject", "setting", "asked", "found", "source"), case.names(5), strict=True))]
        (run / "applied.json").write_text(json.dumps(applied))
        passport = {host: {case.name(): case.mixed(), "kernel": case.name()} for host in ("client", case.name())}
        (run / "passport.json").write_text(json.dumps(passport))
    study = json.loads((folder / "study.json").read_text())
    study["study"] = case.mixed()
    study["import"] = {
        "formats": {case.name(): 1},
        "files": {case.name(): 1},
        "not_read": [{"path": case.name(), "what": case.name(), "reason": case.mixed()}],
    }
    (folder / "study.json").write_text(json.dumps(study))
    return {"testbeds": testbeds, "factor": factor, "level": level}


def write_study_file(case: Case, file: Path) -> None:
    """A study whose names are hostile; JSON is YAML."""
    a, b, factor = case.names(3)
    study = {
        "study": case.name(),
        "testbeds": {a: {"driver": "fake", "seed": 1}, b: {"driver": "fake", case.name(): case.name()}},
        "workload": {"kind": "planted", "seconds": "0s", case.name(): case.name()},
        "factors": {factor: case.names(2)},
        "instruments": [case.name()],
        "replicates": 2,
        case.name(): case.name(),
    }
    file.write_text(json.dumps(study))


def write_import(case: Case, folder: Path) -> None:
    """Tables of somebody's own: hostile paths, columns, metrics and levels."""
    columns = case.names(2)
    for testbed in ("a", case.file_name()):
        for level in (case.file_name(), case.file_name()):
            place = folder / testbed / level
            place.mkdir(parents=True, exist_ok=True)
            for replicate in range(3):
                with (place / f"{replicate}.csv").open("w", newline="", encoding="utf-8", errors="surrogatepass") as stream:
                    rows = [["rate", *columns], [100.0 + replicate, 1.5 + replicate, case.mixed()]]
                    csv.writer(stream).writerows(rows)
    (folder / case.file_name()).write_bytes(case.mixed().encode("utf-8", "surrogatepass"))
    metric = case.name()
    about = {
        "testbeds": {"a": {case.name(): case.name()}},
        "files": [
            {
                "pattern": "{testbed}/{size}/{replicate}.csv",
                "format": "generic-csv",
                "levels": {case.name(): case.name()},
                "options": {"columns": {"rate": "requests_per_second", columns[0]: metric}},
                "metrics": [{"name": metric, "unit": case.name(), "layer": "application", "scale": "ratio"}],
            }
        ],
    }
    (folder.parent / "manifest.yaml").write_text(json.dumps(about))


Call = tuple[str, Sequence[object]]


def calls(case: Case, home: Path) -> Iterator[Call]:
    """Every command in each of its forms. A name of a call is the command's, and a form."""
    results, more, place = home / "results", home / case.file_name(), home / "out"
    about = write_results(case, results)
    write_results(case, more)
    place.mkdir()
    testbed, factor, level = about["testbeds"][1], about["factor"], about["level"]
    for form in ([], ["--all"], ["--csv"], ["--json"], ["-q"], ["-v"]):
        option = ["--format", "csv"] if form == ["--csv"] else form
        yield "compare", (results, *option)
    yield "compare", (results, "--by", factor)
    yield "compare", (results, "--reference", testbed)
    yield "compare", (results, "--metric", case.name())
    yield "compare", (results, more)
    yield "compare", (home / case.file_name(),)
    for form in ("--markdown", "--latex", "--csv", "--tables-csv"):
        yield "report", (results, form, "-o", "-")
        yield "report", (results, form, "-o", place / f"report{form}")
    yield "report", (results, "--json", "--markdown", "-o", "-")
    yield "report", (more, "--markdown")
    for form in ("text", "json", "markdown"):
        yield "advise", (results, more, "--format", form)
    for command in ("explain", "calibrate", "anatomy"):
        for form in ("text", "json", "csv"):
            yield command, (results, "--format", form)
        yield command, (results, "--html", place / f"{command}.html")
    yield "calibrate", (results, "--from", testbed, "--to", about["testbeds"][0], "-o", place / "calibration.json")
    yield "predict", (place / "calibration.json", f"--{factor}", level)
    yield "predict", (place / "calibration.json", "--with", more, "--format", "json")
    for name, given in (
        ("anova", ()),
        ("regression", ("--formula", f"log(requests_per_second) ~ {factor}")),
        ("regression", ("--formula", "log(requests_per_second) ~ testbed")),
        ("capacity", ("--at-least", "1", "--over", factor)),
        *((name, ()) for name in ("contention", "tails", "steady", "stalls", "sockets", "monitor", "detectability")),
        *((name, ()) for name in ("multifidelity", "anomaly")),
    ):
        for form in ("text", "csv", "json"):
            yield f"analyse {name}", (results, *given, "--format", form)
    yield "analyse anova", (results, "--format", "latex", "--factor", factor)
    yield "analyse anova", (results, "--factor", case.name())
    yield "merge", (results, more, "-o", place / "merged", "--dry-run")
    yield "merge", (results, more, "-o", place / "merged")
    yield "merge", (results, "-o", place / "renamed", "--rename", f"results:{testbed}={case.name()}")
    yield "export", (results, "-o", place / "export", "--tables", "csv", "--latex", "--chains", "--flent", "--metrics")
    yield "archive", (results, "-o", place / "a.zip", "--title", case.name(), "--author", case.name())
    yield "compare", (place / "a.zip", "-q")
    yield "publish", (results, f"file://{place}/bucket")
    yield "publish", (results, case.name())
    yield "prune", (results, "--keep", case.name(), "--dry-run")
    yield "prune", (more, "--keep", "headers", "--dry-run")
    for form in ("text", "csv", "json"):
        yield "passport", (results, "--all", "--format", form)
        yield "passport", (f"{results}:{testbed}", more, "--format", form)
    yield "published compare", (results,)
    yield "published compare", (results, "--format", "csv")
    yield "published replay", ()
    yield "published audit", (case.name(),)
    capture = home / f"{case.file_name()}.pcap"
    shutil.copy(REPOSITORY / "tests/golden/captures/http-short.pcap", capture)
    for form in ("text", "csv", "json"):
        yield "flows", (capture, "--format", form)
        yield "connections", (capture, "--format", form)
        yield "match", (capture, capture, "--format", form)
    said = case.mixed().replace("\0", "").replace("\n", "")
    trace = "".join(f'{number} 1700000000.{number:06} read(3<{said}>, "{said}", 5) = 5\n' for number in range(10, 30))
    (home / "trace").write_bytes(trace.encode("utf-8", "surrogatepass"))
    for form in ("text", "json", "dot", "graphml", "svg"):
        yield "chain", (home / "trace", "--format", form, "--program", case.name())
        yield "chain", (results, "--format", form)
    write_study_file(case, home / "study.yaml")
    for command in ("plan", "check", "try", "run"):
        yield command, (home / "study.yaml",)
        yield command, (home / case.file_name(),)
        yield command, (home / "study.yaml", "-s", f"{case.name()}={case.name()}")
    yield "plan", ("quickstart", "--profile", case.name())
    yield "plan", ("quickstart", "--pilot", results)
    yield "plan", ("quickstart", "-s", f"seed={case.name()}")
    yield "run", ("quickstart", "--only", case.name())
    write_import(case, home / "measured")
    for form in ("text", "csv", "json"):
        yield "import", (home / "measured", "--dry-run", "--format", form)
    yield "import", (home / "measured", "--manifest", home / "manifest.yaml", "-o", place / "imported")
    about = json.loads((home / "manifest.yaml").read_text())["files"][0]
    about |= {"levels": {}, "metrics": [], "options": {"columns": {"rate": "requests_per_second"}}}
    (home / "tamer.yaml").write_text(json.dumps({"files": [about]}))
    yield "import", (home / "measured", "--manifest", home / "tamer.yaml", "-o", place / "imported")
    yield "import", (home / "measured", "--pattern", case.name(), "--testbed", case.name(), "--dry-run")
    yield "compare", (place / "imported", "--all")
    yield "compare", (place / "imported", "--format", "csv")
    yield "report", (place / "imported", "--latex", "-o", "-")
    yield "init", (place / case.file_name(),)
    for command in ("describe", "studies", "help", "schema", "image list", "setup", "sweep", "test-plugin"):
        yield command, (case.name(),)
    yield case.name(), ()
    yield "compare", (f"--{case.name()}",)
    if case.figures:
        yield "report", (results, "-o", place / "report.html")
        yield "export", (results, "-o", place / "figures", "--figures")
    if case.figures or case.chance.random() < 0.2:
        yield "report", (place / "imported", "-o", place / "imported.html")


def is_seen(character: str) -> bool:
    """Whether it is what it looks like, to a terminal and to a reader."""
    return character in LAYOUT or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")


def faults(words: Sequence[str], code: object, out: str, err: str) -> Iterator[str]:
    """What is wrong with what a command wrote."""
    if isinstance(code, str):
        yield code
    for name, text in (("standard output", out), ("standard error", err)):
        if raw := sorted({f"U+{ord(each):04X}" for each in text if not is_seen(each)}):
            yield f"{name} has {' '.join(raw[:8])}"
        if "Traceback (most" in text:
            yield f"{name} has a traceback"
        if any(line.startswith(FORGED) for line in text.splitlines()) and not {"csv", "--csv"} & set(words):
            yield f"{name} has a line that a name made"
    if "csv" in words or "--csv" in words or "--tables-csv" in words:
        yield from formulas(out)
    if ("json" in words or "--json" in words) and out:
        try:
            json.loads(out)
        except ValueError as error:
            yield f"no JSON: {error}"


def formulas(text: str) -> Iterator[str]:
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            if cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝")) and not re.fullmatch(
                r"[+-]?[\d.]+(e[+-]?\d+)?|-?(inf|nan)", cell
            ):
                yield f"a formula in CSV: {cell[:40]!r}"
                return


def faults_of_file(file: Path) -> Iterator[str]:
    if file.suffix in (".md", ".tex", ".csv", ".html", ".svg", ".dot", ".graphml", ".cff") or file.name.startswith("report--"):
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        if raw := sorted({f"U+{ord(each):04X}" for each in text if not is_seen(each)}):
            yield f"{file.suffix or file.name} has {' '.join(raw[:8])}"
        if "csv" in file.name:
            yield from formulas(text)


def one(run: Callable[[Sequence[str]], int], words: Sequence[str], home: Path) -> list[str]:
    """Run one command in this process; what is wrong."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogatepass", write_through=True) for _ in range(2))
    code: object
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(home):
        try:
            code = run(words)
        except BaseException as error:  # noqa: BLE001 -- each is a finding
            last = traceback.extract_tb(error.__traceback__)[-1]
            ours = next(
                (each for each in reversed(traceback.extract_tb(error.__traceback__)) if "twinbed/" in each.filename), last
            )
            code = f"{type(error).__name__} at {ours.filename.partition('twinbed/')[2]}:{ours.lineno}: {str(error)[:80]!r}"
    texts = [stream.buffer.getvalue().decode("utf-8", "surrogatepass") for stream in (out, err)]  # type: ignore[attr-defined]
    return list(faults(words, code, *texts))


def case_here(seed: int, figures: bool) -> None:
    """Make one case in this process, and report each call as a line of JSON."""
    from twinbed.cli.main import run

    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        home = Path(name) / "home"
        home.mkdir()
        for command, given in calls(Case(seed, home, figures), home):
            words = [*(command.split(" ") if command.isascii() else [command]), *map(str, given)]
            report.write(json.dumps({"begins": command, "words": words}) + "\n")
            report.flush()
            wrong = one(run, words, home)
            report.write(json.dumps({"command": command, "wrong": wrong}) + "\n")
        wrong = [
            fault
            for file in sorted((home / "out").rglob("*"))
            if file.is_file() and "runs" not in file.parts
            for fault in faults_of_file(file)
        ]
        report.write(json.dumps({"command": "files", "wrong": sorted(set(wrong))}) + "\n")
        report.flush()


@dataclass(slots=True)
class Outcome:
    calls: int = 0
    commands: set[str] = field(default_factory=set)
    wrong: Counter[str] = field(default_factory=Counter)

    def take(self, seed: int, done: subprocess.CompletedProcess[str]) -> None:
        begun = ""
        for line in done.stdout.splitlines():
            told = json.loads(line)
            begun = told.get("begins", "")
            if not begun:
                self.calls += 1
                self.commands.add(told["command"])
                self.wrong.update(f"{told['command']}: {fault}" for fault in told["wrong"])
        if done.returncode:
            self.wrong[f"{begun or 'the fuzzer'}: ended with {done.returncode}: {done.stderr[-1500:]}"] += 1


def campaign(seeds: Sequence[int], figures: Callable[[int], bool], limit_s: float = 600) -> Outcome:
    outcome = Outcome()
    for seed in seeds:
        argv = [sys.executable, __file__, "--only", str(seed), *([] if figures(seed) else ["--no-figures"])]
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=limit_s, env={**os.environ, "PYTHONPATH": path}
        )
        outcome.take(seed, done)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--no-figures", action="store_true")
    given = parser.parse_args()
    if given.only is not None:
        case_here(given.only, not given.no_figures)
        return 0
    seeds = range(given.seed, given.seed + given.cases)
    outcome = campaign(seeds, lambda _: not given.no_figures)
    for fault, count in outcome.wrong.most_common():
        sys.stdout.write(f"{count:5} {fault!r}\n")
    sys.stdout.write(
        f"{len(NAMES)} names, {given.cases} cases, {len(outcome.commands)} commands, {outcome.calls} calls: "
        f"{sum(outcome.wrong.values())} faults of {len(outcome.wrong)} kinds\n"
    )
    return int(bool(outcome.wrong))


if __name__ == "__main__":
    sys.exit(main())
