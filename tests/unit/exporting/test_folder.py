"""Results as files: what is written is what the results say, in forms that other programs read."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.unit.report.test_scaling import study as study_of_pairs

import twinbed as tb
from listed_parts import list_again
from synthetic_results import planted_response, write_run, write_study
from twinbed import registry
from twinbed.analyses.chain.method import analysis as chain
from twinbed.cli.main import run
from twinbed.exporting import figures
from twinbed.exporting.tables import flat, tidy
from twinbed.render.collected import collected
from twinbed.render.colours import light
from twinbed.render.plots import COLOURS
from twinbed.render.sections import body
from twinbed.report.styles import rendered
from twinbed.results.store import Store
from twinbed.workloads.iperf3 import Iperf3Params, iperf3

MANUAL = (Path(__file__).parents[3] / "docs" / "export.md").read_text()
GOLDEN = Path(__file__).parents[2] / "golden" / "iperf3"
CALLS = (("read", "read", 6), ("read", "write", 4), ("write", "read", 4))
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two testbeds, two payloads; some values are missing. The tables are there."""
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)

    def answer(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        found = dict(respond(testbed, levels, replicate))
        return {**found, "packets": None} if replicate == 2 else found

    folder = tmp_path_factory.mktemp("made") / "http"
    made = write_study(folder, ["physical", "virtio"], {"payload": ["500B", "1MiB"]}, 4, answer)
    tb.open(made).runs()
    return made


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "made" / "http")


def add(results: Path, name: str, table: pa.Table) -> None:
    """One more table of results whose tables are from then on taken as they are."""
    tb.open(results).runs()
    (part,) = (results / "tables" / "runs").glob("part-*.parquet")
    (results / "tables" / name).mkdir()
    pq.write_table(table, results / "tables" / name / part.name)
    assert list_again(results / "tables", part.name)
    (results / "frozen.json").write_text("{}")


def runs_of(results: Path) -> list[str]:
    found: list[str] = tb.open(results).runs()["run"].to_pylist()
    return found


