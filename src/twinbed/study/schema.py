"""A JSON Schema of study files for editors, made from the declarations by which the reader checks.

It is draft 7, which editors read, and checks single values and mappings. Only the reader checks agreement between keys (a
reference that is a testbed, levels that fit their testbed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from twinbed.model.caution import OF_RUNS
from twinbed.model.keep import DEFAULT, Word
from twinbed.study.catalogue import Catalogue
from twinbed.study.declared import (
    BACKGROUND,
    DRIVER,
    INSTRUMENT,
    KEY,
    WORKLOAD,
    Declared,
    Kind,
    Subject,
    declared,
    factor_paths,
    subjects,
)
from twinbed.study.document import parse, plain
from twinbed.study.factor import HYPERCUBE, INSTRUMENTS, NO_INSTRUMENTS, TESTBED, UNCERTAIN
from twinbed.study.profile import FIXED, NAME
from twinbed.study.reader import STUDY_NAME
from twinbed.study.sample import KINDS, MOST, SAMPLES
from twinbed.study.sections import KEEP, ONLY, TESTBED_NAME
from twinbed.study.study import KEYS

Schema = Mapping[str, object]
DRAFT = "http://json-schema.org/draft-07/schema#"
_NULL: Schema = {"type": "null"}
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST}


def schema(catalogue: Catalogue) -> Schema:
    """Return the schema of studies with these plugins."""
    every = subjects(catalogue)
    keys = {name: {"description": key.about, "examples": [_read(key.example, name)]} for name, key in KEYS.items()}
    names = _levels(every, factor_paths(catalogue))
    values = _values(every)
    own = [name for name, model in catalogue.workloads.items() if model.has_own_settings]
    return {
        "$schema": DRAFT,
        "title": "A study of twinbed",
        "description": "Made by `twinbed schema`.",
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, key in KEYS.items() if key.needed],
        "properties": {name: {**described, **values.get(name, {})} for name, described in keys.items()},
        "if": {"properties": {"workload": {"required": ["kind"], "properties": {"kind": {"enum": own}}}}},
        "then": {"properties": dict.fromkeys(("factors", UNCERTAIN), _or_null({"type": "object"}))},
        "else": {"properties": _named_settings(every, [*names])},
        "definitions": {**_definitions(every), **_of_factors(names)},
    }


def _named_settings(every: Sequence[Subject], names: Sequence[str]) -> Mapping[str, Schema]:
    """Return the keys of a study whose own keys are names of settings -> the schema of its value."""
    return {
        "factors": _or_null(_factors(names, [subject.name for subject in every if subject.sort == INSTRUMENT])),
        UNCERTAIN: _or_null(_together({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]})),
    }


def _values(every: Sequence[Subject]) -> Mapping[str, Schema]:
    """Return key of a study -> the schema of its value."""
    names_of = {
        sort: [subject.name for subject in every if subject.sort == sort] for sort in (DRIVER, WORKLOAD, BACKGROUND, INSTRUMENT)
    }
    head = {kind.name: _setting(kind) for subject in every if subject.sort == KEY for kind in subject.settings[:1]}
    models = {subject.name: subject.model for subject in every if subject.sort == KEY and subject.model is not None}
    kept = [name for sort in (WORKLOAD, INSTRUMENT, BACKGROUND) for name in names_of[sort]]
    sections: dict[str, Schema] = {
        "study": {**head["study"], "pattern": f"^{STUDY_NAME.pattern}$"},
        "testbeds": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": f"^{TESTBED_NAME.pattern}$"},
            "additionalProperties": _chosen("driver", DRIVER, names_of[DRIVER]),
        },
        "machine": _or_null(_mapping(models["machine"])),
        "topology": _or_null(_mapping(models["topology"])),
        "workload": _chosen("kind", WORKLOAD, names_of[WORKLOAD]),
        BACKGROUND: _or_null(_background(names_of[BACKGROUND])),
        "exclude": _or_null({"type": "array", "items": _any([{"type": "object", "minProperties": 1}, {"enum": [*OF_RUNS]}])}),
        "instruments": _or_null(_instruments(names_of[INSTRUMENT])),
        "replicates": _any([head["replicates"], _mapping(models["replicates"])]),
        KEEP: _any([head[KEEP], _object({name: {"enum": [*Word]} for name in (*kept, DEFAULT)})]),
        "tables": _or_null({"type": "array", "items": _mapping(models["tables"])}),
        "profiles": _or_null(
            {
                "type": "object",
                "propertyNames": {"pattern": f"^{NAME.pattern}$"},
                "additionalProperties": {
                    "type": "object",
                    "propertyNames": {"pattern": f"^({'|'.join(key for key in KEYS if key not in FIXED)})([.]|$)"},
                },
            }
        ),
    }
    return {**head, **sections}


def _definitions(every: Sequence[Subject]) -> Schema:
    """Return the settings of each plugin, with the key that names it."""
    definitions: dict[str, object] = {}
    for subject in every:
        if subject.sort == KEY or subject.model is None:
            continue
        more: dict[str, Schema] = {}
        if subject.sort == DRIVER:
            more = {"driver": {"const": subject.name}, ONLY: _only()}
        elif subject.sort in (WORKLOAD, BACKGROUND):
            more = {"kind": {"const": subject.name}}
        mapping = {**_mapping(subject.model, more, plugin=True), "description": subject.about}
        definitions[f"{subject.sort}-{subject.name}"] = mapping
    return definitions


def _ref(sort: str, plugin: str) -> Schema:
    return {"$ref": f"#/definitions/{sort}-{plugin}"}


def _chosen(key: str, sort: str, names: Sequence[str]) -> Schema:
    """Return the schema of a mapping that names a plugin and gives its settings."""
    return _decided(key, {name: _ref(sort, name) for name in names})


def _decided(key: str, choices: Mapping[str, Schema]) -> Schema:
    """Return the schema of a mapping whose ``key`` decides which other keys it has."""
    return {
        "type": "object",
        "required": [key],
        "properties": {key: {"enum": [*choices]}},
        "allOf": [
            {"if": {"required": [key], "properties": {key: {"const": name}}}, "then": schema}
            for name, schema in choices.items()
        ],
    }


def _background(kinds: Sequence[str]) -> Schema:
    """Return the schema of one background load with its kind, or of a mapping of kinds to settings."""
    several = _object({name: _or_null(_ref(BACKGROUND, name)) for name in kinds})
    return {"type": "object", "if": {"required": ["kind"]}, "then": _chosen("kind", BACKGROUND, kinds), "else": several}


def _instruments(names: Sequence[str]) -> Schema:
    """Return the schema of a list of instruments, or of a mapping of each to its settings."""
    settings = _object({name: _or_null(_ref(INSTRUMENT, name)) for name in names})
    return {"if": {"type": "object"}, "then": settings, "else": {"type": "array", "items": {"enum": names}}}


def _levels(every: Sequence[Subject], paths: frozenset[str]) -> Mapping[str, Schema]:
    """Return each name of a setting as a factor -> the schema of a level."""
    levels: dict[str, list[Schema]] = {}
    for subject in every:
        for setting in subject.settings:
            path = subject.path_of(setting)
            if path in paths and not setting.models:
                own = f"{BACKGROUND}.{subject.name}.{setting.name}" if subject.sort == BACKGROUND else path
                for name in dict.fromkeys((setting.name, path, own)):
                    value = _setting(setting, described=False)
                    if value not in levels.setdefault(name, []):
                        levels[name].append(value)
    return {name: _or_null(_any(values)) for name, values in levels.items()}


def _of_factors(names: Mapping[str, Schema]) -> Schema:
    """Return the definitions for sections about factors; of names with the same levels only the first is spelled out."""
    definitions: dict[str, Schema] = {
        "name-of-a-setting": {"enum": [*names]},
        "sample": {
            "description": "How levels are drawn.",
            **_object({**{kind: {"type": "array", "minItems": 1, "items": _SCALAR} for kind in KINDS}, SAMPLES: _COUNT}),
            "minProperties": 1,
            "maxProperties": 2,
        },
    }
    for name, level in names.items():
        levels = {"if": {"type": "object"}, "then": _SAMPLE, "else": {"type": "array", "minItems": 1, "items": level}}
        same = next((other for other, value in definitions.items() if value == levels), None)
        definitions[f"levels-{name}"] = levels if same is None else {"$ref": f"#/definitions/{same}"}
    return definitions


def _factors(names: Sequence[str], instruments: Sequence[str]) -> Schema:
    any_of_them = "|".join(instruments)
    level: list[Schema] = [
        {"type": "string", "pattern": f"^({NO_INSTRUMENTS}|({any_of_them})([+]({any_of_them}))*)$"},
        {"type": "array", "items": {"enum": instruments}},
    ]
    return _object(
        {
            TESTBED: {"type": "array", "minItems": 1, "items": {"type": "string"}},
            INSTRUMENTS: {"type": "array", "minItems": 1, "items": _any(level)},
            HYPERCUBE: _together(_COUNT),
            **{name: {"$ref": f"#/definitions/levels-{name}"} for name in names},
        }
    )


_SAMPLE: Schema = {"$ref": "#/definitions/sample"}


def _together(samples: Schema) -> Schema:
    """Return the schema of settings that are drawn together."""
    names = _any([{"const": SAMPLES}, {"$ref": "#/definitions/name-of-a-setting"}])
    return {
        "type": "object",
        "required": [SAMPLES],
        "properties": {SAMPLES: samples},
        "propertyNames": names,
        "additionalProperties": _SAMPLE,
    }


def _only() -> Schema:
    levels = {"type": "array", "items": _SCALAR}
    drawn = {**_object({"random": {"type": "integer", "minimum": 1}, "also": levels}), "required": ["random"]}
    description = "levels at which this testbed is measured, where not all: factor -> levels"
    return {"description": description, "type": "object", "additionalProperties": _any([levels, drawn])}


def _mapping(model: type[BaseModel], more: Mapping[str, Schema] | None = None, *, plugin: bool = False) -> Schema:
    """Return the schema of a model's settings. A factor may give any single value that a plugin requires."""
    settings = declared(model)
    required = [setting.name for setting in settings if setting.required and (setting.models or not plugin)]
    return {**_object({**(more or {}), **{setting.name: _setting(setting) for setting in settings}}), "required": required}


