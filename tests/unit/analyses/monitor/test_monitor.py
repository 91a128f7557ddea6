"""The analysis ``monitor``: classes pooled over runs, and alerts that testbeds do not share, of planted tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record

from twinbed.analyses.monitor.method import analysis as monitor
from twinbed.analyses.monitor.words import sentence
from twinbed.model.error import TwinbedError
from twinbed.model.tables import Outline
from twinbed.render.sections import body

SECONDS = 10.0


def study(probes: Mapping[str, Sequence[int]], alerts: Mapping[str, Sequence[int]]) -> InMemory:
    """Testbed -> probes, and alerts of one signature, of each run. The server's link has many more, which do not count."""
    records, links, classes, raised = [], [], [], []
    for replicate in range(len(next(iter(probes.values())))):
        for testbed in probes:
            one = record(testbed, replicate, len(records), {"testbed": testbed})
            records.append(one)
            for link, more in (("client", 0), ("server", 100)):
                links.append({"run": one.id, "link": link, "seconds": SECONDS, "arp_frames": 0, "other_frames": 0})
                of = {"run": one.id, "link": link, "observer": "twinbed", "checksums": "ignored"}
                classes.append({**of, "class": "probe", "connections": probes[testbed][replicate] + more, "frames": 0})
                classes.append({**of, "class": "NTP", "connections": 0, "frames": 0})
                count = alerts[testbed][replicate]
                if count:
                    names = {"generator": 1, "signature_id": 7, "signature": "an attack"}
                    raised.append({"run": one.id, "link": link, "checksums": "ignored", **names, "alerts": count})
    tables = {"monitored_links": pa.Table.from_pylist(links), "extra_classes": pa.Table.from_pylist(classes)}
    tables |= {"alerts": pa.Table.from_pylist(raised)} if raised else {}
    return InMemory(tables, Outline("s", tuple(probes), next(iter(probes))), records)


def test_a_class_is_a_rate_over_all_runs_with_its_interval() -> None:
    result = monitor.run(study({"real": [0, 0, 0], "virtual": [2, 5, 3]}, {"real": [0] * 3, "virtual": [0] * 3}))
    real, virtual = result.classes
    assert {each.what for each in result.classes} == {"probe"}, "what nobody has has no row"
    assert (real.events, virtual.events) == ((0, 0, 0), (2, 5, 3))
    # R 4.2: poisson.test(10) gives 4.795389 to 18.390356, poisson.test(0) 0 to 3.688879; here in 30 s.
    assert (virtual.rate, virtual.low, virtual.high) == pytest.approx((10 / 30, 4.795389 / 30, 18.390356 / 30), rel=1e-6)
    assert (real.low, real.high) == pytest.approx((0, 3.688879 / 30), rel=1e-6)
    assert (real.verdict, real.same) == (None, None)
    assert (virtual.verdict, virtual.same) == ("different", False)
    assert "0 on real, 10 on virtual" in sentence(result)


def test_alerts_that_are_everywhere_the_same_are_said_so() -> None:
    result = monitor.run(study({"real": [0, 0], "virtual": [0, 0]}, {"real": [1, 1], "virtual": [1, 1]}))
    assert [each.same for each in result.alerts] == [None, True]
    assert "All testbeds raise the same alerts." in sentence(result)


@pytest.mark.parametrize("virtual", [[1, 0], [2, 2], [0, 0]])
def test_alerts_that_differ_in_any_run_are_named_with_their_testbed(virtual: list[int]) -> None:
    result = monitor.run(study({"real": [0, 0], "virtual": [0, 0]}, {"real": [1, 1], "virtual": virtual}))
    assert sentence(result).endswith(" 1 alert not as often as on the reference: 1:7 an attack on virtual.")
    assert "an attack" in body(monitor.section(result))


def test_without_captures_it_says_what_takes_them() -> None:
    empty = InMemory({}, Outline("s", ("real",), "real"), [record("real", 0, 0, {"testbed": "real"})])
    with pytest.raises(TwinbedError, match="no captures of a monitor"):
        monitor.run(empty)
    assert monitor.sections(empty) == ()
