"""The analysis ``detectability`` on made tables whose differences are planted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory
from benchmarks.simulated.observed import Made, observed

from twinbed.analyses.detectability.draw import over_length
from twinbed.analyses.detectability.features import OFFLOAD, REMEDIES, Remedy, is_applied, matrix, seen_by
from twinbed.analyses.detectability.method import DetectabilityParams, needed
from twinbed.analyses.detectability.method import analysis as detectability
from twinbed.analyses.detectability.result import Detection, Length, Needed
from twinbed.analyses.detectability.words import packets_text, sentence, sentences
from twinbed.contracts.host_settings import HostSettings
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.topology import Topology
from twinbed.render.sections import body
from twinbed.show.figure import Figure
from twinbed.show.section import Section
from twinbed.testbeds.container import ContainerSettings
from twinbed.testbeds.qemu.settings import QemuSettings

NATIVE: Mapping[str, str] = {"buffers": "native"}
ALIKE: Mapping[str, str] = {"buffers": "alike"}


def study(other: Made, runs: int = 6, settings: Mapping[str, str] = NATIVE, **about: bool) -> InMemory:
    return observed({"real": Made(settings=settings), "other": other}, runs, **about)


def passive(source: InMemory) -> Detection:
    (found,) = detectability.run(source, DetectabilityParams(observer="passive")).detections
    return found


def test_the_window_scale_tells_with_one_packet_and_goes_with_alike_buffers() -> None:
    found = passive(study(Made(scale=5, settings=NATIVE)))
    assert (found.as_is.area, found.ranked[0].feature, found.ranked[0].area) == (1.0, "server.window_scale", 1.0)
    assert found.as_is.needed == Needed(1.0, None, 1.0, 1.0)
    assert found.ranked[0].removable and str(found.ranked[0].remedy) == "buffers: alike"
    assert found.residue is not None and found.residue.p > 0.05
    assert sentence(found, 0.05).startswith(
        "A remote observer tells other from real with 1 packet (AUC 1.00): window scale (server); with buffers alike "
        "no longer shown (AUC "
    )
    gone = passive(study(Made(settings=ALIKE), settings=ALIKE))
    assert all(each.feature != "server.window_scale" for each in gone.ranked) and gone.as_is.p > 0.05


def test_a_setting_that_both_have_already_removes_nothing() -> None:
    """Buffers are alike, and the scale differs all the same: something else is behind it, and it stays in the residue."""
    found = passive(study(Made(scale=5, settings=ALIKE), settings=ALIKE))
    first = found.ranked[0]
    assert first.feature == "server.window_scale" and first.applied and not first.removable
    assert found.residue is not None and found.residue.area == 1.0


def test_what_takes_many_packets_is_told_by_many() -> None:
    found = passive(study(Made(spread=6.0), runs=8))
    assert found.ranked[0].feature.endswith("gap_log_sd") and found.ranked[0].remedy is None
    accuracy = [each.accuracy for each in found.as_is.lengths]
    assert [each.packets for each in found.as_is.lengths] == [1, 4, 16, 64, 256, 1024]
    assert accuracy[0] == 0.5 and accuracy[-1] > 0.9 and accuracy[-1] > accuracy[1]
    assert found.as_is.lengths[-1].seconds == pytest.approx(0.1024)


def test_equal_testbeds_are_not_told() -> None:
    result = detectability.run(study(Made()))
    assert [each.observer for each in result.detections] == ["passive", "host"]
    of_packets, on_host = result.detections
    assert of_packets.as_is.interval.low < 0.5 < of_packets.as_is.interval.high and of_packets.as_is.needed is None
    # Nothing at all differs on the host.
    assert (on_host.as_is.area, on_host.as_is.features, on_host.as_is.p, on_host.residue) == (0.5, 0, 1.0, None)
    assert all("is not shown to tell other from real" in each for each in sentences(result))


def test_two_runs_against_two_are_refused_with_the_number_needed() -> None:
    with pytest.raises(TwinbedError, match=r"2 and 2 runs reach p = 0\.33 at best; 4 and 4 could show a difference") as error:
        detectability.run(study(Made(scale=5), runs=2))
    assert error.value.advice.startswith("set replicates: 4")
    with pytest.raises(TwinbedError, match=r"5 and 5 runs within blocks reach p = 0\.062 at best; 6 and 6"):
        detectability.run(study(Made(scale=5), runs=5, paired=True))
    assert passive(study(Made(scale=5), runs=6, paired=True)).as_is.p == pytest.approx(2 / 64)


def test_one_run_against_many_is_refused() -> None:
    made = study(Made(scale=5))
    kept = [one for one in made.records if one.settings["testbed"]["name"] == "real" or one.replicate == 0]
    with pytest.raises(TwinbedError, match="1 and 6 runs reach p = 1 at best"):
        detectability.run(replace(made, records=kept))


def test_one_testbed_and_nothing_seen_are_refused() -> None:
    with pytest.raises(TwinbedError, match="only one testbed, and detectability compares two"):
        detectability.run(observed({"real": Made()}, 6))
    made = study(Made())
    with pytest.raises(TwinbedError, match="no record of any observer") as error:
        detectability.run(replace(made, tables={}))
    assert "instruments: [packets, fingerprint]" in error.value.advice
    with pytest.raises(TwinbedError, match="no record of the active observer"):
        detectability.run(made, DetectabilityParams(observer="active"))


def test_captures_without_syns_are_told_by_their_packets_with_a_caution() -> None:
    source = observed({"real": Made(), "other": Made(spread=8.0, syns=False)}, 6)
    result = detectability.run(source, DetectabilityParams(observer="passive"))
    (caution,) = (each for each in result.cautions if each.kind is not Kind.ONE_SESSION)
    assert (caution.kind, caution.subject) == (Kind.INCOMPLETE_CAPTURE, "other")
    assert caution.detail.startswith("6 of 12 captures have no SYN")


def test_cautions_of_runs_travel() -> None:
    source = observed({"real": Made(), "other": Made()}, 6, cautions=[Caution(Kind.SOFTWARE_CPU, "no /dev/kvm")])
    found = detectability.run(source).cautions
    assert {(each.kind, each.subject, each.detail) for each in found} == {
        (Kind.SOFTWARE_CPU, "other", "6 of 6 runs"),
        (Kind.SOFTWARE_CPU, "real", "6 of 6 runs"),
    }


def test_addresses_order_and_time_are_no_features() -> None:
    """Other runs' ids, blocks, positions and times change nothing."""
    one = study(Made(scale=5))
    other = replace(one, records=[replace(each, position=99 - each.position, started_s=0.0) for each in one.records])
    assert detectability.run(one).detections == detectability.run(other).detections
    names = {
        name
        for of in seen_by(one).values()
        for seen in of.values()
        for rows in [*seen.blocks.values()]
        for row in rows
        for name in row
    }
    assert not [name for name in names if any(part in name for part in ("run", "link", "block", "second", "packets"))]


