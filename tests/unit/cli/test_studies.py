"""``twinbed studies``, and naming a study that comes with twinbed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinbed import design, registry
from twinbed.cli import main
from twinbed.cli.studyfile import read_study
from twinbed.model.error import TwinbedError
from twinbed.study import loading
from twinbed.study.loading import load

STUDIES = Path(__file__).parents[3] / "studies"


def test_every_study_of_the_repository_is_shipped() -> None:
    assert loading.shipped_names() == sorted(path.stem for path in STUDIES.glob("*.yaml"))
    assert loading.SHIPPED.resolve() == STUDIES.resolve()


@pytest.mark.parametrize("name", loading.shipped_names())
def test_each_asks_a_question_and_has_the_profile_that_is_said(name: str) -> None:
    text = (STUDIES / f"{name}.yaml").read_text()
    question = loading.question_of(text)
    assert question.endswith("?")
    assert question[0].islower()
    assert "#" not in question
    assert load(text, str(STUDIES / f"{name}.yaml"), registry.catalogue(), profile=loading.quick_profile(text)).name.startswith(
        name
    )
    assert loading.quick_profile(text) == "quick"


def test_the_list_has_the_time_that_plan_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["studies", "--format", "json"]) == 0
    listed = {row["study"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(listed) == loading.shipped_names()
    assert main.run(["plan", "offload", "--profile", "quick", "--format", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)["estimate"]["seconds"]
    assert listed["offload"]["seconds"] == pytest.approx(planned, abs=0.05)
    assert listed["minimega"]["profile"] == "quick"


def test_one_is_printed_or_copied_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.run(["studies", "quickstart"]) == 0
    assert capsys.readouterr().out == (STUDIES / "quickstart.yaml").read_text()
    copy = tmp_path / "my.yaml"
    assert main.run(["studies", "quickstart", "-o", str(copy)]) == 0
    assert copy.read_bytes() == (STUDIES / "quickstart.yaml").read_bytes()
    copy.write_text("mine")
    assert main.run(["studies", "quickstart", "-o", str(copy)]) == 2
    assert "File exists" in capsys.readouterr().err
    assert copy.read_text() == "mine"


def test_a_copy_has_the_files_that_the_study_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["studies", "modbus", "-o", str(tmp_path / "my.yaml")]) == 0
    copied = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert copied == {"my.yaml", "files/modbus_client.py", "files/modbus_server.py"}
    shipped, copy = (design.runs(read_study(path)) for path in (Path("modbus"), tmp_path / "my.yaml"))
    assert [run.id for run in copy] == [run.id for run in shipped], "the same settings, files by content"
    assert main.run(["studies", "modbus", "-o", str(tmp_path / "again.yaml")]) == 0, "files that are there already are the same"
    (tmp_path / "files/modbus_client.py").write_text("mine")
    assert main.run(["studies", "modbus", "-o", str(tmp_path / "third.yaml")]) == 2
    assert "modbus_client.py: File exists" in capsys.readouterr().err
    assert (tmp_path / "files/modbus_client.py").read_text() == "mine"


def test_every_file_of_studies_belongs_to_one_and_is_in_the_package() -> None:
    named = {
        name
        for study in loading.shipped_names()
        for cell in read_study(Path(study)).cells
        for name in cell.workload.params.own_files()
    }
    assert named == {f"files/{path.name}" for path in (STUDIES / "files").iterdir()}
    assert '"src/twinbed/studies/files/*"' in (STUDIES.parent / "pyproject.toml").read_text()


def test_a_wrong_name_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["studies", "quickstat"]) == 2
    assert "did you mean 'quickstart'?" in capsys.readouterr().err
    assert main.run(["studies", "-o", "x"]) == 2


def test_a_file_comes_before_a_shipped_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_study(Path("offload")).name == "offload"
    Path("offload").write_text("study: mine\ntestbeds: {a: {driver: container}}\nworkload: {kind: http}\n")
    assert read_study(Path("offload")).name == "mine"
    for other in ("offload.yaml", "elsewhere/offload", "none"):
        with pytest.raises(TwinbedError, match="No such file") as missing:
            read_study(Path(other))
        assert "twinbed studies" in missing.value.advice
