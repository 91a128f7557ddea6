"""``twinbed schema``: what an editor needs to complete and check study files."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("schema")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it there; else it is printed.")
def command(output: Path | None) -> None:
    """A JSON Schema of study files (draft 7), by which an editor completes keys and marks what is wrong.

    Editors that use yaml-language-server (VS Code's extension "YAML", Neovim, Emacs, Helix, ...) take it from the first line
    of a study, with a path from the study's own folder or an address:

    \b
      # yaml-language-server: $schema=schema.json

    \b
    Examples:
      twinbed schema -o schema.json
      check-jsonschema --schemafile schema.json my.yaml
    """
    from twinbed.registry import catalogue
    from twinbed.study.schema import schema

    text = json.dumps(schema(catalogue()), indent=1, ensure_ascii=False) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