def test_every_table_comes_back_equal(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--tables", "both"]) == 0
    found = tb.open(results)
    assert {file.stem for file in (out / "tables").glob("*.parquet")} == set(found.tables())
    with (out / "tables" / "dictionary.csv").open(newline="") as stream:
        known = {(row["table"], row["column"]) for row in csv.DictReader(stream)}
    for name in found.tables():
        wanted = tidy(found, name)
        assert wanted.column_names[1:3] == ["testbed", "payload"] or name == "runs"
        assert pq.read_table(out / "tables" / f"{name}.parquet").equals(wanted), name
        options = pc.ConvertOptions(
            column_types=wanted.schema, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
        read = pc.read_csv(
            out / "tables" / f"{name}.csv", convert_options=options, parse_options=pc.ParseOptions(newlines_in_values=True)
        )
        assert read.equals(wanted.combine_chunks()) or read.combine_chunks().equals(wanted.combine_chunks()), name
        assert {(name, column) for column in wanted.column_names} <= known
    metrics = found.metrics("packets")
    assert metrics["value"].null_count == 4, "missing, never 0"
    readme = (out / "tables" / "README.md").read_text()
    assert "| requests_per_second | 1/s | application | ratio |" in readme and f"| runs | {16} |" in readme


def test_the_manuals_example_runs(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["export", str(results), "-o", str(tmp_path / "offload-export"), "--tables", "parquet"]) == 0
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", MANUAL, re.S)
    exec(block, names := dict[str, Any]())
    assert set(names["metrics"]["testbed"]) == {"physical", "virtio"}


def test_nested_columns() -> None:
    inner = pa.table({"run": ["a", "b"], "at": [{"x": 1, "y": None}, {"x": 2, "y": "é"}], "many": [[1, 2], None]})
    found = flat(inner)
    assert found.column_names == ["run", "at.x", "at.y", "many"]
    assert found["at.y"].to_pylist() == [None, "é"] and found["many"].to_pylist() == ["[1, 2]", None]


def test_latex_and_verdicts_are_the_reports(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--latex"]) == 0
    assert {file.name for file in out.iterdir()} == {"export.json", "latex"}
    for style, name in (("--latex", "report.tex"), ("--csv", "verdicts.csv")):
        assert run(["report", str(results), style, "-o", str(tmp_path / name)]) == 0
        assert (out / "latex" / name).read_text() == (tmp_path / name).read_text()


def test_figures_are_those_of_the_page_in_its_colours_by_day(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--figures"]) == 0
    found = Store.open(results)
    page = rendered("html", found, registry.analysis("compare").run(found), whole=True)
    with (out / "figures" / "figures.csv").open(newline="") as stream:
        listed = {row["figure"]: row["shows"] for row in csv.DictReader(stream)}
    assert list(listed.values()) == [
        label.replace("&amp;", "&").replace("&lt;", "<") for label in re.findall(r'role="img" aria-label="([^"]*)"', page)
    ]
    assert {"01-all-headline-ratios", "02-requests-per-second-values", "03-requests-per-second-ratio-to-physical"} <= set(
        listed
    )
    files = {file.name for file in (out / "figures").iterdir()} - {"figures.csv"}
    assert files == {f"{name}{suffix}" for name in listed for suffix in (".vl.json", ".svg", ".png", ".pdf")}
    for name, label in listed.items():
        drawn = (out / "figures" / f"{name}.svg").read_text()
        spec = (out / "figures" / f"{name}.vl.json").read_text()
        assert json.loads(spec)["description"] == label
        assert not any(each in text for text in (drawn, spec) for each in (*COLOURS, "var(--"))
        root = ElementTree.fromstring(drawn)
        png = (out / "figures" / f"{name}.png").read_bytes()
        size = struct.unpack(">II", png[16:24])
        assert size == tuple(pytest.approx(2 * float(root.get(side) or 0), abs=2) for side in ("width", "height"))
        assert (out / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF-")
    assert light()["equivalent"] in (out / "figures" / "03-requests-per-second-ratio-to-physical.vl.json").read_text()


def test_no_figure_of_one_testbed_is_there_twice(tmp_path: Path) -> None:
    """Where the page begins with how many fit."""
    results, out = study_of_pairs(tmp_path / "results").path, tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--figures"]) == 0
    found = Store.open(results)
    page = rendered("html", found, registry.analysis("compare").run(found), whole=True)
    labels = re.findall(r'role="img" aria-label="([^"]*)"', page)
    assert len(list((out / "figures").glob("*.vl.json"))) == len(labels) and len(set(labels)) == len(labels)


def transitions(results: Path) -> pa.Table:
    """Of a program on every run; virtio has one call more."""
    rows = []
    for one in tb.open(results).runs().to_pylist():
        more = (("write", "poll", 2), ("poll", "read", 2)) if one["testbed"] == "virtio" else ()
        for before, call, count in (*CALLS, *more):
            rows.append(
                {"run": one["run"], "host": "client", "program": "ab", "before_1": before, "call": call, "count": count}
            )
    kinds = {name: pa.string() for name in ("run", "host", "program", "before_3", "before_2", "before_1", "call")}
    return pa.Table.from_pylist(rows, pa.schema([*kinds.items(), ("count", pa.int64())]))


def test_each_testbeds_chain(results: Path, tmp_path: Path) -> None:
    add(results, "transitions", transitions(results))
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--chains"]) == 0
    with (out / "chains" / "chains.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 and {(row["testbed"], row["payload"]) for row in rows} == {
        (testbed, payload) for testbed in ("physical", "virtio") for payload in ("500B", "1MiB")
    }
    for row in rows:
        assert row["file"] == f"{row['testbed']}-ab-on-client-payload-{row['payload']}"
        graph = ElementTree.parse(out / "chains" / f"{row['file']}.graphml").getroot()
        edges = {
            (edge.get("source"), edge.get("target")): float(
                next(data.text or "" for data in edge if data.get("key") == "edge_probability_first")
            )
            for edge in graph.iter(f"{GRAPHML}edge")
        }
        assert edges["read", "read"] == 0.6 and edges["read", "write"] == 0.4
        assert (("poll", "read") in edges) == (row["testbed"] == "virtio")
        assert (out / "chains" / f"{row['file']}.dot").read_text().startswith('digraph "ab on client of')


def test_chains_pictures(results: Path, tmp_path: Path) -> None:
    add(results, "transitions", transitions(results))
    found = chain.run(Store.open(results))
    with collected() as kept:
        assert "<svg" not in body(chain.section(found))
    assert "var(--" in body(chain.section(found)), "nothing is kept afterwards"
    assert figures.write(kept, tmp_path, lambda done, total: None) == 2 * (3 + 4)
    (picture,) = tmp_path.glob("?-chain-of-ab-on-client-payload-500B-virtio-compared-with-physical.svg")
    assert picture.read_text().startswith("<svg") and "var(--" not in picture.read_text()
    assert picture.with_suffix(".png").is_file() and not picture.with_suffix(".vl.json").exists()
    (differences,) = tmp_path.glob("*-differences-of-chain-of-ab-on-client-payload-500B-virtio-compared-with-physical.vl.json")
    assert any(row["text"] == "+" for row in json.loads(differences.read_text())["data"]["values"])


def intervals(results: Path, folder: str, params: Iperf3Params) -> pa.Table:
    """What a real iperf3 reported, as every run's."""
    table = iperf3.parse(params, GOLDEN / folder).tables["intervals"]
    parts = [table.add_column(0, "run", pa.repeat(pa.scalar(each), table.num_rows)) for each in runs_of(results)]
    return pa.concat_tables(parts)


@pytest.mark.parametrize(("folder", "udp", "test"), [("tcp", False, "tcp_nup"), ("udp", True, "udp_flood")])
def test_flent_opens_its_files(results: Path, tmp_path: Path, folder: str, udp: bool, test: str) -> None:
    params = Iperf3Params(protocol="udp", duration=3) if udp else Iperf3Params(duration=3, omit=1, streams=2)
    add(results, "intervals", intervals(results, folder, params))
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--flent"]) == 0
    file = out / "flent" / "virtio-payload-500B-1.flent.gz"
    with gzip.open(file) as stream:
        data = json.load(stream)
    assert data["version"] == 4 and data["metadata"]["NAME"] == test
    assert {len(values) for values in data["results"].values()} == {len(data["x_values"])}
    reports = json.loads((GOLDEN / folder / "client" / "iperf3.json").read_text())["server_output_json"]["intervals"]
    rates = [each["sum"]["bits_per_second"] / 1e6 for each in reports if not each["sum"]["omitted"]]
    name = "UDP upload" if udp else "TCP upload::client"
    assert [value for value in data["results"][name] if value is not None] == pytest.approx(rates[:3], rel=1e-6)
    # What flent itself makes of it.
    read = subprocess.run(["flent", "-i", str(file), "-f", "csv"], capture_output=True, text=True, check=True, cwd=tmp_path)
    lines = list(csv.DictReader(read.stdout[read.stdout.index(test) :].splitlines()))
    assert [float(line[name]) for line in lines if line[name]] == pytest.approx(rates[:3], rel=1e-6)
    if udp:
        return
    said = subprocess.run(["flent", "-i", str(file), "-f", "summary"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert re.search(rf"{name} +: +{sum(rates[:3]) / 3:.2f} +\S+ +\S+ +Mbits/s +3\n", said.stdout)
    assert "virtio payload 500B #1" in said.stdout
    plotted = tmp_path / "totals.csv"
    subprocess.run(["flent", "-i", str(file), "-p", "totals", "-f", "csv", "-o", str(plotted)], check=True, cwd=tmp_path)
    assert name in plotted.read_text()


def test_latencys_probes_and_windows_for_flent(results: Path, tmp_path: Path) -> None:
    (one, *_) = runs_of(results)
    start = 1_700_000_000_000_000_000
    add(
        results,
        "probes",
        pa.table(
            {
                "run": [one] * 4,
                "client": ["client"] * 4,
                "server": ["server"] * 4,
                "client_sent_ns": [start, start + 500_000_000, start + 1_500_000_000, start + 3_000_000_000],
                "rtt_s": [0.001, 0.003, None, 0.005],
            }
        ),
    )
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out), "--flent"]) == 0
    (file,) = (out / "flent").glob("*.flent.gz")
    with gzip.open(file) as stream:
        data = json.load(stream)
    assert data["metadata"]["NAME"] == "ping" and data["metadata"]["HOSTS"] == ["server"]
    assert data["x_values"] == [0.0, 1.0, 2.0, 3.0]
    assert data["results"] == {"Ping (ms) UDP::client": [pytest.approx(2.0), None, None, pytest.approx(5.0)]}
    assert [raw["val"] for raw in data["raw_values"]["Ping (ms) UDP::client"]] == pytest.approx([1.0, 3.0, 5.0])


def test_all_that_there_is_without_a_flag_and_parts_made_anew(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["export", str(results), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert (
        "5 tables" in said
        and "no chains: no run recorded system calls" in said
        and "no flent: no run recorded a time series" in said
    )
    assert {entry.name for entry in out.iterdir()} == {"export.json", "tables", "latex", "figures", "metrics"}
    (out / "tables" / "old.csv").write_text("of a table that is no more")
    figure = next((out / "figures").glob("01-*.svg"))
    drawn = figure.stat().st_mtime_ns
    assert run(["export", str(results), "-o", str(out), "--tables", "csv"]) == 0
    assert not (out / "tables" / "old.csv").exists() and not list((out / "tables").glob("*.parquet"))
    assert figure.stat().st_mtime_ns == drawn


@pytest.mark.parametrize(("flag", "advice"), [("--chains", "add syscalls to"), ("--flent", "the workload iperf3")])
def test_what_is_asked_for_and_not_there(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, advice: str
) -> None:
    assert run(["export", str(results), "-o", str(tmp_path / "out"), flag]) == 2
    assert advice in capsys.readouterr().err


def metrics_of(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Testbed, replicate, levels, metric, host, direction -> the whole row but for the run's own name."""
    found = tb.open(path)
    runs = {row["run"]: row["replicate"] for row in found.runs().to_pylist()}
    rows = {}
    for row in found.metrics().to_pylist():
        levels = [(name, type(row[name]), row[name]) for name in sorted(found.factors)]
        key = (row["testbed"], runs[row.pop("run")], *levels, row["metric"], row["host"], row["direction"])
        assert key not in rows
        rows[key] = row
    return rows


def test_exported_metrics_come_back_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    respond = planted_response({"physical": 1.0, "a: virtio, #2": 0.7}, 0.02, 1)

    def answer(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        found = dict(respond(testbed, levels, replicate))
        return {**found, "packets": None} if replicate == 2 else found

    factors: dict[str, list[Any]] = {
        "topology.link.rate": ["1gbit", None],
        "offload": [True, False],
        "loss": [0.5, 1],
        "pairs": [2],
        "é {x}": ["007"],
        "queue": ["auto", 10, 9],
    }
    results = write_study(tmp_path / "made", ["a: virtio, #2", "physical"], factors, 3, answer, reference="physical")
    levels = {"testbed": "physical", **{name: of[0] for name, of in factors.items()}}
    failed = write_run(results, "physical", levels, 3, {}, position=999, failed="no link")
    study = json.loads((results / "study.json").read_text())
    study["runs"].append(study["runs"][-1] | {"id": failed, "levels": levels, "replicate": 3})
    (results / "study.json").write_text(json.dumps(study))
    out, again = tmp_path / "out", tmp_path / "again"
    assert run(["export", str(results), "-o", str(out), "--metrics"]) == 0
    assert "144 runs, and import.yaml; 1 without values left out" in capsys.readouterr().out
    assert run(["import", str(out / "metrics"), "--manifest", str(out / "metrics" / "import.yaml"), "-o", str(again)]) == 0
    wanted = metrics_of(results)
    assert metrics_of(again) == wanted and len(wanted) > 144
    assert any(row["value"] is None for row in wanted.values()) and {row["scale"] for row in wanted.values()} == {"ratio"}
    one, other = tb.open(results), tb.open(again)
    assert (other.reference, other.testbeds) == (one.reference, one.testbeds)
    kept = [{json.dumps(record.levels, sort_keys=True) for record in Store.open(each).records} for each in (results, again)]
    assert kept[1] == kept[0]
    starts = [
        {(run["testbed"], *(run[name] for name in one.factors), run["replicate"]): run["started_s"] for run in each}
        for each in (one.runs().to_pylist(), other.runs().to_pylist())
    ]
    assert starts[1].items() <= starts[0].items()
    verdicts = [
        sorted(json.dumps([row[name] for name in ("metric", "testbed", "ratio", "ratio_low", "verdict")]) for row in each)
        for each in (one.compare(headlines=True).to_pylist(), other.compare(headlines=True).to_pylist())
    ]
    assert verdicts[0] == verdicts[1]


def test_all_metrics_of_real_reports_come_back_equal(tmp_path: Path) -> None:
    """Hosts, directions, several declarations: what the formats' own cases give, imported, exported, imported again."""
    files = tmp_path / "files"
    files.mkdir()
    cases = Path(__file__).parents[2] / "golden" / "formats"
    for number, name in enumerate(("iperf3-json", "irtt-json", "ping", "netperf")):
        for case in sorted((cases / name).glob("*/")):
            (source,) = case.glob("input*")
            if not (case / "options.json").exists():
                (files / f"{name}_{number}{case.name}_1{''.join(source.suffixes)}").write_bytes(source.read_bytes())
    first, out, again = tmp_path / "first", tmp_path / "out", tmp_path / "again"
    arguments = ["--regex", r"(?P<testbed>[a-z0-9-]+)_(?P<case>[^_]+)_1\..*", "--number-replicates"]
    assert run(["import", str(files), "-o", str(first), *arguments]) in (0, 1)
    assert run(["export", str(first), "-o", str(out), "--metrics", "--flent"]) == 0
    assert run(["import", str(out / "metrics"), "--manifest", str(out / "metrics" / "import.yaml"), "-o", str(again)]) in (0, 1)
    wanted = metrics_of(first)
    assert metrics_of(again) == wanted
    assert {row["direction"] for row in wanted.values()} == {"", "client_to_server", "server_to_client"}
    assert run(["merge", str(first), str(again), "-o", str(tmp_path / "both"), "--reference", "ping@first"]) == 0
    cautions = [str(row["cautions"]) for row in tb.open(tmp_path / "both").compare().to_pylist()]
    assert cautions and not any("workload." in text for text in cautions), "what a manifest declares is no circumstance"


def test_results_without_runs_or_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    (results / "runs").mkdir(parents=True)
    assert run(["export", str(results), "-o", str(out)]) == 2
    assert "has no runs" in capsys.readouterr().err and not out.exists()
    write_run(results, "physical", {"testbed": "physical"}, 0, {}, failed="no link")
    assert run(["export", str(results), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "5 tables" in said and "no figures: the report has no figure" in said and "no metrics: no run has a metric" in said
    assert run(["export", str(out), "-o", str(tmp_path / "other")]) == 2
    assert "is not a results folder" in capsys.readouterr().err


def test_only_an_exports_folder_is_written_into(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(results.rglob("*"))
    assert run(["export", str(results), "-o", str(results)]) == 2
    assert "is not an export" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("mine")
    assert run(["export", str(results), "-o", str(file)]) == 2
    assert file.read_text() == "mine" and [each for each in before if not each.exists()] == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "export.json").write_text('{"study": "another"}')
    assert run(["export", str(results), "-o", str(other)]) == 2
    assert "is the export of 'another', not of 'synthetic'" in capsys.readouterr().err
    (other / "export.json").write_text("[]")
    assert run(["export", str(results), "-o", str(other)]) == 2
    assert "is not of an export" in capsys.readouterr().err


def test_an_archive_exports_as_its_results_do(results: Path, tmp_path: Path) -> None:
    archive, one, two = tmp_path / "http.zip", tmp_path / "one", tmp_path / "two"
    assert run(["archive", str(results), "-o", str(archive), "--no-raw"]) == 0
    assert run(["export", str(results), "-o", str(one), "--tables", "both", "--latex"]) == 0
    assert run(["export", str(archive), "-o", str(two), "--tables", "both", "--latex"]) == 0
    files = sorted(file.relative_to(one) for file in one.rglob("*") if file.is_file())
    assert files == sorted(file.relative_to(two) for file in two.rglob("*") if file.is_file())
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file
