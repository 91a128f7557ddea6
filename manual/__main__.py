"""Make the manual's generated pages, and check its wording.

    python -m manual pages                      the pages that the site is built from: `make manual`
    python -m manual man FOLDER                 a man page of each command
    python -m manual handbook RESULTS -o FILE   the handbook with results of your own
    python -m manual keep RESULTS [-o FOLDER]   results as an archive for the manual: FOLDER/NAME.zip, else in docs/measured
    python -m manual readme                     the output of README.md's examples, put into README.md
    python -m manual strings [PATH ...]         every text that a user may see, with its place, to be read as an editor would
    python -m manual wording [PATH ...]         the texts that break a rule of wording, docstrings too, and how many there are

`make manual` runs the first one.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from manual import commands, console, handbook, measured, pages, wording

SITE = Path(__file__).parents[1] / "dist" / "pages"
"""Where mkdocs.yml has the builder read."""
README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    """Run one of the commands above."""
    parser = argparse.ArgumentParser(
        prog="python -m manual", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    kinds = parser.add_subparsers(required=True, dest="command")
    kinds.add_parser("pages")
    kinds.add_parser("man").add_argument("folder", type=Path)
    own = kinds.add_parser("handbook")
    own.add_argument("results", nargs="+", type=Path)
    own.add_argument("-o", "--output", type=Path, required=True)
    kept = kinds.add_parser("keep")
    kept.add_argument("results", nargs="+", type=Path)
    kept.add_argument("-o", "--output", type=Path, default=measured.MEASURED)
    kinds.add_parser("readme")
    for name in ("strings", "wording"):
        kinds.add_parser(name).add_argument("paths", nargs="*", type=Path, default=[Path("src/twinbed")])
    given = parser.parse_args()
    match given.command:
        case "pages":
            shutil.rmtree(SITE, ignore_errors=True)
            pages.write(SITE)
        case "man":
            commands.write_man(given.folder)
        case "handbook":
            given.output.write_text(pages.completed("handbook.md", handbook.text(given.results)), encoding="utf-8")
        case "keep":
            measured.keep(given.results, given.output)
        case "readme":
            README.write_text(console.filled(README.read_text(encoding="utf-8"), keep_mark=True), encoding="utf-8")
        case "strings":
            for each in wording.texts(given.paths, docstrings=False):
                sys.stdout.write(f"{each.path}:{each.line}: {' '.join(each.text.split())}\n")
        case "wording":
            wrong = [each for each in wording.texts(given.paths) if each.problems]
            for each in wrong:
                sys.stdout.write(f"{each.path}:{each.line}: {'; '.join(each.problems)}\n")
            sys.stdout.write(f"{len(wrong)} texts to rewrite\n")


if __name__ == "__main__":
    main()
