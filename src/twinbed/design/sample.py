"""The hosts of a run that carry an instrument, if it is limited to a share of them.

Pairs are drawn, so that both ends of a path are seen or neither.  The sample comes from sorting by a hash, like the order of
runs (``order``).  The place of a pair is given by SHA-256 of the JSON array [seed, run, instrument, client] (no spaces), and
the first pairs are taken.  A run that is planned again has the same hosts; the hosts of different runs are independent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from twinbed.model.drawn import Drawn, size
from twinbed.study.run import Run


def drawn(run: Run) -> Mapping[str, Drawn]:
    """Return instrument -> its sample; nothing for instruments on all hosts."""
    of_run: dict[str, Drawn] = {}
    for name, choice in run.instruments.items():
        share = choice.params.share_of_hosts()
        if share is None:
            continue
        pairs = run.topology.names()
        ranked = sorted(pairs, key=lambda pair, name=name: _rank(run, name, pair[0]))  # type: ignore[misc]
        chosen = set(ranked[: size(share, len(pairs))])
        of_run[name] = Drawn(tuple(pair for pair in pairs if pair in chosen), len(pairs), run.seed)
    return of_run


def _rank(run: Run, instrument: str, client: str) -> bytes:
    text = json.dumps([run.seed, run.id, instrument, client], separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()