def test_the_first_link_of_a_client_counts() -> None:
    made = study(Made())
    rows = made.tables["windows"].to_pylist()
    strange = [{**row, "link": link, "gap_log_sd": 1e6} for row in rows for link in ("server1", "client2")]
    both = replace(made, tables={**made.tables, "windows": pa.Table.from_pylist([*strange, *rows])})
    assert detectability.run(both).detections == detectability.run(made).detections


def test_texts_have_a_column_for_each_value_and_missing_numbers_one_more() -> None:
    rows = [[{"a": "x", "b": 1.0, "c": 5.0}], [{"a": "y", "b": None, "c": 5.0}], [{"a": None, "b": 3.0, "c": 5.0}]]
    made = matrix(rows)
    assert made.columns == {"a": (0, 1), "b": (2, 3)}
    assert made.rows[:, [0, 1, 3]].tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert made.without(["a"]).rows[:, 1].tolist() == [0, 1, 0]


def test_a_testbed_that_is_as_hidden_and_faster_is_named() -> None:
    source = observed({"real": Made(), "slow": Made(rate=500), "fast": Made(rate=900), "told": Made(scale=5, rate=700)}, 6)
    result = detectability.run(source, DetectabilityParams(observer="passive"))
    assert result.metric == "requests_per_second"
    ratios = {each.testbed: each.ratio for each in result.costs}
    assert ratios == pytest.approx({"slow": 0.5, "fast": 0.9, "told": 0.7}, rel=0.03)
    best = {each.testbed: each.best for each in result.costs}
    assert best["fast"] and not best["told"]


