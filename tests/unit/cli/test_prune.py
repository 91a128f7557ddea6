"""`twinbed prune`, and `twinbed run` of a study that keeps less: what they take, what they say, and what goes on as before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from synthetic_results import planted_response, write_study
from twinbed.cli.main import run
from twinbed.results.store import Store

RATIOS = {"physical": 1.0, "virtio": 0.7}
CAPTURE = Path(__file__).parents[2] / "golden" / "captures" / "zeek-get.pcap"
STUDY = """
study: less
testbeds: {a: {driver: fake, seed: 1}, b: {driver: fake, seed: 2}}
workload: {kind: planted}
instruments: []
factors: {testbed: [a, b]}
replicates: 3
"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_study(Path("study"), list(RATIOS), {}, 3, planted_response(RATIOS, 0.02, 1))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compared(results: Path | str, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert run(["compare", str(results), "--all", "--format", "json"]) in (0, 4, 5)
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_says_what_would_go_and_changes_nothing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(results)
    assert run(["prune", str(results), "--keep", "tables", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "To delete:" in said and "planted    tables      6" in said
    assert "metrics and tables that later versions" in said
    assert snapshot(results) == before
    assert run(["prune", str(results), "--keep", "tables", "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["result"]
    size = sum(len(content) for name, content in before.items() if "/artifacts/" in name)
    assert told["going"] == [{"artifacts": "planted", "keep": "tables", "files": 6, "bytes": size}]


def test_results_say_the_same_in_every_form(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = compared(results, capsys)
    assert run(["prune", str(results), "--keep", "tables"]) == 0
    assert "Deleted:" in capsys.readouterr().out
    assert not list(results.glob("runs/*/artifacts/*/*"))
    assert compared(results, capsys) == before
    shutil.rmtree(results / "tables")
    assert compared(results, capsys) == before
    for raw in ("--raw", "--no-raw"):
        assert run(["archive", str(results), "-o", "small.zip", raw]) == 0
        assert compared("small.zip", capsys) == before
    address = f"file://{Path.cwd() / 'bucket'}"
    assert run(["publish", str(results), address]) == 0
    assert compared(address, capsys) == before
    assert run(["prune", str(results), "--keep", "tables"]) == 0
    assert "Nothing to delete" in capsys.readouterr().out


def test_what_was_published_whole_is_published_again(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = compared(results, capsys)
    address = f"file://{Path.cwd() / 'bucket'}"
    assert run(["publish", str(results), address]) == 0
    assert run(["prune", str(results), "--keep", "tables"]) == 0
    assert run(["publish", str(results), address]) == 0
    assert compared(address, capsys) == before


def test_a_merge_takes_the_rows_along(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_study(Path("other"), ["container"], {}, 3, planted_response({"container": 1.0}, 0.02, 2))

    def metrics(both: str) -> list[dict[str, object]]:
        assert run(["merge", "study", "other", "-o", both]) == 0
        assert run(["compare", both]) in (0, 4, 5)
        return Store.open(Path(both)).table("metrics").sort_by([("run", "ascending"), ("metric", "ascending")]).to_pylist()

    before = metrics("before")
    assert run(["prune", "study", "--keep", "tables"]) == 0
    assert list(Path("before").glob("runs/*/artifacts/client/planted.json")), "what was merged before stays"
    assert metrics("after") == before


def test_damaged_rows_are_a_caution(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["prune", str(results), "--keep", "tables"]) == 0
    (one, *_) = sorted(results.glob("runs/*/rows.zip"))
    one.write_bytes(one.read_bytes()[:-50])
    assert run(["compare", str(results)]) in (0, 4, 5)
    table = Store.open(results).table("cautions").to_pylist()
    (caution,) = (row for row in table if row["kind"] == "unreadable")
    assert caution["run"] == caution["subject"] == one.parent.name
    assert caution["detail"].startswith("rows.zip: ")
    metrics = Store.open(results).table("metrics")
    assert one.parent.name not in metrics["run"].to_pylist() and metrics.num_rows


def test_a_run_that_cannot_be_read_keeps_everything(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one, *_) = sorted(results.glob("runs/*/artifacts/client/planted.json"))
    one.write_text("{")
    assert run(["prune", str(results), "--keep", "tables"]) == 1
    assert f"run {one.parents[2].name} keeps everything, because it cannot be read" in capsys.readouterr().err
    assert [*results.glob("runs/*/artifacts/client/planted.json")] == [one]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["table"], "'table' is not a word of --keep; allowed: everything, headers, tables\n  did you mean 'tables'?"),
        (
            ["plantd=tables"],
            "'plantd' is not an artifact of these results; allowed: planted, default\n  did you mean 'planted'?",
        ),
        ([], "the study in study keeps everything"),
    ],
)
def test_wrong_words(results: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(results)
    assert run(["prune", str(results), *(f"--keep={word}" for word in words)]) == 2
    assert says in capsys.readouterr().err
    assert snapshot(results) == before


def test_what_has_no_artifacts_is_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["archive", str(results), "-o", "all.zip"]) == 0
    assert run(["prune", "all.zip", "--keep", "tables"]) == 2
    assert "all.zip is not a results folder with artifacts" in capsys.readouterr().err


def with_capture(results: Path) -> Path:
    """The capture of a run's client."""
    (home, *_) = sorted((results / "runs").iterdir())
    capture = home / "artifacts" / "machine" / "client.pcap"
    capture.parent.mkdir()
    shutil.copy(CAPTURE, capture)
    record = json.loads((home / "run.json").read_text())
    record["artifacts"].append({"path": "artifacts/machine/client.pcap", "bytes": capture.stat().st_size})
    (home / "run.json").write_text(json.dumps(record))
    return capture


@pytest.mark.parametrize("command", [["flows"], ["connections"], ["match", "x"]])
def test_commands_on_captures_say_what_became_of_them(
    results: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capture = with_capture(results)
    assert run(["prune", str(results), "--keep", "headers"]) == 0
    assert run(["flows", f"{capture}.zst"]) == 0
    assert run([*command, str(capture)]) == 2
    assert (
        f"only the packets' headers of this capture were kept (keep: headers)\n  read {capture}.zst" in capsys.readouterr().err
    )
    assert run(["prune", str(results), "--keep", "tables"]) == 0
    assert run([*command, str(capture)]) == 2
    assert f"the artifacts of run {capture.parents[2].name} were not kept (keep: tables)" in capsys.readouterr().err
    assert run([*command, f"{results}/runs/*/artifacts/machine/client.pcap"]) == 2
    assert f"the artifacts of 6 runs in {results} were not kept" in capsys.readouterr().err
    assert run([*command, "nowhere.pcap"]) == 2
    assert "were not kept" not in capsys.readouterr().err


def test_a_study_that_keeps_tables_says_what_it_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all.yaml").write_text(STUDY)
    Path("less.yaml").write_text(STUDY + "keep: tables\n")
    assert run(["run", "all.yaml", "-o", "all"]) == 0
    capsys.readouterr()
    assert run(["run", "less.yaml", "-o", "less"]) == 0
    assert "of artifacts of 6 runs were deleted (keep: tables)" in capsys.readouterr().err
    names = [sorted(path.name for path in Path(results, "runs").iterdir()) for results in ("all", "less")]
    assert names[0] == names[1], "it is no setting of runs"
    assert len(list(Path("all").glob("runs/*/artifacts/*/*"))) >= 6 and not list(Path("less").glob("runs/*/artifacts/*/*"))
    assert compared("less", capsys)["comparisons"] == compared("all", capsys)["comparisons"]
    assert json.loads(Path("less/study.json").read_text())["keep"] == "tables"
    assert run(["prune", "less"]) == 0
    assert run(["run", "less.yaml", "-o", "less"]) == 0
    assert "Nothing to do" in capsys.readouterr().err


def test_each_run_is_thinned_before_the_next_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from twinbed.lab import study

    monkeypatch.chdir(tmp_path)
    Path("less.yaml").write_text(STUDY + "keep: {planted: tables}\n")
    left: list[int] = []
    original = study.make

    def made(*arguments: Any, **options: Any) -> Any:
        left.append(len(list(Path("results/less").glob("runs/[!.]*/artifacts/client/planted.json"))))
        return original(*arguments, **options)

    monkeypatch.setattr(study, "make", made)
    assert run(["run", "less.yaml", "--no-report"]) == 0
    assert left == [0] * 6
    events = [json.loads(line) for line in Path("results/less/events.jsonl").read_text().splitlines()]
    assert sum(event.get("kept") == "planted=tables, default=everything" and event["bytes"] > 0 for event in events) == 6


def test_a_reader_that_fails_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from twinbed.results.keep import thin

    monkeypatch.chdir(tmp_path)
    Path("less.yaml").write_text(STUDY + "keep: tables\n")
    with monkeypatch.context() as patch:
        patch.setattr(thin, "rows_of", lambda *_: {}["bug"])
        assert run(["run", "less.yaml"]) == 0
    assert "6 runs could not be read, and keep all artifacts" in capsys.readouterr().err
    assert len(list(Path("results/less").glob("runs/*/artifacts/client/planted.json"))) == 6
    assert run(["run", "less.yaml"]) == 0
    assert "6 earlier runs still keep all artifacts. To delete them too: twinbed prune" in capsys.readouterr().err
    assert run(["prune", "results/less"]) == 0
    assert not list(Path("results/less").glob("runs/*/artifacts/client/planted.json"))


def test_what_an_ended_run_had_begun_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from twinbed.results.keep import thin

    class Killed(BaseException):
        """As by SIGKILL."""

    def killed(*_: object) -> int:
        raise Killed

    monkeypatch.chdir(tmp_path)
    Path("less.yaml").write_text(STUDY + "keep: tables\n")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(thin, "_remove", lambda run, name: killed() if name.endswith("planted.json") else 0)
        run(["run", "less.yaml"])
    (begun,) = Path("results/less").glob("runs/*/artifacts/client/planted.json")
    assert (begun.parents[2] / "kept.json").is_file()
    assert run(["run", "less.yaml"]) == 0
    assert not list(Path("results/less").glob("runs/*/artifacts/client/planted.json"))
