"""``twinbed schema``: print a JSON Schema with which an editor completes and checks study files."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.terminal import as_json, say_text


@click.command("schema")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File to write. Default: standard output."
)
def command(output: Path | None) -> None:
    """Print a JSON Schema of study files (draft 7), with which an editor completes keys and marks errors.

    \b
    Examples:
      twinbed schema -o schema.json

    Editors with yaml-language-server (VS Code's extension "YAML", Neovim, Emacs, Helix) find it by the first line of a study,
    a path from the study's folder or an address:

    \b
      # yaml-language-server: $schema=schema.json

    Without an editor: `check-jsonschema --schemafile schema.json my.yaml`.
    """
    from twinbed.registry import catalogue
    from twinbed.render.output import write
    from twinbed.study.schema import schema

    text = as_json(schema(catalogue())) + "\n"
    if output is None:
        say_text(text)
    else:
        write(text, output)