def _setting(setting: Declared, *, described: bool = True) -> Schema:
    value = _any(_kinds(setting.kinds))
    value = _or_null(value) if setting.null else value
    if not described:
        return value
    default = {"default": _read(setting.default)} if setting.default else {}
    examples = {"examples": [*setting.examples]} if setting.examples else {}
    return {"description": setting.about, **default, **examples, **value}


def _kinds(kinds: Sequence[Kind]) -> list[Schema]:
    """Return a schema for each kind; several models are distinguished by the key that has one choice in each."""
    decided = {
        choice: kind
        for kind in kinds
        if kind.model is not None and len(kinds) > 1
        for setting in declared(kind.model)
        for choice in setting.kinds[0].choices
        if len(setting.kinds[0].choices) == 1
    }
    if len(decided) == len(kinds) > 1:
        models = {choice: _mapping(kind.model) for choice, kind in decided.items() if kind.model is not None}
        return [_decided("driver", models)]
    return [_kind(kind) for kind in kinds]


def _kind(kind: Kind) -> Schema:
    if kind.json == "boolean":
        return {"enum": ["on", "off", True, False]}
    if kind.choices:
        return {"enum": [*kind.choices]}
    if kind.model is not None:
        inside = _mapping(kind.model)
        alone = [_setting(setting, described=False) for setting in declared(kind.model) if setting.name == kind.text_alone]
        return _any([inside, *alone])
    if kind.json == "object":
        return {"type": "object", "additionalProperties": _any(_kinds(kind.of))}
    if kind.json == "array":
        return {"type": "array", "items": _any(_kinds(kind.of))}
    if kind.json in ("integer", "number"):
        return _number(kind)
    pattern = {"pattern": kind.pattern} if kind.pattern else {}
    return {"type": kind.json, **pattern} if kind.json else {}


