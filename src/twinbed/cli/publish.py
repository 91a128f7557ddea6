"""`twinbed publish`: upload results to a bucket, where others read them."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.contracts import exit_codes as codes
from twinbed.model.amount import amount
from twinbed.terminal import say, say_progress


@click.command(name="publish")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("address", metavar="ADDRESS")
@click.option("--raw/--no-raw", default=True, show_default=True, help="Include the raw artifacts, one object for each run.")
def command(results: Path, address: str, raw: bool) -> int:
    """Upload RESULTS to ADDRESS: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, or file:///FOLDER.

    \b
    Examples:
      twinbed publish results/quickstart s3://lab/quickstart
      twinbed publish results/quickstart file:///srv/results/quickstart --no-raw      only tables and settings
      twinbed compare s3://lab/quickstart                                             on any machine

    The same command again adds new runs. Commands that read results read the address too, without artifacts. Readers see
    either the whole upload or nothing of it.
    """
    import twinbed
    from twinbed.cli.envelope import tell
    from twinbed.cli.extraction import extracted
    from twinbed.model.error import TwinbedError
    from twinbed.results.bucket.address import address_of
    from twinbed.results.bucket.publish import Publisher

    to = address_of(address)
    if to is None:
        raise TwinbedError(f"{address} is not an address", advice="give one such as s3://BUCKET/PREFIX or file:///FOLDER")
    if bucket := address_of(results):
        raise TwinbedError(f"{bucket} is published already", advice="give the results folder instead")

    def progress(done: int, total: int) -> None:
        say_progress("publishing", done, total, "runs", stays=True)

    store = extracted(results, all_settings=True)
    done = Publisher(store, to, twinbed.__version__, raw=raw, on_progress=progress).publish()
    tell({"published": str(to), "snapshot": done.snapshot, "runs": done.runs, "added": done.added, "bytes": done.bytes})
    say(f"{to}: {amount(done.added, 'run')} added, {done.runs} in all (snapshot {done.snapshot}); {done.bytes:,} bytes sent")
    return codes.DONE
