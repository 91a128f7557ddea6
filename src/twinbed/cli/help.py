"""`twinbed help`: what ``--help`` prints, by the words that people try first."""

from __future__ import annotations

import click

from twinbed.terminal import say_text


@click.command(name="help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Explain COMMAND, or twinbed as a whole.

    \b
    Examples:
      twinbed help plan
      twinbed help analyse anova
    """
    of = context.find_root()
    left = list(words)
    while left:
        if not isinstance(of.command, click.Group):
            raise click.UsageError(f"{of.command_path} has no commands of its own", of)
        name, found, left = of.command.resolve_command(of, left)
        assert found is not None
        of = of.__class__(found, info_name=name, parent=of)
    say_text(of.get_help() + "\n")