def _number(kind: Kind) -> Schema:
    at = kind.bounds
    limits = {"minimum": at.least, "maximum": at.most, "exclusiveMinimum": at.above, "exclusiveMaximum": at.below}
    number = {"type": kind.json, **{name: limit for name, limit in limits.items() if limit is not None}}
    if kind.quantity is None:
        return number
    # One schema of both types: with several, editors only report that none matches.
    text = {"pattern": kind.quantity.pattern, "patternErrorMessage": f"allowed: {kind.quantity.allowed}"}
    return {**number, "type": [kind.json, "string"], **text}


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _any(values: Sequence[Schema]) -> Schema:
    return values[0] if len(values) == 1 else {"anyOf": [*values]}


def _or_null(value: Schema) -> Schema:
    if "enum" in value and isinstance(choices := value["enum"], list):
        return value if None in choices else {**value, "enum": [*choices, None]}
    types = value.get("type")
    if types is not None and not value.keys() & {"if", "allOf", "anyOf"}:
        return {**value, "type": [*dict.fromkeys([*(types if isinstance(types, list) else [types]), "null"])]}
    return _any([value, _NULL])


def _read(text: str, key: str = "") -> object:
    """Return the value of a YAML text, or the value at one of its keys."""
    node = parse(text, "", [])
    value = None if node is None else plain(node)
    return value[key] if key and isinstance(value, Mapping) else value
