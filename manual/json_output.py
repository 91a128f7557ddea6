"""The page of what ``--json`` prints, from examples that are run.

Values are shown by their types, and of a list the first element alone, so that the page says what there is, not what one
machine measured. tests/unit/cli/test_json.py runs the examples too.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from twinbed.cli.envelope import WITHOUT
from twinbed.cli.main import run

ROOT = Path(__file__).parents[1]
STUDY = """study: demo
testbeds: {a: {driver: fake, seed: 1}, b: {driver: fake, seed: 2}}
workload: {kind: planted, features: 2}
instruments: []
factors: {testbed: [a, b], workload.rate: [1000, 2000]}
replicates: 6
"""
CAPTURE = "http-short.pcap"
EXAMPLES = {
    "run": "demo.yaml",
    "init": "mine.yaml --testbeds container",
    "check": "demo.yaml",
    "plan": "demo.yaml",
    "compare": "results/demo",
    "passport": "results/demo",
    "explain": "results/demo",
    "analyse anova": "results/demo",
    "analyse regression": "results/demo --formula 'requests_per_second ~ testbed'",
    "analyse stalls": "results/demo",
    "advise": "results/demo",
    "merge": "results/demo results/other -o results/both --rename other:a=c --rename other:b=d --dry-run",
    "report": "results/demo --markdown",
    "export": "results/demo -o exported --metrics",
    "archive": "results/demo -o demo.zip",
    "import": "exported/metrics -o results/imported --manifest exported/metrics/import.yaml --dry-run",
    "flows": CAPTURE,
    "connections": CAPTURE,
    "match": f"{CAPTURE} {CAPTURE}",
    "published list": "",
    "published show": "ONL-3",
    "published replay": "ONL-4",
    "published audit": "",
    "image list": "",
    "setup": "container",
    "studies": "",
    "sweep": "--dry-run",
    "prune": "results/demo --keep tables --dry-run",
}
"""Command -> the rest of a command line. Others of the same group print theirs in the same way."""
WIDTH = 80
"""Characters of a line that the site shows without scrolling."""


def prepared() -> None:
    """Put the study of the examples, carried out twice, and a capture into the current folder."""
    Path("demo.yaml").write_text(STUDY)
    Path(CAPTURE).write_bytes((ROOT / "tests" / "golden" / "captures" / CAPTURE).read_bytes())
    for options in ((), ("-o", "results/other", "--no-report")):
        with redirect_stdout(io.StringIO()):
            assert run(["run", "demo.yaml", "-q", *options]) == 0


def output(arguments: list[str]) -> tuple[int, str]:
    """Return the exit code of a command line, and what it wrote to standard output."""
    taken = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(taken), redirect_stderr(io.StringIO()) as errors:
        code = run(arguments)
    text = taken.buffer.getvalue().decode()  # type: ignore[attr-defined]
    if not text:
        raise AssertionError(f"twinbed {shlex.join(arguments)}: exit code {code}: {errors.getvalue()}")
    return code, text


def line(command: str, *options: str) -> list[str]:
    """Return the words of an example's command line."""
    return [*command.split(), *shlex.split(EXAMPLES[command]), *options]


def shape(value: object) -> object:
    """Return a value with its types in place of its contents."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    if isinstance(value, bool):
        return "yes or no"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else None


def laid_out(value: object, indent: str = "", before: str = "") -> str:
    """Return JSON in which a value that fits behind its indent and ``before`` is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent + before + line) < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = f"{indent}  "
    names = [f"{json.dumps(name)}: " for name in value] if isinstance(value, dict) else [""] * len(value)
    lines: list[str] = []
    for name, each in zip(names, value.values() if isinstance(value, dict) else value, strict=True):
        member = name + laid_out(each, inner, name)
        if lines and "\n" not in lines[-1] + member and len(f"{inner}{lines[-1]}, {member}") < WIDTH:
            lines[-1] += f", {member}"
        else:
            lines.append(member)
    brackets = "{}" if isinstance(value, dict) else "[]"
    return f"{brackets[0]}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{brackets[1]}"


def text() -> str:
    """Return an example of each command, as it was run now."""
    parts = ["## Commands without `--json`\n\n", *(f"- `{name}`: {reason}.\n" for name, reason in WITHOUT.items())]
    with tempfile.TemporaryDirectory(prefix="twinbed-json-") as folder, contextlib.chdir(folder):
        prepared()
        for command in EXAMPLES:
            words = line(command, "--json")
            result = json.loads(output(words)[1])["result"]
            parts.append(f"\n## {command}\n\n`twinbed {shlex.join(words)}`\n\n```json\n{laid_out(shape(result))}\n```\n")
    return "".join(parts)
