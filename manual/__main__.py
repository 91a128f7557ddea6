"""What the manual is made with.

python -m manual pages                       the pages that the site is built from: `make manual`
python -m manual man FOLDER                  a man page of each command
python -m manual handbook RESULTS -o FILE    the handbook with results of your own
python -m manual keep RESULTS                results for the manual's handbook, as docs/measured/NAME.zip
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from manual import commands, handbook, measured, pages

SITE = Path(__file__).parents[1] / "dist" / "pages"
"""Where mkdocs.yml has the builder read."""


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
    kinds.add_parser("keep").add_argument("results", nargs="+", type=Path)
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
            measured.keep(given.results)


if __name__ == "__main__":
    main()
