"""Tables that hold words: compared by their order or as names, with numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from twinbed.cli.main import run
from twinbed.results.store import Store

WORDS = ["UNLIKELY", "MAYBE", "LIKELY"]
COUNTS = {"physical": (5, 10, 15), "kvm": (15, 10, 5)}


def imported(tmp_path: Path, kind: str, scale: str | None, code: int = 0, **options: Any) -> Path:
    folder, results = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for testbed, counts in COUNTS.items():
        words = [word for word, count in zip(WORDS, counts, strict=True) for _ in range(count)]
        if kind == "generic-csv":
            text = "rep,rate,verdict\n" + "".join(f"{rep},7,{word}\n" for rep, word in enumerate(words))
        else:
            text = "".join(json.dumps({"rep": rep, "rate": 7, "verdict": word}) + "\n" for rep, word in enumerate(words))
        (folder / f"{testbed}.txt").write_text(text)
    places = {"rate": "frames", "verdict": "presence"}
    named = {"columns": places} if kind == "generic-csv" else {"paths": places, "lines": True}
    metrics = [{"name": "frames"}, {"name": "presence", **({"scale": scale} if scale else {})}]
    entry = {
        "pattern": "{testbed}.txt",
        "format": kind,
        "options": {**named, "replicate": "rep", "words": {"verdict": WORDS}, **options},
    }
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(json.dumps({"reference": "physical", "files": [{**entry, "metrics": metrics}]}))
    arguments = ["import", str(folder), "-o", str(results), "--manifest", str(manifest)]
    assert run(arguments) == code
    return results


@pytest.mark.parametrize("kind", ["generic-csv", "generic-json"])
@pytest.mark.parametrize(
    ("scale", "effect", "size"), [("ordinal", "cliffs_delta", -4 / 9), ("nominal", "total_variation", 1 / 3)]
)
def test_words_are_compared_by_their_scale(
    kind: str, scale: str, effect: str, size: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 900 pairs kvm's word is higher in 10*5 + 5*15 and lower in 15*25 + 10*15: (125 - 525)/900. As names a third of either
    would have to change."""
    results = imported(tmp_path, kind, scale)
    capsys.readouterr()
    run(["compare", str(results), "--all", "--format", "json"])
    (row,) = [each for each in json.loads(capsys.readouterr().out)["comparisons"] if each["metric"] == "presence"]
    assert (row["effect"], row["effect_value"]) == (effect, pytest.approx(size))
    values = [each["value"] for each in Store.open(results).table("metrics").to_pylist() if each["metric"] == "presence"]
    assert sorted(values) == [0.0] * 20 + [1.0] * 20 + [2.0] * 20


@pytest.mark.parametrize("kind", ["generic-csv", "generic-json"])
def test_a_word_that_is_not_listed_is_missing_and_a_caution(kind: str, tmp_path: Path) -> None:
    results = imported(tmp_path, kind, "ordinal", code=1, words={"verdict": ["UNLIKELY", "LIKELY"]})
    assert run(["compare", str(results), "--all"]) in (0, 4, 5)
    tables = Store.open(results)
    values = [each["value"] for each in tables.table("metrics").to_pylist() if each["metric"] == "presence"]
    assert values.count(None) == 20 and values.count(1.0) == 20
    assert any("one of the declared words: MAYBE" in row["detail"] for row in tables.table("cautions").to_pylist())


@pytest.mark.parametrize(
    ("scale", "options", "reason"),
    [
        (None, {}, "is declared as a number"),
        ("ratio", {}, "is declared as a number"),
        ("ordinal", {"rows": "mean"}, "no unit and no mean"),
        ("ordinal", {"units": {"verdict": "s"}}, "no unit and no mean"),
        ("ordinal", {"words": {"verdict": ["A"]}}, "at least two"),
        ("ordinal", {"words": {"verdict": ["A", "A"]}}, "at least two"),
        ("ordinal", {"words": {"verdict": ["A", "none"]}}, "none that means missing"),
        ("ordinal", {"words": {"other": ["A", "B"]}}, "other, which is not read"),
    ],
)
def test_words_that_cannot_be_are_refused(
    scale: str | None, options: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, "generic-csv", scale, code=2 if "declared" in reason else 1, **options)
    out = capsys.readouterr()
    assert reason in " ".join((out.err + out.out).split())
