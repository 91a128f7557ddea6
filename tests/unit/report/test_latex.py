"""Tables as LaTeX has them: floating where they fit a page, else over as many pages as they take."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from synthetic_results import planted_response, write_study
from twinbed.cli.main import run
from twinbed.render.latex_text import LONG, needs, table


def made(rows: int, columns: int = 4) -> str:
    heads = [f"h{at}" for at in range(columns)]
    body = [[f"payload {row}kB, offload on", *[r"14,420 $\pm$ 1.2\%"] * (columns - 1)] for row in range(rows)]
    return table(f"{rows} rows. " + "A caption of several lines. " * 6, f"tab-{rows}", "l" + "r" * (columns - 1), heads, body)


def test_a_table_with_more_rows_than_a_page_does_not_float() -> None:
    short, long = made(LONG - 1), made(LONG)
    assert short.count(r"\begin{table}") == 1 and needs([short]) == r"\usepackage{booktabs}"
    assert r"\begin{table}" not in long and needs([short, long]) == r"\usepackage{booktabs,longtable}"
    assert long.count("h0 & h1 & h2 & h3") == 2, "the heads are on every page"
    for text, rows in ((short, LONG - 1), (long, LONG)):
        assert len(re.findall(r"^ *payload \d+kB, .*\\\\$", text, re.M)) == rows
        assert text.count(r"\label{") == 1
        assert text.count(r"\begin{") == text.count(r"\end{") and text.isascii()


def test_a_regression_of_a_factor_with_many_levels(tmp_path: Path) -> None:
    rows = [f"{at % 7 + level / 10},nic {level}" for level in range(60) for at in range(3)]
    (tmp_path / "rates.csv").write_text("\n".join(["rate,nic", *rows]) + "\n")
    file = tmp_path / "long.tex"
    assert run(["analyse", "regression", str(tmp_path / "rates.csv"), "--formula", "rate ~ nic", "-o", str(file)]) == 0
    text = file.read_text()
    assert text.partition("\n")[0].endswith(r": needs \usepackage{booktabs,longtable}")
    assert len(re.findall(r"^ *nic nic \d+ & .*\\\\$", text, re.M)) == 59, "all but the base"
    assert text.count(r"\midrule") == 3 and text.count(r"\label{") == 1
    if compiler := shutil.which("pdflatex"):
        whole = r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}\input{long.tex}\end{document}"
        (tmp_path / "all.tex").write_text(whole)
        argv = [compiler, "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        assert re.search(r"\([2-9] pages", done.stdout)


def test_a_report_of_a_hundred_cells(tmp_path: Path) -> None:
    factors = {"payload": [f"{size}kB" for size in range(1, 101)]}
    write_study(tmp_path / "results", ["one", "two"], factors, 3, planted_response({"one": 1.0, "two": 0.9}, 0.02, 1))
    assert run(["report", str(tmp_path / "results"), "--latex", "-o", str(tmp_path / "report.tex")]) == 0
    text = (tmp_path / "report.tex").read_text()
    first = text.partition("\n")[0]
    assert first.endswith(r": needs \usepackage{booktabs,longtable}")
    assert {f"payload {size}kB" for size in range(1, 101)} == set(re.findall(r"^ +(payload \d+kB)", text, re.M))
    assert max(len(each.splitlines()) for each in re.findall(r"\\begin\{table\}.*?\\end\{table\}", text, re.S)) < LONG + 12
    # Where there is LaTeX, its own word on it: in small and large type, with the longest table that floats and a wide one.
    if compiler := shutil.which("pdflatex"):
        (tmp_path / "float.tex").write_text(made(LONG - 1))
        (tmp_path / "wide.tex").write_text(made(LONG, 12))
        files = "".join(f"\\input{{{name}.tex}}" for name in ("report", "float", "wide"))
        for size, pages in (("10pt", 6), ("12pt", 8)):
            whole = (
                f"\\documentclass[{size}]{{article}}{first.partition('needs ')[2]}\\begin{{document}}{files}\\end{{document}}"
            )
            (tmp_path / "all.tex").write_text(whole)
            argv = [compiler, "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
            done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:]
            assert "Float too large" not in done.stdout
            said = re.search(r"\((\d+) pages", done.stdout)
            assert said is not None and int(said[1]) >= pages, "nothing is cut off at the end of a page"
