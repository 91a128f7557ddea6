"""`twinbed prune`: delete raw artifacts of results, and list what can then no longer be analysed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.terminal import say, say_progress

if TYPE_CHECKING:
    from twinbed.model.keep import Keep
    from twinbed.results.extract.rows import Readers
    from twinbed.results.keep.thin import Going
    from twinbed.results.store import Store


@click.command(name="prune")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--keep",
    "words",
    metavar="WORD|NAME=WORD",
    multiple=True,
    help="everything, headers or tables: for all artifacts, or for those of one instrument, workload or background load;"
    " may be repeated. Default: the study's `keep:`.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted; change nothing.")
def command(results: Path, words: tuple[str, ...], dry_run: bool) -> int:
    """Delete raw artifacts of the complete runs in RESULTS to save disk.

    \b
    Examples:
      twinbed prune results/quickstart --keep tables --dry-run
      twinbed prune results/quickstart --keep tables
      twinbed prune results/quickstart --keep packets=headers --keep syscalls=tables

    With `headers`, captures are cut to packet headers and compressed. With `tables`, artifacts are deleted, and the rows of
    all tables are kept in each run's folder. Every analysis prints the same as before.

    Data that only artifacts hold are lost for good: --dry-run lists them. Later versions of twinbed add nothing to the rows of
    pruned runs. Failed runs keep their files, and equal files of several runs are stored once. The command may be interrupted
    at any time; the same command again continues.
    """
    import twinbed
    from twinbed import registry
    from twinbed.cli.envelope import tell
    from twinbed.cli.extraction import extracted
    from twinbed.model.run import Status
    from twinbed.results.contents import forget, share
    from twinbed.results.extract import refuse_strange
    from twinbed.results.extract.rows import Readers
    from twinbed.results.folder import Folder, failed_writes_are_clear
    from twinbed.results.keep.thin import NotThinned, Thinned, Thinner
    from twinbed.show.quantities import quantity

    store = _opened(results)
    readers = Readers(registry.PLUGINS.read, registry.PLUGINS.accompanying)
    keep = _keep(words, store, readers)
    thinner = Thinner(store.path, keep, readers, twinbed.__version__)
    complete = [record for record in store.records if record.status is Status.COMPLETE]
    if dry_run:
        for record in complete:
            refuse_strange(store.path / "runs" / record.id)
        going = [artifact for record in complete for artifact in thinner.going(record)]
        say(*_summary(going, keep, readers, is_done=False))
        tell({"dry_run": True, "keep": keep.to_json(), "going": _rows(going)})
        return codes.DONE
    gone: list[Going] = []
    whole: dict[str, str] = {}
    total, shared = Thinned(), 0
    folder = Folder(store.path)
    with folder.locked():
        for number, record in enumerate(complete, start=1):
            going = list(thinner.going(record))
            try:
                thinned = thinner.thin(record)
            except NotThinned as error:
                whole[record.id] = str(error)
            else:
                gone += going
                total = Thinned(total.bytes + thinned.bytes, total.kept_bytes + thinned.kept_bytes)
            say_progress("pruning", number, len(complete), "runs", stays=True)
        with failed_writes_are_clear(folder.path):
            shared = sum(share(folder.runs / record.id, folder.path) for record in store.records)
            forget(folder.path)
    extracted(results, all_settings=True)
    say(*_summary(gone, keep, readers, is_done=True))
    say(f"{quantity(total.bytes, 'bytes')} deleted, {quantity(total.kept_bytes, 'bytes')} kept in their place.")
    if shared:
        say(f"{quantity(shared, 'bytes')} saved, as equal files of several runs are stored once.")
    for run, why in whole.items():
        say(f"twinbed: run {run} keeps everything, because it cannot be read: {why}", err=True)
    tell(
        {
            "dry_run": False,
            "keep": keep.to_json(),
            "going": _rows(gone),
            "bytes": total.bytes,
            "kept_bytes": total.kept_bytes,
            "shared_bytes": shared,
            "whole": sorted(whole),
        }
    )
    return codes.SOME_FAILED if whole else codes.DONE


def _opened(results: Path) -> Store:
    from twinbed.model.error import TwinbedError
    from twinbed.results.archive.unpack import is_archive
    from twinbed.results.store import Store

    if not is_archive(results):
        store = Store.open(results)
        if not store.frozen:
            return store
    raise TwinbedError(f"{results} is not a results folder with artifacts", advice="prune the folder that it was made from")


def _keep(words: Sequence[str], store: Store, readers: Readers) -> Keep:
    """Return what to keep, by the options or by the study. Raises TwinbedError for an unknown word or name."""
    from twinbed.model.error import TwinbedError
    from twinbed.model.keep import DEFAULT, Keep, Word
    from twinbed.model.near import did_you_mean, nearest
    from twinbed.results.keep.thin import plugins_of

    given: dict[str, str] = {}
    for option in words:
        name, equals, word = option.rpartition("=")
        given[name if equals else DEFAULT] = word
    if not words:
        of_study = store.outline.data.get("keep")
        if isinstance(of_study, str):
            given = {DEFAULT: of_study}
        elif isinstance(of_study, dict):
            given = {str(name): str(word) for name, word in of_study.items()}
        else:
            raise TwinbedError(f"the study in {store.shown} keeps everything", advice="choose what to keep: --keep tables")
    names = [*dict.fromkeys(plugin.name for record in store.records for plugin in plugins_of(record, readers)), DEFAULT]
    choices = [str(word) for word in Word]
    for name, word in given.items():
        for given_word, known, what in (
            (name, names, "not an artifact of these results"),
            (word, choices, "not a word of --keep"),
        ):
            if given_word not in known:
                near = did_you_mean(nearest(given_word, known))
                raise TwinbedError(
                    f"--keep: {given_word!r} is {what}; allowed: {', '.join(known)}", advice=near or "`twinbed prune --help`"
                )
    default = Word(given.pop(DEFAULT, Word.EVERYTHING))
    return Keep(default, {name: Word(word) for name, word in given.items() if word != default})


def _rows(going: Sequence[Going]) -> list[dict[str, object]]:
    """Return a row for the artifacts of each plugin."""
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for (owner, word), some in _groups(going).items():
        rows[owner, word] = {
            "artifacts": owner,
            "keep": word,
            "files": len(some),
            "bytes": sum(artifact.bytes for artifact in some),
        }
    return list(rows.values())


def _groups(going: Sequence[Going]) -> dict[tuple[str, str], list[Going]]:
    groups: dict[tuple[str, str], list[Going]] = {}
    for artifact in sorted(going, key=lambda artifact: (artifact.owner, artifact.word)):
        groups.setdefault((artifact.owner, str(artifact.word)), []).append(artifact)
    return groups


def _summary(going: Sequence[Going], keep: Keep, readers: Readers, *, is_done: bool) -> list[str]:
    from twinbed.model.keep import REST, Word
    from twinbed.render.rows import as_text
    from twinbed.results.keep import headers
    from twinbed.show.quantities import quantity

    if not going:
        return [f"Nothing to delete: the complete runs hold no more than that (keep: {keep})."]
    groups = _groups(going)
    table = [
        {
            "artifacts": owner,
            "keep": word,
            "files": len(some),
            "bytes": quantity(sum(artifact.bytes for artifact in some), "bytes"),
        }
        for (owner, word), some in groups.items()
    ]
    lines = ["Deleted:" if is_done else "To delete:", "", *as_text(table).rstrip().splitlines(), ""]
    lines.append("No longer available:" if is_done else "No longer available then:")
    plugins = {**readers.workloads, **readers.accompanying}
    for owner, word in groups:
        if word == Word.HEADERS:
            lines.append(f"  {owner}: packet data after the first {headers.BYTES} bytes; the rest is kept, compressed")
        elif owner == REST:
            lines.append(f"  {owner}: consoles, kernel logs, the packets of link checks")
        elif raw := plugins[owner].raw:
            lines.append(f"  {owner}: {raw}")
    lines.append("  all these runs: metrics and tables that later versions of twinbed will read from artifacts")
    return lines
