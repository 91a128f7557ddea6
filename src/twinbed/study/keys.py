"""The keys of a study file, each with its sentence and an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.study.study import Head


@dataclass(frozen=True, slots=True)
class Key:
    about: str
    example: str
    """As it stands in a study file."""
    needed: bool = False


def _of_head(name: str, example: str) -> Key:
    field = Head.model_fields[name]
    return Key(field.description or "", example, field.is_required())


KEYS: Mapping[str, Key] = {
    "study": _of_head("study", "study: my-first"),
    "testbeds": Key(
        "where the same work is done: names that you choose, each with a driver and its settings",
        "testbeds: {container: {driver: container}, e1000: {driver: qemu, nic: e1000}}",
        needed=True,
    ),
    "reference": _of_head("reference", "reference: container"),
    "machine": Key(
        "what all testbeds on this machine do with its CPUs: settings of testbeds, given once for all of them",
        "machine: {idle: busy}",
    ),
    "topology": Key("the network between hosts", "topology: {pairs: 2, link: {rate: 100mbit, delay: 5ms}}"),
    "workload": Key(
        "what clients ask of servers: a kind and its settings", "workload: {kind: http, payload: 16KiB}", needed=True
    ),
    "background": Key(
        "what loads the machine, hosts or links besides the workload: a kind and its settings, or a mapping of kinds",
        "background: {kind: stress, cpu: 2}",
    ),
    "factors": Key(
        "what is varied: settings with their levels, as a list or drawn; every combination is a cell",
        "factors: {payload: [500B, 1MiB], offload: [on, off]}",
    ),
    "uncertain": Key(
        "inputs that nobody knows exactly, with their distributions",
        "uncertain: {samples: 40, payload: {log_uniform: [500B, 16MiB]}}",
    ),
    "exclude": Key(
        "combinations of levels that are not run, and cautions that leave a run out of the main result",
        "exclude: [{testbed: container, payload: 1MiB}, stall]",
    ),
    "instruments": Key("what is recorded: a list, or a mapping of each to its settings", "instruments: [packets, counters]"),
    "replicates": Key(
        f"{Head.model_fields['replicates'].description}; or a mapping, to go on until every verdict is reached",
        "replicates: 10",
    ),
    "order": _of_head("order", "order: randomized-blocks"),
    "comparison": _of_head("comparison", "comparison: independent"),
    "keep": Key(f"{Head.model_fields['keep'].description}; or a mapping, of each plugin's", "keep: headers"),
    "seed": _of_head("seed", "seed: 20190221"),
    "margin": _of_head("margin", "margin: 5%"),
    "confidence": _of_head("confidence", "confidence: 90%"),
    "tables": Key(
        "tables that the report has besides its own",
        "tables: [{title: Requests, metric: requests_per_second, rows: [payload]}]",
    ),
    "profiles": Key(
        "named sets of changes: dotted paths, each with its value",
        "profiles: {quick: {replicates: 2, workload.duration: 1s}}",
    ),
}
"""In the order of the manual."""
