"""The planted workload: what it plans, what it reads, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed.workloads.planted import PlantedParams, planted

PAIRS = [("client1", "server1", "10.0.0.1"), ("client2", "server2", "10.0.0.2")]


def answers(folder: Path, **places: Any) -> Path:
    for place, answer in places.items():
        (folder / place).mkdir()
        (folder / place / "planted.json").write_text(answer if isinstance(answer, str) else json.dumps(answer))
    return folder


def test_one_command_a_client() -> None:
    plan = planted.plan(PlantedParams(rate=500.0, spread=0.1, seconds=2.0), PAIRS)
    assert [command.host for command in plan.clients] == ["client1", "client2"]
    assert plan.clients[0].argv == ("planted-response", "--rate", "500.0", "--spread", "0.1", "--seconds", "2.0")
    assert plan.clients[0].stdout == "planted.json"
    assert plan.clients[0].limit_s > 2.0


def test_answers_are_each_clients_and_summed(tmp_path: Path) -> None:
    one = {"requests": 10, "requests_per_second": 5.0, "packets": 100, "bytes": 1000}
    two = {"requests": 30, "requests_per_second": 15.0, "packets": 300, "bytes": 3000}
    values = planted.parse(PlantedParams(), answers(tmp_path, client1=one, client2=two)).values
    assert {value.metric: value.value for value in values if not value.host} == {
        "requests": 40,
        "requests_per_second": 20.0,
        "packets": 400,
        "bytes": 4000,
    }
    assert {value.metric: value.value for value in values if value.host == "client1"} == one
    assert {value.metric: value.value for value in values if value.host == "client2"} == two


def test_missing_is_none_and_makes_the_sum_missing(tmp_path: Path) -> None:
    one = {"requests": 10, "requests_per_second": 5.0, "packets": None, "bytes": 0}
    two = {"requests": 30, "requests_per_second": 15.0, "packets": 300, "bytes": 0}
    values = planted.parse(PlantedParams(), answers(tmp_path, a=one, b=two)).values
    found = {value.metric: value.value for value in values if not value.host}
    assert found["packets"] is None
    assert found["bytes"] == 0


@pytest.mark.parametrize("text", ["", '{"requests": 1', "[]", '{"requests": "many"}', '{"requests": true}'])
def test_what_is_no_answer_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"planted\.json"):
        planted.parse(PlantedParams(), answers(tmp_path, client=text))


def test_no_answer_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        planted.parse(PlantedParams(), tmp_path)


def test_settings_are_checked() -> None:
    with pytest.raises(ValidationError):
        PlantedParams(rate=0)
    with pytest.raises(ValidationError):
        PlantedParams.model_validate({"speed": 1})


def test_planted_features_become_fingerprints(tmp_path: Path) -> None:
    params = PlantedParams(features=2)
    (command,) = planted.plan(params, [("client", "server", "10.0.0.2")]).clients
    assert command.argv[-2:] == ("--features", "2")
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "planted.json").write_text('{"requests": 1, "features": [0.5, -2]}')
    rows = planted.parse(params, tmp_path).tables["fingerprints"].to_pylist()
    about = {"observer": "passive", "host": "client", "seen": 1}
    assert rows == [
        {**about, "feature": "planted_1", "text": "0.5", "value": 0.5},
        {**about, "feature": "planted_2", "text": "-2.0", "value": -2.0},
    ]
    (tmp_path / "client" / "planted.json").write_text('{"requests": 1, "features": [true]}')
    with pytest.raises(ValueError, match="it should be a list of numbers"):
        planted.parse(params, tmp_path)
