"""The metadata of an archive: an RO-Crate 1.1 (JSON-LD of schema.org's words), and a citation file (CFF 1.2.0).

Sources: w3id.org/ro/crate/1.1, citation-file-format.github.io.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from twinbed.model.json import Json
from twinbed.results.archive.layout import CHECKSUMS, CITATION, METADATA, REPORT
from twinbed.results.store import FROZEN, Store

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
CONFORMS = "https://w3id.org/ro/crate/1.1"
_KINDS = {
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".yaml": "application/yaml",
    ".html": "text/html",
    ".parquet": "application/vnd.apache.parquet",
    ".pcap": "application/vnd.tcpdump.pcap",
    ".cff": "text/plain",
}
_ABOUT = {
    REPORT: "The report: verdicts, every comparison, and the evidence",
    "study.yaml": "The study file as it was given",
    "study.json": "The study, resolved",
    CHECKSUMS: "SHA-256 of every file",
    CITATION: "How to cite these results",
    FROZEN: "A mark that the artifacts were left out, so the tables cannot be made again",
}
Facts = Mapping[tuple[str, str], Sequence[str]]
_PACKAGES = "image"
"""The place in passports with the versions of the image's packages."""


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Authorship:
    """Facts about results that only people know."""

    authors: Sequence[str] = ()
    licence: str | None = None
    """An SPDX identifier or an address."""
    title: str | None = None


def crate(store: Store, facts: Facts, members: Sequence[Member], authorship: Authorship, version: str) -> str:
    """Return ``ro-crate-metadata.json``. ``facts`` maps (place, fact) to its values over all runs."""
    programs = _programs(facts, version)
    times = [record.started_s for record in store.records]
    root: dict[str, Json] = {
        "@id": "./",
        "@type": "Dataset",
        "name": authorship.title or store.outline.name,
        "description": _description(store),
        "datePublished": _day(max(times, default=0.0)),
        "author": [{"@id": f"#author-{number}"} for number in range(1, len(authorship.authors) + 1)],
        "hasPart": [{"@id": member.name} for member in members],
        "mentions": [{"@id": "#measurement"}],
    }
    if authorship.licence:
        root["license"] = {"@id": authorship.licence} if "://" in authorship.licence else authorship.licence
    people: list[dict[str, Json]] = [
        {"@id": f"#author-{number}", "@type": "Person", "name": name} for number, name in enumerate(authorship.authors, start=1)
    ]
    graph: list[dict[str, Json]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": {"@id": CONFORMS},
            "about": {"@id": "./"},
        },
        root,
        *people,
        {
            "@id": "#measurement",
            "@type": "CreateAction",
            "name": f"Measurement of {store.outline.name}",
            "startTime": _moment(min(times, default=0.0)),
            "endTime": _moment(max(times, default=0.0)),
            "instrument": [{"@id": entity["@id"]} for entity in programs],
            "result": [{"@id": "./"}],
        },
        *programs,
        *(_file(member) for member in members),
    ]
    return json.dumps({"@context": CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _description(store: Store) -> str:
    outline = store.outline
    testbeds = ", ".join(outline.testbeds)
    return f"{len(store.records)} runs of the testbeds {testbeds}, compared with {outline.reference}; made by twinbed."


def _programs(facts: Facts, version: str) -> list[dict[str, Json]]:
    """Return twinbed, kernels, QEMU, and the packages that were measured with."""
    versions_of = {"twinbed": {version}}
    for (place, fact), values in sorted(facts.items()):
        known = [value for value in values if value not in ("", "null")]
        if place == _PACKAGES and fact not in ("digest", "layer"):
            versions_of.setdefault(fact, set()).update(known)
        elif fact.lower() in ("kernel", "qemu") or fact.endswith(" version"):
            versions_of.setdefault(fact.removesuffix(" version"), set()).update(known)
    return [
        {
            "@id": f"#software-{name.replace(' ', '-')}",
            "@type": "SoftwareApplication",
            "name": name,
            "version": versions,
        }
        for name, versions in ((name, " | ".join(sorted(known))) for name, known in versions_of.items() if known)
    ]


def _file(member: Member) -> dict[str, Json]:
    suffix = "." + member.name.rpartition(".")[2]
    entity: dict[str, Json] = {"@id": member.name, "@type": "File", "contentSize": str(member.bytes), "sha256": member.sha256}
    if suffix in _KINDS:
        entity["encodingFormat"] = _KINDS[suffix]
    if member.name in _ABOUT:
        entity["name"] = _ABOUT[member.name]
    return entity


def citation(store: Store, authorship: Authorship, version: str) -> str:
    """Return ``CITATION.cff`` for the results, with twinbed as the program that made them."""
    authors = authorship.authors or ("The authors of the study",)
    times = [record.started_s for record in store.records]
    lines = [
        "cff-version: 1.2.0",
        "message: If you use these results, please cite them as below.",
        "type: dataset",
        f"title: {json.dumps(authorship.title or store.outline.name, ensure_ascii=False)}",
        "authors:",
        *(f"  - name: {json.dumps(name, ensure_ascii=False)}" for name in authors),
        f"date-released: {_day(max(times, default=0.0))}",
        *(
            [f"license{'-url' if '://' in authorship.licence else ''}: {json.dumps(authorship.licence)}"]
            if authorship.licence
            else []
        ),
        "references:",
        "  - type: software",
        "    title: twinbed",
        f"    version: {version}",
        "    authors:",
        "      - name: The twinbed authors",
    ]
    return "\n".join(lines) + "\n"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