def test_packets_needed_are_interpolated_over_their_logarithm() -> None:
    """90 % at 16, 100 % at 64: 95 % is half way, at 32. By hand; all runs alike leave no doubt."""
    import numpy as np

    lengths = [Length(16, 1.0, 0.9, 0.9), Length(64, 4.0, 1.0, 1.0)]
    labels = np.arange(8) < 4
    found = needed(lengths, [np.full(8, 0.9), np.full(8, 1.0)], labels, 0.95)
    assert found is not None
    assert (found.packets, found.seconds, found.low, found.high) == pytest.approx((32.0, 2.0, 32.0, 32.0))
    assert needed(lengths[:1], [np.full(8, 0.9)], labels, 0.95) is None
    # Some runs are never told: it may be that no length is enough.
    mixed = needed(lengths, [np.full(8, 0.9), np.array([1, 1, 1, 1, 1, 1, 1, 0.6])], labels, 0.95)
    assert mixed is not None and mixed.high is None


@pytest.mark.parametrize(
    ("packets", "text"), [(1.0, "1 packet"), (3.2, "4 packets"), (43.7, "44 packets"), (3012.0, "3,000 packets")]
)
def test_packets_are_said_to_two_digits(packets: float, text: str) -> None:
    assert packets_text(packets) == text


@pytest.mark.parametrize("remedy", sorted({*REMEDIES.values()}, key=str), ids=str)
def test_every_setting_that_removes_a_feature_exists(remedy: Remedy) -> None:
    *path, name = remedy.setting.split(".")
    if path == ["topology", "link"]:
        assert name in type(Topology().link).model_fields
    elif path:
        assert name in Topology.model_fields
    else:
        fields = {**HostSettings.model_fields, **QemuSettings.model_fields, **ContainerSettings.model_fields}
        assert name in fields
        if remedy.value is not None:
            assert QemuSettings.model_validate({name: remedy.value})


def test_offloads_that_are_off_one_by_one_are_off_together() -> None:
    each = dict.fromkeys(("sg", "tso", "gso", "gro"), "off")
    assert is_applied(OFFLOAD, (each, {"offload": "off"}))
    assert not is_applied(OFFLOAD, ({**each, "gro": None}, {"offload": "off"}))
    assert not is_applied(OFFLOAD, ({"offload": "on"}, {"offload": "on"}))
    assert not is_applied(Remedy("nic"), ({"nic": "e1000"}, {}))


def test_tables_are_json_and_the_page_has_all_of_it() -> None:
    source = observed({"real": Made(settings=NATIVE), "<b>": Made(scale=5, settings=NATIVE)}, 6)
    result = detectability.run(source)
    tables = json.loads(json.dumps(detectability.tables(result), allow_nan=False))
    assert {row["removed_by"] for row in tables["features"]} >= {"buffers: alike", None}
    assert next(row["auc"] for row in tables["detectability"] if row["observer"] == "passive") == 1.0
    shown = body(detectability.section(result))
    assert shown.count("<svg") == 2 and "&lt;b&gt;" in shown and "<b>" not in shown
    assert "What hiding costs" in shown and "window scale (server)" in shown


def test_the_picture_has_room_for_the_residue_s_accuracies() -> None:
    result = detectability.run(study(Made(scale=5)))
    (found,) = [each for each in result.detections if each.observer == "passive"]
    assert found.residue is not None
    low = replace(found.residue, lengths=(Length(4, 0.1, 0.5, 0.5), Length(16, 0.4, 0.1, 0.12)))
    (figure,) = over_length(replace(result, detections=(replace(found, residue=low),)))
    assert isinstance(figure, Figure) and figure.spec is not None
    (panel,) = figure.spec()["vconcat"]
    (domain,) = {tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in panel["layer"]}
    assert domain == (0.12, 1)


def test_reports_show_it_where_the_study_asked_for_it() -> None:
    source = study(Made(scale=5))
    assert not detectability.sections(source)
    asked = [replace(one, settings={**one.settings, "instruments": {"fingerprint": {}}}) for one in source.records]
    (section,) = detectability.sections(replace(source, records=asked))
    assert isinstance(section, Section) and section.sentence.startswith("A remote observer tells other from real")
    few = study(Made(scale=5), runs=2)
    asked = [replace(one, settings={**one.settings, "instruments": {"fingerprint": {}}}) for one in few.records]
    assert not detectability.sections(replace(few, records=asked))
