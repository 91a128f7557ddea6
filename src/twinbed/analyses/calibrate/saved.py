"""Write and read a calibration as a file: its runs, and the facts that it is valid for. Reading fits it again.

Processes follow from runs alone, to the last digit on one machine, so nothing else has to be kept.  A reader of the file can
see the runs behind it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import twinbed
from twinbed.analyses.calibrate.data import Runs
from twinbed.analyses.calibrate.fit import Fitted, fitted
from twinbed.analyses.calibrate.result import Calibrated, Calibrations
from twinbed.analyses.calibrate.words import predictions, summary
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.model.json import (
    WRONG,
    Document,
    document,
    documents,
    integer,
    named,
    number,
    parsed,
    text,
    tuple_of,
    value_of,
    why,
)
from twinbed.model.run import Level
from twinbed.terminal import as_json

FORMAT = 2


def file_name(calibrations: Calibrations) -> str:
    """Return the name of a calibration's file."""
    return f"{calibrations.cheap}-{calibrations.expensive}.json"


def to_json(calibrations: Calibrations) -> str:
    """Return the text of a calibration's file."""
    data = {
        "format": FORMAT,
        "what": "twinbed calibration",
        "twinbed": twinbed.__version__,
        "source": calibrations.source,
        "from": calibrations.cheap,
        "to": calibrations.expensive,
        "level": calibrations.level,
        "despite": list(calibrations.accepted),
        "runs": calibrations.runs,
        "factors": list(dict.fromkeys(name for calibrated in calibrations.responses for name in calibrated.factors)),
        "passports": {name: dict(facts) for name, facts in calibrations.passports.items()},
        "cautions": [caution.to_json() for caution in calibrations.cautions],
        "responses": [_response(calibrated.fitted) for calibrated in calibrations.responses],
        "summary": summary(calibrations).rows(),
        "predictions": predictions(calibrations).rows(),
    }
    return as_json({**data, "sha256": _digest(data)}, allow_nan=False) + "\n"


def read(file: Path) -> tuple[Calibrations, Sequence[str]]:
    """Read the calibration of a file, with remarks. Raises TwinbedError for anything else."""
    try:
        data = parsed(file.read_bytes())
        if not isinstance(data, dict) or data.get("what") != "twinbed calibration":
            raise TwinbedError(f"{file} is not a calibration", advice="`twinbed calibrate RESULTS --from A --to B` writes one")
        if data.get("format") != FORMAT:
            raise TwinbedError(
                f"{file} has format {data.get('format')!r}, and this twinbed reads {FORMAT}",
                advice="write it again from its results: twinbed calibrate",
            )
        digest = data.pop("sha256", None)
        if digest != _digest(data):
            raise TwinbedError(
                f"{file} was changed after it was written", advice="write it again from its results: twinbed calibrate"
            )
        remarks = []
        if data["twinbed"] != twinbed.__version__:
            remarks.append(f"Written by twinbed {data['twinbed']}; this is {twinbed.__version__}, and digits may differ.")
        level = number(data["level"])
        return (
            Calibrations(
                text(data["source"]),
                text(data["from"]),
                text(data["to"]),
                level,
                [text(kind) for kind in data["despite"]],
                value_of(data, "passports", named(named(tuple_of(text)))),
                [Calibrated(_fitted(response, level)) for response in documents(data["responses"])],
                text(data["runs"]),
                cautions=tuple(Caution.from_json(caution) for caution in documents(data["cautions"])),
            ),
            remarks,
        )
    except OSError as error:
        raise TwinbedError(f"{file} cannot be read: {error.strerror}") from error
    except (ArithmeticError, *WRONG) as error:
        raise TwinbedError(f"{file} is not a calibration: {why(error)}") from error


def _digest(data: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _response(of: Fitted) -> Document:
    return {
        "response": of.response,
        "unit": of.unit,
        "levels": dict(of.levels),
        "by": of.by,
        "drawn": list(of.drawn),
        "limit": of.limit,
        "from": _runs(of.cheap),
        "to": _runs(of.expensive),
    }


def _runs(runs: Runs) -> Document:
    levels: Document = {name: list(of) for name, of in runs.levels.items()}
    return {"levels": levels, "blocks": list(runs.blocks), "values": list(runs.values)}


def _fitted(data: Document, level: float) -> Fitted:
    levels: dict[str, Level] = {name: _level(own) for name, own in document(data["levels"]).items()}
    return fitted(
        text(data["response"]),
        text(data["unit"]),
        levels,
        _read_runs(document(data["from"])),
        _read_runs(document(data["to"])),
        by=text(data["by"]),
        drawn=_levels(data["drawn"]),
        level=level,
        limit=None if data["limit"] is None else number(data["limit"]),
    )


def _read_runs(data: Document) -> Runs:
    blocks, values = data["blocks"], data["values"]
    if not isinstance(blocks, list) or not isinstance(values, list):
        raise TypeError("blocks and values are lists")
    levels = {name: _levels(of) for name, of in document(data["levels"]).items()}
    if {len(of) for of in levels.values()} | {len(blocks)} != {len(values)}:
        raise ValueError("the columns of its runs have different lengths")
    return Runs(levels, [integer(block) for block in blocks], [number(value) for value in values])


def _levels(data: object) -> Sequence[Level]:
    if not isinstance(data, list):
        raise TypeError("levels are a list")
    return [_level(level) for level in data]


def _level(value: object) -> Level:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{value!r:.60} is not a level")
