"""``twinbed schema``: what an editor needs to complete and check study files."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.terminal import as_json, say_text


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
    from twinbed.render.output import write
    from twinbed.study.schema import schema

    text = as_json(schema(catalogue())) + "\n"
    if output is None:
        say_text(text)
    else:
        write(text, output)
